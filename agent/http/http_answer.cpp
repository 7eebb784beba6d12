#include "agent/http/http_answer.h"

#include <algorithm>

namespace spillway::agent {
namespace {

struct Reason {
  int status;
  const char* words;
};
constexpr Reason kReasons[] = {{200, "OK"},
                               {400, "Bad Request"},
                               {401, "Unauthorized"},
                               {403, "Forbidden"},
                               {404, "Not Found"},
                               {405, "Method Not Allowed"},
                               {408, "Request Timeout"},
                               {414, "URI Too Long"},
                               {421, "Misdirected Request"},
                               {431, "Request Header Fields Too Large"},
                               {503, "Service Unavailable"},
                               {505, "HTTP Version Not Supported"}};

}  // namespace

const char* WordsOf(int status) {
  const auto* found = std::find_if(std::begin(kReasons), std::end(kReasons),
                                   [&](const Reason& one) { return one.status == status; });
  return found == std::end(kReasons) ? "Error" : found->words;
}

HttpAnswer ErrorAnswer(int status, const std::string& why, const char* fields) {
  return {.status = status,
          .body = TextPage(std::to_string(status) + " " + WordsOf(status) +
                           (why.empty() ? "" : ": " + why) + "\n"),
          .fields = fields};
}

}  // namespace spillway::agent
