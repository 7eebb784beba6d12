// Runs the linked cases, then prints one summary line. Exits with 0 if exactly the known cases have
// failed.
//
//   contract_suite [--list] [--filter=TEXT] [--exclude=TEXT] [--last=TEXT] [--jobs=N]
//                  [--limit-seconds=N] [--json=FILE] [--verbose] [--known=NAME]...
//
// TEXT is part of a case's name; the cases of --last run after all others. NAME is a whole name: a
// case that fails under a preload library that differs from the driver.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tests/contract/report.h"
#include "tests/contract/runner.h"

namespace spillway::contract {
namespace {

struct Options {
  std::string filter;
  std::string exclude;
  std::string last;
  std::string json_path;
  std::vector<std::string> known;
  RunLimits limits;
  bool list = false;
  bool verbose = false;
};

bool TakeText(const char* argument, const char* name, std::string& value) {
  const std::size_t length = std::strlen(name);
  if (std::strncmp(argument, name, length) != 0) return false;
  value = argument + length;
  return true;
}

bool TakeEach(const char* argument, const char* name, std::vector<std::string>& values) {
  std::string value;
  if (!TakeText(argument, name, value)) return false;
  values.push_back(value);
  return true;
}

bool TakeNumber(const char* argument, const char* name, int& value) {
  std::string text;
  if (!TakeText(argument, name, text)) return false;
  value = std::atoi(text.c_str());
  return value > 0;
}

bool TakeSwitch(const char* argument, const char* name, bool& value) {
  if (std::strcmp(argument, name) != 0) return false;
  return value = true;
}

bool Take(const char* argument, Options& options) {
  return TakeText(argument, "--filter=", options.filter) ||
         TakeText(argument, "--exclude=", options.exclude) ||
         TakeText(argument, "--last=", options.last) ||
         TakeText(argument, "--json=", options.json_path) ||
         TakeEach(argument, "--known=", options.known) ||
         TakeNumber(argument, "--jobs=", options.limits.at_once) ||
         TakeNumber(argument, "--limit-seconds=", options.limits.seconds) ||
         TakeSwitch(argument, "--list", options.list) ||
         TakeSwitch(argument, "--verbose", options.verbose);
}

std::vector<Case> Selected(const Options& options) {
  const auto holds = [](const Case& rule, const std::string& text) {
    return !text.empty() && rule.FullName().find(text) != std::string::npos;
  };
  std::vector<Case> cases;
  for (const Case& rule : AllCases())
    if ((options.filter.empty() || holds(rule, options.filter)) && !holds(rule, options.exclude))
      cases.push_back(rule);
  std::sort(cases.begin(), cases.end(), [&](const Case& a, const Case& b) {
    if (holds(a, options.last) != holds(b, options.last)) return holds(b, options.last);
    return a.FullName() < b.FullName();
  });
  return cases;
}

bool AsExpected(const std::vector<Outcome>& outcomes, const std::vector<std::string>& known) {
  std::size_t known_failures = 0;
  bool as_expected = true;
  for (const Outcome& outcome : outcomes) {
    if (std::strcmp(outcome.Verdict(), "failed") != 0) continue;
    const bool is_known =
        std::find(known.begin(), known.end(), outcome.rule->FullName()) != known.end();
    known_failures += is_known;
    as_expected = as_expected && is_known;
  }
  if (known_failures != known.size()) std::printf("a case that is known to fail did not\n");
  return as_expected && known_failures == known.size();
}

int RunAll(const Options& options) {
  const auto print = [&](const Outcome& outcome) { PrintOutcome(outcome, options.verbose); };
  const std::vector<Case> cases = Selected(options);
  const std::vector<Outcome> outcomes = RunCases(cases, options.limits, print);
  const auto count = [&](const char* verdict) {
    return std::count_if(outcomes.begin(), outcomes.end(), [&](const Outcome& one) {
      return std::strcmp(one.Verdict(), verdict) == 0;
    });
  };
  const bool simulated = std::any_of(outcomes.begin(), outcomes.end(),
                                     [](const Outcome& one) { return one.simulated; });
  const bool written =
      options.json_path.empty() || WriteJson(options.json_path, simulated, outcomes);
  if (!written)
    std::fprintf(stderr, "contract_suite: cannot write %s\n", options.json_path.c_str());
  std::printf("%td passed, %td failed, %td skipped%s\n", count("passed"), count("failed"),
              count("skipped"), simulated ? " (simulated device)" : "");
  return AsExpected(outcomes, options.known) && written && !cases.empty() ? 0 : 1;
}

}  // namespace
}  // namespace spillway::contract

int main(int argc, char** argv) {
  using namespace spillway::contract;
  Options options;
  for (int i = 1; i < argc; ++i) {
    if (Take(argv[i], options)) continue;
    std::fprintf(stderr, "%s: what is %s?\n", argv[0], argv[i]);
    return 2;
  }
  if (!options.list) return RunAll(options);
  for (const Case& rule : Selected(options))
    std::printf("%s  [%s]\n", rule.FullName().c_str(), rule.source);
  return 0;
}
