#include "agent/http/unix_listener.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace spillway::agent {
namespace {

sockaddr_un AddressOf(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  return address;
}

base::UniqueFd Socket() {
  return base::UniqueFd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

// Other files refuse connections, too.
bool IsSocket(const std::string& path) {
  struct stat facts {};
  return lstat(path.c_str(), &facts) == 0 && S_ISSOCK(facts.st_mode);
}

bool IsAbandoned(const sockaddr_un& address) {
  const base::UniqueFd probe = Socket();
  return connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 &&
         errno == ECONNREFUSED;
}

}  // namespace

base::Result<base::UniqueFd> ListenOnPath(const std::string& path, mode_t mode) {
  const sockaddr_un address = AddressOf(path);
  const auto* const generic = reinterpret_cast<const sockaddr*>(&address);
  base::UniqueFd file = Socket();
  if (IsSocket(path) && IsAbandoned(address)) unlink(path.c_str());
  // Nobody can connect before it listens, so the mode holds from the first client on.
  if (bind(file.get(), generic, sizeof address) != 0 || chmod(path.c_str(), mode) != 0 ||
      listen(file.get(), SOMAXCONN) != 0)
    return base::ErrnoError("cannot listen on " + path);
  return file;
}

}  // namespace spillway::agent
