#include "agent/service/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdlib>
#include <span>
#include <sstream>

#include "base/unix_socket.h"

namespace spillway::agent {
namespace {

constexpr int kFirstSocket = 3;

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

Supervisor::Supervisor() : address_(Variable("NOTIFY_SOCKET")) {
  const std::string pid = Variable("WATCHDOG_PID"), interval_us = Variable("WATCHDOG_USEC");
  if (interval_us.empty() || (!pid.empty() && pid != std::to_string(getpid()))) return;
  watchdog_interval_ns_ = std::strtoll(interval_us.c_str(), nullptr, 10) * 1000 / 2;
}

void Supervisor::Reloading(int64_t monotonic_us) {
  Notify("RELOADING=1\nMONOTONIC_USEC=" + std::to_string(monotonic_us));
}

bool Supervisor::Keep(const std::string& name, int file) {
  return Send("FDSTORE=1\nFDPOLL=0\nFDNAME=" + name, file, MSG_DONTWAIT);
}

bool Supervisor::Drop(const std::string& name) {
  return Send("FDSTOREREMOVE=1\nFDNAME=" + name, -1, MSG_DONTWAIT);
}

// False: the receiver's queue is full.
bool Supervisor::Send(const std::string& text, int file, int flags) {
  const base::UnixAddress to = base::UnixAddressOf(address_);
  if (to.size == 0) return true;
  const base::UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  // Bounded, as the loop has others to serve.
  const timeval patience{1, 0};
  setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  const std::span<const int> files(&file, file >= 0 ? 1 : 0);
  return base::SendWithFiles(socket.get(), text, files, flags, &to) >= 0 || errno != EAGAIN;
}

std::vector<Supervisor::File> Supervisor::TakeFiles() {
  std::vector<File> files;
  if (Variable("LISTEN_PID") != std::to_string(getpid())) return files;
  const int count = std::atoi(Variable("LISTEN_FDS").c_str());
  std::istringstream names(Variable("LISTEN_FDNAMES"));
  for (int i = 0; i < count; ++i) {
    std::string name;
    std::getline(names, name, ':');
    fcntl(kFirstSocket + i, F_SETFD, FD_CLOEXEC);
    fcntl(kFirstSocket + i, F_SETFL,
          O_NONBLOCK);  // another program may have opened it blocking; accept must never wait
    files.push_back({kFirstSocket + i, name});
  }
  for (const char* variable : {"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"}) unsetenv(variable);
  return files;
}

// Moves the files out of the way first, then to their final numbers. All others are close-on-exec.
void Supervisor::Reexecute(char* const* arguments, const std::vector<File>& files) {
  const int count = static_cast<int>(files.size());
  std::vector<base::UniqueFd> copies;
  std::string names;
  for (const File& file : files) {
    copies.emplace_back(fcntl(file.file, F_DUPFD_CLOEXEC, kFirstSocket + count));
    names += (names.empty() ? "" : ":") + file.name;
    if (!copies.back()) return;
  }
  for (int i = 0; i < count; ++i) dup2(copies[static_cast<size_t>(i)].get(), kFirstSocket + i);
  setenv("LISTEN_PID", std::to_string(getpid()).c_str(), 1);
  setenv("LISTEN_FDS", std::to_string(count).c_str(), 1);
  setenv("LISTEN_FDNAMES", names.c_str(), 1);
  execvp(arguments[0], arguments);
}

}  // namespace spillway::agent
