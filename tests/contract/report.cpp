#include "tests/contract/report.h"

#include <cstdio>

#include "base/json_text.h"

namespace spillway::contract {
namespace {

using base::JsonQuoted;

std::string List(const std::vector<std::string>& texts) {
  std::string list = "[";
  for (const auto& text : texts) list += (list.size() > 1 ? ", " : "") + JsonQuoted(text);
  return list + "]";
}

std::string Figures(const std::vector<Figure>& figures) {
  std::string list = "[";
  for (const Figure& figure : figures)
    list += (list.size() > 1 ? ", " : "") + ("{\"name\": " + JsonQuoted(figure.name)) +
            ", \"value\": " + figure.value + ", \"unit\": " + JsonQuoted(figure.unit) + "}";
  return list + "]";
}

}  // namespace

void PrintOutcome(const Outcome& outcome, bool verbose) {
  const std::string verdict = outcome.Verdict();
  const bool silent = outcome.observations.empty() && outcome.figures.empty();
  if (verdict == "passed" && !verbose && silent) return;
  std::printf("%-7s %s (%.2f s%s)\n", verdict.c_str(), outcome.rule->FullName().c_str(),
              outcome.seconds, outcome.simulated ? ", simulated device" : "");
  for (const auto& text : outcome.failures) std::printf("        %s\n", text.c_str());
  if (!outcome.failures.empty()) std::printf("        rule: %s\n", outcome.rule->source);
  if (!outcome.skip_reason.empty()) std::printf("        %s\n", outcome.skip_reason.c_str());
  for (const auto& text : outcome.observations) std::printf("        observed: %s\n", text.c_str());
  for (const Figure& figure : outcome.figures)
    std::printf("        %-58s %12s %s\n", figure.name.c_str(), figure.value.c_str(),
                figure.unit.c_str());
  std::fflush(stdout);
}

bool WriteJson(const std::string& path, bool simulated, const std::vector<Outcome>& outcomes) {
  std::FILE* file = std::fopen(path.c_str(), "w");
  if (!file) return false;
  std::fprintf(file, "{\"schema\": 1, \"simulated\": %s, \"cases\": [",
               simulated ? "true" : "false");
  const char* separator = "\n";
  for (const auto& outcome : outcomes) {
    std::fprintf(file,
                 "%s  {\"name\": %s, \"verdict\": \"%s\", \"seconds\": %.3f, \"source\": %s,\n",
                 separator, JsonQuoted(outcome.rule->FullName()).c_str(), outcome.Verdict(),
                 outcome.seconds, JsonQuoted(outcome.rule->source).c_str());
    std::fprintf(
        file,
        "   \"failures\": %s, \"skip_reason\": %s,\n   \"observations\": %s, \"figures\": %s}",
        List(outcome.failures).c_str(), JsonQuoted(outcome.skip_reason).c_str(),
        List(outcome.observations).c_str(), Figures(outcome.figures).c_str());
    separator = ",\n";
  }
  std::fprintf(file, "\n]}\n");
  return std::fclose(file) == 0;
}

}  // namespace spillway::contract
