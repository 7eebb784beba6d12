#include "agent/planning/worker_process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace spillway::agent {
namespace {

using base::UniqueFd;

// A copy above the worker's descriptors, so that dup2 overwrites none of them.
UniqueFd OutOfTheWay(int file) { return UniqueFd(fcntl(file, F_DUPFD_CLOEXEC, kAnswerFile + 1)); }

// From here to exec only async-signal-safe calls: no memory allocation, no lock.
void ForgetSignals() {
  struct sigaction usual {};
  usual.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal) sigaction(signal, &usual, nullptr);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

bool PutFilesInPlace(int request, int answer) {
  const int nothing = open("/dev/null", O_RDWR);
  if (nothing < 0) return false;
  for (int standard = 0; standard <= 2; ++standard) {
    if (dup2(nothing, standard) < 0) return false;
  }
  return dup2(request, kRequestFile) >= 0 && dup2(answer, kAnswerFile) >= 0 &&
         (syscall(SYS_close_range, kAnswerFile + 1, ~0u, 0) == 0 ||
          errno == ENOSYS);  // ENOSYS: ours are close-on-exec anyway
}

[[noreturn]] void EndUnstarted(int problem) {
  char digits[8];
  size_t at = sizeof digits;
  do digits[--at] = static_cast<char>('0' + problem % 10);
  while ((problem /= 10) > 0);
  const ssize_t ignored = write(kAnswerFile, digits + at, sizeof digits - at);
  static_cast<void>(ignored);
  _exit(static_cast<int>(WorkerEnd::kNotStarted));
}

[[noreturn]] void BecomeWorker(int request, int answer, char* const* arguments) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  ForgetSignals();
  char* const nothing[] = {nullptr};
  if (PutFilesInPlace(request, answer)) execve(arguments[0], arguments, nothing);
  EndUnstarted(errno);
}

}  // namespace

std::optional<WorkerProcess> WorkerProcess::Start(const std::vector<std::string>& command,
                                                  const WorkerLimits& limits, int request,
                                                  int answer) {
  const UniqueFd own_request = OutOfTheWay(request), own_answer = OutOfTheWay(answer);
  if (!own_request || !own_answer) return std::nullopt;
  std::vector<std::string> words = command;
  words.push_back(std::to_string(limits.memory_bytes));
  words.push_back(std::to_string(limits.cpu_seconds));
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t pid = _Fork();
  if (pid == 0) BecomeWorker(own_request.get(), own_answer.get(), arguments.data());
  if (pid < 0) return std::nullopt;
  UniqueFd file(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (file) return WorkerProcess(pid, std::move(file));
  const int problem = errno;
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  errno = problem;
  return std::nullopt;
}

void WorkerProcess::Kill() const {
  syscall(SYS_pidfd_send_signal, file_.get(), SIGKILL, nullptr, 0);
}

int WorkerProcess::Reap() const {
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace spillway::agent
