#include "agent/pool/slab_wire.h"

#include <span>
#include <utility>
#include <vector>

#include "base/unix_socket.h"

namespace spillway::agent {
bool SendRequest(int socket, const SlabRequest& request) {
  return send(socket, &request, sizeof request, MSG_NOSIGNAL) ==
         static_cast<ssize_t>(sizeof request);
}

bool ReceiveRequest(int socket, SlabRequest* request) {
  return recv(socket, request, sizeof *request, 0) == static_cast<ssize_t>(sizeof *request);
}

bool SendReply(int socket, const SlabReply& reply, int file) {
  const std::span<const int> files(&file, file >= 0 ? 1 : 0);
  return base::SendWithFiles(socket, base::BytesOf(reply), files) ==
         static_cast<ssize_t>(sizeof reply);
}

bool ReceiveReply(int socket, SlabReply* reply, base::UniqueFd* file) {
  std::vector<base::UniqueFd> files;
  const ssize_t size = base::ReceiveWithFiles(socket, base::PlaceOf(*reply), 1, &files);
  if (size != static_cast<ssize_t>(sizeof *reply)) return false;
  if (!files.empty()) *file = std::move(files.front());
  reply->why[sizeof reply->why - 1] = 0;
  return true;
}

}  // namespace spillway::agent
