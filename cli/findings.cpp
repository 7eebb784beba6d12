#include "cli/findings.h"

#include <algorithm>
#include <cstdio>

namespace spillway::cli {
namespace {

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

std::string JsonString(const std::string& text) {
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') {
      quoted += std::string("\\") + c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
      quoted += escape;
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

std::string AsJson(const Finding& finding) {
  return "{\"level\":" + JsonString(LevelName(finding.level)) +
         ",\"subject\":" + JsonString(finding.subject) + ",\"fact\":" + JsonString(finding.fact) +
         ",\"remedy\":" + JsonString(finding.remedy) + "}";
}

}  // namespace

std::string FindingsAsText(const Findings& findings) {
  std::string text;
  for (const Finding& finding : findings) {
    text +=
        Padded(LevelName(finding.level), 9) + Padded(finding.subject, kSubjectWidth) + finding.fact + "\n";
    if (!finding.remedy.empty()) text += Padded("", 9 + kSubjectWidth) + "do: " + finding.remedy + "\n";
  }
  return text;
}

std::string FindingsAsJson(const Findings& findings) {
  std::string text = "{\"schema\":1,\"problems\":" + std::to_string(CountLevel(findings, Level::kProblem)) +
                     ",\"warnings\":" + std::to_string(CountLevel(findings, Level::kWarning)) +
                     ",\"findings\":[";
  for (std::size_t i = 0; i < findings.size(); ++i) text += (i == 0 ? "\n" : ",\n") + AsJson(findings[i]);
  return text + "\n]}\n";
}

int CountLevel(const Findings& findings, Level level) {
  return static_cast<int>(std::count_if(findings.begin(), findings.end(),
                                        [&](const Finding& finding) { return finding.level == level; }));
}

}  // namespace spillway::cli
