#include "tests/contract/runner.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <list>
#include <string>

#include "tests/contract/report_pipe.h"
#include "tests/contract/simulated.h"

namespace spillway::contract {
namespace {

using Clock = std::chrono::steady_clock;

struct Running {
  const Case* rule;
  pid_t child;
  int reports;  // the reading end of the child's pipe
  Clock::time_point start;
  std::string text;
};

[[noreturn]] void RunInChild(const Case& rule, int report_fd) {
  dup2(report_fd, kReportFd);
  close(report_fd);
  try {
    rule.body();
  } catch (const Abandoned&) {
  } catch (const std::exception& error) {
    ReportFailure("harness", 0, std::string("exception: ") + error.what());
  }
  if (DriverIsSimulated()) ReportSimulatedDriver();
  std::exit(0);
}

Running Start(const Case& rule) {
  int ends[2];
  if (pipe(ends) != 0) std::abort();
  const pid_t child = fork();
  if (child == 0) {
    setpgid(0, 0);  // so that everything the case starts ends with it
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(ends[0]);
    RunInChild(rule, ends[1]);
  }
  close(ends[1]);
  return {&rule, child, ends[0], Clock::now(), {}};
}

Figure ParseFigure(const std::string& record) {
  const std::size_t first = record.find('\t'), second = record.find('\t', first + 1);
  return {record.substr(0, first), record.substr(first + 1, second - first - 1),
          record.substr(second + 1)};
}

void Sort(const std::string& text, Outcome& outcome) {
  std::size_t begin = 0;
  for (std::size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    if (end < begin + 2) continue;
    const std::string record = text.substr(begin + 2, end - begin - 2);
    if (text[begin] == kFailureRecord) outcome.failures.push_back(record);
    if (text[begin] == kObservationRecord) outcome.observations.push_back(record);
    if (text[begin] == kFigureRecord) outcome.figures.push_back(ParseFigure(record));
    if (text[begin] == kSimulatedRecord) outcome.simulated = true;
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

// A child past its limit may be stuck in the kernel driver, and then is abandoned.
void Kill(const Running& running) {
  kill(-running.child, SIGKILL);
  kill(running.child, SIGKILL);
  for (int attempt = 0; attempt < 50; ++attempt) {
    if (waitpid(running.child, nullptr, WNOHANG) != 0) return;
    usleep(100'000);
  }
}

Outcome Finish(const Running& running, const RunLimits& limits, bool late) {
  Outcome outcome;
  outcome.rule = running.rule;
  Sort(running.text, outcome);
  if (late) {
    outcome.failures.push_back("did not end within " + std::to_string(limits.seconds) + " s");
    Kill(running);
  } else {
    int status = 0;
    waitpid(running.child, &status, 0);
    JudgeExit(status, outcome);
  }
  close(running.reports);
  outcome.seconds = std::chrono::duration<double>(Clock::now() - running.start).count();
  return outcome;
}

// Reads the child's records; false once the child has closed its end.
bool TakeReports(Running& running) {
  char buffer[4096];
  const ssize_t got = read(running.reports, buffer, sizeof buffer);
  if (got < 0) return errno == EINTR;
  running.text.append(buffer, static_cast<std::size_t>(got));
  return got > 0;
}

class Batch {
 public:
  Batch(const RunLimits& limits, const std::function<void(const Outcome&)>& done,
        std::vector<Outcome>& outcomes)
      : limits_(limits), done_(done), outcomes_(outcomes) {}

  void Run(const std::vector<const Case*>& cases, int at_once) {
    std::size_t next = 0;
    while (next < cases.size() || !running_.empty()) {
      while (next < cases.size() && running_.size() < static_cast<std::size_t>(at_once))
        running_.push_back(Start(*cases[next++]));
      Wait();
    }
  }

 private:
  void Wait() {
    std::vector<pollfd> waiting;
    for (const Running& one : running_) waiting.push_back({one.reports, POLLIN, 0});
    poll(waiting.data(), waiting.size(), 200);
    auto state = waiting.begin();
    for (auto one = running_.begin(); one != running_.end(); ++state) {
      const bool ended = state->revents != 0 && !TakeReports(*one);
      const bool late = !ended && Clock::now() - one->start > std::chrono::seconds(limits_.seconds);
      if (!ended && !late) {
        ++one;
        continue;
      }
      outcomes_.push_back(Finish(*one, limits_, late));
      done_(outcomes_.back());
      one = running_.erase(one);
    }
  }

  const RunLimits& limits_;
  const std::function<void(const Outcome&)>& done_;
  std::vector<Outcome>& outcomes_;
  std::list<Running> running_;
};

}  // namespace

std::vector<Outcome> RunCases(const std::vector<Case>& cases, const RunLimits& limits,
                              const std::function<void(const Outcome&)>& done) {
  std::vector<const Case*> together, alone;
  for (const Case& rule : cases)
    (rule.company == Company::kAny && limits.at_once > 1 ? together : alone).push_back(&rule);
  std::vector<Outcome> outcomes;
  Batch(limits, done, outcomes).Run(together, limits.at_once);
  Batch(limits, done, outcomes).Run(alone, 1);
  return outcomes;
}

}  // namespace spillway::contract
