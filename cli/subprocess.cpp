#include "cli/subprocess.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/file.h"

namespace spillway::cli {
namespace {

[[noreturn]] void RunChild(int output_fd, std::vector<std::string> command,
                           const EnvironmentChanges& changes) {
  dup2(output_fd, STDOUT_FILENO);
  dup2(output_fd, STDERR_FILENO);
  changes.Apply();
  std::vector<char*> argv;
  for (std::string& word : command) argv.push_back(word.data());
  argv.push_back(nullptr);
  execv(argv[0], argv.data());
  _exit(127);
}

}  // namespace

SubprocessResult RunSubprocess(const std::vector<std::string>& command,
                               const EnvironmentChanges& changes) {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) return {.exit_code = -1, .output = std::strerror(errno)};
  const pid_t child = fork();
  if (child == 0) RunChild(fds[1], command, changes);
  close(fds[1]);
  SubprocessResult result = {.exit_code = -1,
                             .output = base::ReadRest(fds[0], "its output").value_or("")};
  close(fds[0]);
  int wait_status = 0;
  while (child > 0 && waitpid(child, &wait_status, 0) < 0 && errno == EINTR) {
  }
  if (child > 0 && WIFEXITED(wait_status)) result.exit_code = WEXITSTATUS(wait_status);
  return result;
}

}  // namespace spillway::cli
