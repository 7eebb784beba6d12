#include "agent/planning/worker_process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace spillway::agent {
namespace {

using base::UniqueFd;

// Beyond those that the worker gets, so that none of them is overwritten while they are put in their places.
UniqueFd OutOfTheWay(int file) { return UniqueFd(fcntl(file, F_DUPFD_CLOEXEC, kAnswerFile + 1)); }

class SpawnActions {
 public:
  SpawnActions(int request, int answer) {
    posix_spawn_file_actions_init(&files_);
    for (int standard = 0; standard <= 2; ++standard)
      posix_spawn_file_actions_addopen(&files_, standard, "/dev/null", O_RDWR, 0);
    posix_spawn_file_actions_adddup2(&files_, request, kRequestFile);
    posix_spawn_file_actions_adddup2(&files_, answer, kAnswerFile);
    posix_spawn_file_actions_addclosefrom_np(&files_, kAnswerFile + 1);
    posix_spawnattr_init(&attributes_);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~SpawnActions() {
    posix_spawn_file_actions_destroy(&files_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnActions(const SpawnActions&) = delete;
  SpawnActions& operator=(const SpawnActions&) = delete;

  int Spawn(pid_t* pid, std::vector<std::string> words) const {
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    char* const nothing[] = {nullptr};
    return posix_spawn(pid, arguments[0], &files_, &attributes_, arguments.data(), nothing);
  }

 private:
  posix_spawn_file_actions_t files_;
  posix_spawnattr_t attributes_;
};

}  // namespace

std::optional<WorkerProcess> WorkerProcess::Start(const std::vector<std::string>& command,
                                                  const WorkerLimits& limits, int request, int answer) {
  const UniqueFd own_request = OutOfTheWay(request), own_answer = OutOfTheWay(answer);
  if (!own_request || !own_answer) return std::nullopt;
  std::vector<std::string> words = command;
  words.push_back(std::to_string(limits.memory_bytes));
  words.push_back(std::to_string(limits.cpu_seconds));
  pid_t pid = 0;
  errno = SpawnActions(own_request.get(), own_answer.get()).Spawn(&pid, words);
  if (errno != 0) return std::nullopt;
  UniqueFd file(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (file) return WorkerProcess(pid, std::move(file));
  const int problem = errno;
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  errno = problem;
  return std::nullopt;
}

void WorkerProcess::Kill() const { syscall(SYS_pidfd_send_signal, file_.get(), SIGKILL, nullptr, 0); }

int WorkerProcess::Reap() const {
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace spillway::agent
