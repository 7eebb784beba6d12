// Runs the contract cases: each in a forked child with a time limit, then one summary line.
//
//   contract_suite [--list] [--filter=SUBSTRING] [--exclude=SUBSTRING] [--limit-seconds=N] [--json=FILE] [--verbose]
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include "tests/contract/contract.h"
#include "tests/contract/report_pipe.h"

namespace spillway::contract {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  std::string filter;
  std::string exclude;
  std::string json_path;
  int limit_seconds = 30;
  bool list = false;
  bool verbose = false;
};

struct Outcome {
  const Case* rule;
  std::vector<std::string> failures;
  std::vector<std::string> observations;
  std::string skip_reason;
  double seconds = 0;

  const char* Verdict() const {
    if (!failures.empty()) return "failed";
    return skip_reason.empty() ? "passed" : "skipped";
  }
};

std::string FullName(const Case& rule) { return std::string(rule.group) + "." + rule.name; }

[[noreturn]] void RunInChild(const Case& rule, int report_fd) {
  dup2(report_fd, kReportFd);
  close(report_fd);
  try {
    rule.body();
  } catch (const Abandoned&) {
  } catch (const std::exception& error) {
    ReportFailure("harness", 0, std::string("exception: ") + error.what());
  }
  std::exit(0);
}

// Reads the child's records until it closes the pipe or the deadline passes; false at the deadline.
bool Collect(int fd, Clock::time_point deadline, std::string& text) {
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd waiting{fd, POLLIN, 0};
    if (left <= 0 || poll(&waiting, 1, static_cast<int>(left)) == 0) return false;
    char buffer[4096];
    const ssize_t got = read(fd, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return true;
    text.append(buffer, static_cast<std::size_t>(got));
  }
}

void Sort(const std::string& text, Outcome& outcome) {
  std::size_t begin = 0;
  for (std::size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    if (end < begin + 2) continue;
    const std::string record = text.substr(begin + 2, end - begin - 2);
    if (text[begin] == kFailureRecord) outcome.failures.push_back(record);
    if (text[begin] == kObservationRecord) outcome.observations.push_back(record);
    if (text[begin] == kSkipRecord) outcome.skip_reason = record;
  }
}

void JudgeExit(int status, Outcome& outcome) {
  if (WIFSIGNALED(status)) {
    outcome.failures.push_back(std::string("died of signal ") + strsignal(WTERMSIG(status)));
  } else if (WEXITSTATUS(status) != 0) {
    outcome.failures.push_back("exited with status " + std::to_string(WEXITSTATUS(status)));
  }
}

// A child that outlived its limit may be stuck in the kernel driver: it is killed and, if need be, left behind.
void ReapLate(pid_t child) {
  kill(child, SIGKILL);
  for (int attempt = 0; attempt < 50; ++attempt) {
    if (waitpid(child, nullptr, WNOHANG) != 0) return;
    usleep(100'000);
  }
}

Outcome Run(const Case& rule, int limit_seconds) {
  Outcome outcome;
  outcome.rule = &rule;
  int ends[2];
  if (pipe(ends) != 0) std::abort();
  const auto start = Clock::now();
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    RunInChild(rule, ends[1]);
  }
  close(ends[1]);
  std::string text;
  if (Collect(ends[0], start + std::chrono::seconds(limit_seconds), text)) {
    int status = 0;
    waitpid(child, &status, 0);
    JudgeExit(status, outcome);
  } else {
    outcome.failures.push_back("did not end within " + std::to_string(limit_seconds) + " s");
    ReapLate(child);
  }
  close(ends[0]);
  Sort(text, outcome);
  outcome.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return outcome;
}

void Print(const Outcome& outcome, bool verbose) {
  const std::string verdict = outcome.Verdict();
  if (verdict == "passed" && !verbose && outcome.observations.empty()) return;
  std::printf("%-7s %s (%.2f s)\n", verdict.c_str(), FullName(*outcome.rule).c_str(), outcome.seconds);
  for (const auto& text : outcome.failures) std::printf("        %s\n", text.c_str());
  if (!outcome.failures.empty()) std::printf("        rule: %s\n", outcome.rule->source);
  if (!outcome.skip_reason.empty()) std::printf("        %s\n", outcome.skip_reason.c_str());
  for (const auto& text : outcome.observations) std::printf("        observed: %s\n", text.c_str());
  std::fflush(stdout);
}

std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return quoted + '"';
}

std::string List(const std::vector<std::string>& texts) {
  std::string list = "[";
  for (const auto& text : texts) list += (list.size() > 1 ? ", " : "") + Quoted(text);
  return list + "]";
}

bool WriteJson(const std::string& path, const std::vector<Outcome>& outcomes) {
  std::FILE* file = std::fopen(path.c_str(), "w");
  if (!file) return false;
  std::fprintf(file, "{\"schema\": 1, \"cases\": [");
  const char* separator = "\n";
  for (const auto& outcome : outcomes) {
    std::fprintf(file, "%s  {\"name\": %s, \"verdict\": \"%s\", \"seconds\": %.3f, \"source\": %s,\n",
                 separator, Quoted(FullName(*outcome.rule)).c_str(), outcome.Verdict(), outcome.seconds,
                 Quoted(outcome.rule->source).c_str());
    std::fprintf(file, "   \"failures\": %s, \"observations\": %s, \"skip_reason\": %s}",
                 List(outcome.failures).c_str(), List(outcome.observations).c_str(),
                 Quoted(outcome.skip_reason).c_str());
    separator = ",\n";
  }
  std::fprintf(file, "\n]}\n");
  return std::fclose(file) == 0;
}

bool TakeValue(const char* argument, const char* name, std::string& value) {
  const std::size_t length = std::strlen(name);
  if (std::strncmp(argument, name, length) != 0) return false;
  value = argument + length;
  return true;
}

bool Parse(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; ++i) {
    std::string value;
    if (TakeValue(argv[i], "--filter=", options.filter)) continue;
    if (TakeValue(argv[i], "--exclude=", options.exclude)) continue;
    if (TakeValue(argv[i], "--json=", options.json_path)) continue;
    if (TakeValue(argv[i], "--limit-seconds=", value)) {
      options.limit_seconds = std::atoi(value.c_str());
    } else if (std::strcmp(argv[i], "--list") == 0) {
      options.list = true;
    } else if (std::strcmp(argv[i], "--verbose") == 0) {
      options.verbose = true;
    } else {
      std::fprintf(stderr, "contract_suite: unknown argument %s\n", argv[i]);
      return false;
    }
  }
  return options.limit_seconds > 0;
}

std::vector<Case> Selected(const Options& options) {
  std::vector<Case> cases;
  for (const Case& rule : AllCases()) {
    const std::string name = FullName(rule);
    if (name.find(options.filter) == std::string::npos) continue;
    if (!options.exclude.empty() && name.find(options.exclude) != std::string::npos) continue;
    cases.push_back(rule);
  }
  std::sort(cases.begin(), cases.end(),
            [](const Case& a, const Case& b) { return FullName(a) < FullName(b); });
  return cases;
}

int RunAll(const Options& options) {
  const std::vector<Case> cases = Selected(options);
  std::vector<Outcome> outcomes;
  std::size_t failed = 0, skipped = 0;
  for (const Case& rule : cases) {
    outcomes.push_back(Run(rule, options.limit_seconds));
    Print(outcomes.back(), options.verbose);
    failed += !outcomes.back().failures.empty();
    skipped += std::strcmp(outcomes.back().Verdict(), "skipped") == 0;
  }
  const bool written = options.json_path.empty() || WriteJson(options.json_path, outcomes);
  if (!written) std::fprintf(stderr, "contract_suite: cannot write %s\n", options.json_path.c_str());
  std::printf("%zu passed, %zu failed, %zu skipped\n", cases.size() - failed - skipped, failed, skipped);
  return failed == 0 && written && !cases.empty() ? 0 : 1;
}

}  // namespace
}  // namespace spillway::contract

int main(int argc, char** argv) {
  using namespace spillway::contract;
  Options options;
  if (!Parse(argc, argv, options)) return 2;
  if (!options.list) return RunAll(options);
  for (const Case& rule : Selected(options)) std::printf("%s  [%s]\n", FullName(rule).c_str(), rule.source);
  return 0;
}
