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

std::optional<SlabRequest> ReceiveRequest(int socket) {
  SlabRequest request;
  if (recv(socket, &request, sizeof request, 0) != static_cast<ssize_t>(sizeof request)) return {};
  return request;
}

bool SendReply(int socket, const SlabReply& reply, int file) {
  const std::span<const int> files(&file, file >= 0 ? 1 : 0);
  return base::SendWithFiles(socket, base::BytesOf(reply), files) ==
         static_cast<ssize_t>(sizeof reply);
}

std::optional<ReceivedReply> ReceiveReply(int socket) {
  ReceivedReply received;
  SlabReply& reply = received.reply;
  std::vector<base::UniqueFd> files;
  const ssize_t size = base::ReceiveWithFiles(socket, base::PlaceOf(reply), 1, &files);
  if (size != static_cast<ssize_t>(sizeof reply)) return {};
  if (!files.empty()) received.file = std::move(files.front());
  reply.why[sizeof reply.why - 1] = 0;
  return received;
}

}  // namespace spillway::agent
