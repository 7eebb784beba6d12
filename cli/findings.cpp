#include "cli/findings.h"

#include <algorithm>
#include <cstdio>

#include "base/json_text.h"

namespace spillway::cli {
namespace {

using base::JsonQuoted;

constexpr std::size_t kSubjectWidth = 20;

std::string LevelName(Level level) {
  switch (level) {
    case Level::kOk:
      return "ok";
    case Level::kWarning:
      return "warning";
    case Level::kProblem:
      return "problem";
  }
  return "";
}

std::string Padded(const std::string& text, std::size_t width) {
  return text.size() < width ? text + std::string(width - text.size(), ' ') : text + " ";
}

std::string AsJson(const Finding& finding) {
  return "{\"level\":" + JsonQuoted(LevelName(finding.level)) +
         ",\"subject\":" + JsonQuoted(finding.subject) + ",\"fact\":" + JsonQuoted(finding.fact) +
         ",\"remedy\":" + JsonQuoted(finding.remedy) + "}";
}

}  // namespace

std::string FindingsAsText(const Findings& findings) {
  std::string text;
  for (const Finding& finding : findings) {
    text += Padded(LevelName(finding.level), 9) + Padded(finding.subject, kSubjectWidth) +
            finding.fact + "\n";
    if (!finding.remedy.empty())
      text += Padded("", 9 + kSubjectWidth) + "do: " + finding.remedy + "\n";
  }
  return text;
}

std::string FindingsAsJson(const Findings& findings) {
  std::string text =
      "{\"schema\":1,\"problems\":" + std::to_string(CountLevel(findings, Level::kProblem)) +
      ",\"warnings\":" + std::to_string(CountLevel(findings, Level::kWarning)) + ",\"findings\":[";
  for (std::size_t i = 0; i < findings.size(); ++i)
    text += (i == 0 ? "\n" : ",\n") + AsJson(findings[i]);
  return text + "\n]}\n";
}

int CountLevel(const Findings& findings, Level level) {
  return static_cast<int>(
      std::count_if(findings.begin(), findings.end(),
                    [&](const Finding& finding) { return finding.level == level; }));
}

}  // namespace spillway::cli
