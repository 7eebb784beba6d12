#include "agent/loop/passed_socket.h"

#include <algorithm>
#include <cstddef>

#include "base/path.h"
#include "base/unix_socket.h"

namespace spillway::agent {
namespace {

bool IsSameAddress(const std::string& a, const std::string& b) {
  if (!a.starts_with('/') || !b.starts_with('/')) return a == b;
  return base::IsSamePath(a, b);
}

}  // namespace

std::string AddressOf(int socket) {
  sockaddr_un bound{};
  socklen_t size = sizeof bound;
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&bound), &size) != 0) return "";
  constexpr size_t kPathAt = offsetof(sockaddr_un, sun_path);
  if (bound.sun_family != AF_UNIX || size <= kPathAt) return "";
  const std::string_view path(bound.sun_path, std::min<size_t>(size, sizeof bound) - kPathAt);
  if (path.front() == 0) return "@" + std::string(path.substr(1));
  return std::string(path.substr(0, path.find('\0')));
}

base::Result<Entrance> EntranceOf(const std::string& address, std::optional<Entrance> known,
                                  const ListenAddresses& configured) {
  if (!configured.jobs.empty() && IsSameAddress(address, configured.jobs))
    return Entrance::kJobsOnly;
  if (known) return *known;
  // Without a socket for jobs, the unit alone may say where the agent listens.
  if (configured.jobs.empty() || IsSameAddress(address, configured.all)) return Entrance::kAll;
  return base::Error{
      "a socket was passed on at " + (address.empty() ? "no address" : address) +
          ", which is neither [agent] socket nor job_socket",
      "operators' rights go to no unknown socket",
      "write the same path into the socket's unit and the configuration, or give the jobs' unit "
      "FileDescriptorName=jobs"};
}

}  // namespace spillway::agent
