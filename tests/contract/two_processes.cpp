#include "tests/contract/two_processes.h"

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

namespace spillway::contract {
namespace {

struct Sockets {
  int ends[2];
  Sockets() { ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0); }
};

// A message of one byte with room for one descriptor beside it.
struct DescriptorMessage {
  char byte = 0;
  iovec content{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr header{};

  DescriptorMessage() {
    header.msg_iov = &content;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof control;
  }
};

}  // namespace

void Line::SendBytes(const void* bytes, std::size_t size) const {
  ASSERT_EQ(send(socket_, bytes, size, MSG_NOSIGNAL), static_cast<ssize_t>(size));
}

void Line::ReceiveBytes(void* bytes, std::size_t size) const {
  ASSERT_EQ(recv(socket_, bytes, size, MSG_WAITALL), static_cast<ssize_t>(size));
}

void Line::SendDescriptor(int descriptor) const {
  DescriptorMessage message;
  cmsghdr* const part = CMSG_FIRSTHDR(&message.header);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(part), &descriptor, sizeof descriptor);
  ASSERT_EQ(sendmsg(socket_, &message.header, MSG_NOSIGNAL), ssize_t{1});
}

int Line::ReceiveDescriptor() const {
  DescriptorMessage message;
  ASSERT_EQ(recvmsg(socket_, &message.header, MSG_CMSG_CLOEXEC), ssize_t{1});
  const cmsghdr* const part = CMSG_FIRSTHDR(&message.header);
  ASSERT_TRUE(part != nullptr && part->cmsg_type == SCM_RIGHTS);
  int descriptor = -1;
  std::memcpy(&descriptor, CMSG_DATA(part), sizeof descriptor);
  return descriptor;
}

Partner::Partner(const std::function<void(const Line&)>& body) : Partner(Sockets().ends, body) {}

Partner::Partner(const int (&sockets)[2], const std::function<void(const Line&)>& body)
    : line_(sockets[0]), socket_(sockets[0]), process_(fork()) {
  ASSERT_TRUE(process_ >= 0);
  if (process_ > 0) {
    close(sockets[1]);
    return;
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  close(sockets[0]);
  try {
    body(Line(sockets[1]));
  } catch (const Abandoned&) {
  }
  std::_Exit(0);
}

Partner::~Partner() {
  close(socket_);
  waitpid(process_, nullptr, 0);
}

}  // namespace spillway::contract
