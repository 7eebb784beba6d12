#include "agent/service/supervisor.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <sstream>

#include "base/unique_fd.h"

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
  Say("RELOADING=1\nMONOTONIC_USEC=" + std::to_string(monotonic_us));
}

void Supervisor::Say(const std::string& text) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  if (address_.empty() || address_.size() >= sizeof name.sun_path) return;
  memcpy(name.sun_path, address_.data(), address_.size());
  if (name.sun_path[0] == '@') name.sun_path[0] = 0;
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address_.size());
  const base::UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sendto(socket.get(), text.data(), text.size(), MSG_NOSIGNAL, reinterpret_cast<sockaddr*>(&name), length);
}

std::vector<Supervisor::Socket> Supervisor::TakeSockets() {
  std::vector<Socket> sockets;
  if (Variable("LISTEN_PID") != std::to_string(getpid())) return sockets;
  const int count = std::atoi(Variable("LISTEN_FDS").c_str());
  std::istringstream names(Variable("LISTEN_FDNAMES"));
  for (int i = 0; i < count; ++i) {
    std::string name;
    std::getline(names, name, ':');
    fcntl(kFirstSocket + i, F_SETFD, FD_CLOEXEC);
    fcntl(kFirstSocket + i, F_SETFL,
          O_NONBLOCK);  // whoever opened it may not have; the loop never waits in accept
    sockets.push_back({kFirstSocket + i, name});
  }
  for (const char* variable : {"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"}) unsetenv(variable);
  return sockets;
}

}  // namespace spillway::agent
