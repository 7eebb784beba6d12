#include "agent/pool/slab_wire.h"

#include <sys/socket.h>

#include <cstring>

namespace spillway::agent {
namespace {

union FileSpace {
  char bytes[CMSG_SPACE(sizeof(int))];
  cmsghdr alignment;
};

}  // namespace

bool SendRequest(int socket, const SlabRequest& request) {
  return send(socket, &request, sizeof request, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof request);
}

bool ReceiveRequest(int socket, SlabRequest* request) {
  return recv(socket, request, sizeof *request, 0) == static_cast<ssize_t>(sizeof *request);
}

bool SendReply(int socket, const SlabReply& reply, int file) {
  SlabReply copy = reply;
  iovec body = {&copy, sizeof copy};
  msghdr message{};
  message.msg_iov = &body;
  message.msg_iovlen = 1;
  FileSpace space{};
  if (file >= 0) {
    message.msg_control = space.bytes;
    message.msg_controllen = sizeof space.bytes;
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof file);
    std::memcpy(CMSG_DATA(header), &file, sizeof file);
  }
  return sendmsg(socket, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof copy);
}

bool ReceiveReply(int socket, SlabReply* reply, base::UniqueFd* file) {
  iovec body = {reply, sizeof *reply};
  msghdr message{};
  message.msg_iov = &body;
  message.msg_iovlen = 1;
  FileSpace space{};
  message.msg_control = space.bytes;
  message.msg_controllen = sizeof space.bytes;
  if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != static_cast<ssize_t>(sizeof *reply)) return false;
  const cmsghdr* const header = CMSG_FIRSTHDR(&message);
  if (header != nullptr && header->cmsg_type == SCM_RIGHTS && header->cmsg_len == CMSG_LEN(sizeof(int))) {
    int received = -1;
    std::memcpy(&received, CMSG_DATA(header), sizeof received);
    file->Reset(received);
  }
  reply->why[sizeof reply->why - 1] = 0;
  return true;
}

}  // namespace spillway::agent
