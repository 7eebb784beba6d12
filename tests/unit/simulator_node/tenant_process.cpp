#include "tests/unit/simulator_node/tenant_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "simulator/driver/machine/node_statistics.h"
#include "tests/support/paths.h"

namespace spillway::test {
namespace {

std::string NewPath() {
  static int count = 0;
  return "/tmp/spillway-node-" + std::to_string(getpid()) + "-" + std::to_string(++count);
}

using Settings = std::vector<std::string>;  // "NAME=value"

TenantProcess Spawn(const Settings& settings, const std::vector<std::string>& words) {
  int to[2];
  int from[2];
  if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  const std::string program = BuildPath("tests-bin/simulator_node_tenant");
  std::vector<char*> arguments = {const_cast<char*>(program.c_str())};
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  std::vector<char*> environment;
  for (const std::string& setting : settings)
    environment.push_back(const_cast<char*>(setting.c_str()));
  environment.push_back(nullptr);
  const pid_t pid = fork();
  if (pid == 0) {
    dup2(to[0], STDIN_FILENO);
    dup2(from[1], STDOUT_FILENO);
    execve(program.c_str(), arguments.data(), environment.data());
    _exit(127);
  }
  close(to[0]);
  close(from[1]);
  return {pid, to[1], from[0]};
}

}  // namespace

TenantProcess::TenantProcess(TenantProcess&& other) noexcept
    : pid_(other.pid_), to_(other.to_), from_(other.from_) {
  other.pid_ = 0;
}

TenantProcess::~TenantProcess() {
  if (pid_ == 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  close(to_);
  close(from_);
}

std::string TenantProcess::Line() {
  std::string line;
  char character = 0;
  while (read(from_, &character, 1) == 1 && character != '\n') line += character;
  return line;
}

bool TenantProcess::HasLineWithin(int milliseconds) const {
  pollfd watched{from_, POLLIN, 0};
  return poll(&watched, 1, milliseconds) > 0;
}

void TenantProcess::Continue() {
  if (write(to_, "\n", 1) != 1) throw std::runtime_error("the tenant has ended");
}

void TenantProcess::Signal(int signal) { kill(pid_, signal); }

std::vector<std::string> TenantProcess::Rest() {
  std::vector<std::string> lines;
  for (std::string line = Line(); !line.empty(); line = Line()) lines.push_back(line);
  int status = 0;
  waitpid(pid_, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) lines.push_back("failed");
  close(to_);
  close(from_);
  pid_ = 0;
  return lines;
}

long long TimeOf(const std::vector<std::string>& lines) {
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    if (line->rfind("time ", 0) == 0) return std::stoll(line->substr(5));
  }
  throw std::runtime_error("no time was printed");
}

long long ElapsedIn(const std::vector<std::string>& lines) {
  return TimeOf(lines) - TimeOf({lines.front()});
}

TestMachine::TestMachine(long long capacity_mib) : path_(NewPath()), capacity_mib_(capacity_mib) {}

TestMachine::~TestMachine() { unlink(path_.c_str()); }

TenantProcess TestMachine::Start(const std::string& slot,
                                 const std::vector<std::string>& words) const {
  return Spawn({"SPILLWAY_SIM_NODE=" + path_, "SPILLWAY_SIM_SLOT=" + slot,
                "SPILLWAY_SIM_CAPACITY=" + std::to_string(capacity_mib_ << 20)},
               words);
}

TenantProcess TestMachine::StartWithCapacity(long long capacity_mib,
                                             const std::vector<std::string>& words) const {
  return Spawn(
      {"SPILLWAY_SIM_NODE=" + path_, "SPILLWAY_SIM_CAPACITY=" + std::to_string(capacity_mib << 20)},
      words);
}

nlohmann::json TestMachine::Statistics() const {
  const base::Result<std::string> json = simulator::ReadNodeStatistics(path_);
  if (!json) throw std::runtime_error(json.text());
  return nlohmann::json::parse(*json);
}

std::vector<std::string> RunAlone(const std::vector<std::string>& words) {
  return Spawn({}, words).Rest();
}

}  // namespace spillway::test
