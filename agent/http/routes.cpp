#include "agent/http/routes.h"

#include <charconv>
#include <optional>

namespace spillway::agent {
namespace {

constexpr std::string_view kJobs = "/api/v1/jobs/";

struct Fixed {
  std::string_view path;
  Page page;
};
constexpr Fixed kFixed[] = {{"/healthz", Page::kHealth},         {"/readyz", Page::kReadiness},
                            {"/metrics", Page::kMetrics},        {"/api/v1/status", Page::kStatus},
                            {"/api/v1/history", Page::kHistory}, {"/api/v1/events", Page::kEvents}};

struct Ending {
  std::string_view text;
  Page page;
};
constexpr Ending kEndings[] = {{"/history", Page::kJobHistory}, {"/plan", Page::kJobPlan}};

// RFC 3986, 2.1. Nullopt: a '%' without two hexadecimal digits.
std::optional<std::string> Decoded(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    unsigned code = 0;
    if (i + 2 >= text.size()) return std::nullopt;
    const char* const end = text.data() + i + 3;
    if (std::from_chars(text.data() + i + 1, end, code, 16).ptr != end) return std::nullopt;
    decoded += static_cast<char>(code);
    i += 2;
  }
  return decoded;
}

Route JobRoute(std::string_view rest) {
  Page page = Page::kJob;
  for (const Ending& ending : kEndings) {
    if (!rest.ends_with(ending.text)) continue;
    page = ending.page;
    rest.remove_suffix(ending.text.size());
  }
  const std::optional<std::string> job = Decoded(rest);
  const bool is_name = job && !job->empty() && rest.find('/') == rest.npos;
  return is_name ? Route{page, *job} : Route{};
}

}  // namespace

Route RouteOf(std::string_view path) {
  for (const Fixed& fixed : kFixed) {
    if (path == fixed.path) return {fixed.page};
  }
  if (path.starts_with(kJobs)) return JobRoute(path.substr(kJobs.size()));
  return {Page::kAsset};
}

bool IsPublic(Page page) {
  return page == Page::kAsset || page == Page::kHealth || page == Page::kReadiness ||
         page == Page::kNone;
}

}  // namespace spillway::agent
