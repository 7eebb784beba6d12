#include "tests/contract/two_processes.h"

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <vector>

#include "base/unix_socket.h"

namespace spillway::contract {
namespace {

struct Sockets {
  int ends[2];
  Sockets() { ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0); }
};

}  // namespace

void Line::SendBytes(const void* bytes, std::size_t size) const {
  ASSERT_EQ(send(socket_, bytes, size, MSG_NOSIGNAL), static_cast<ssize_t>(size));
}

void Line::ReceiveBytes(void* bytes, std::size_t size) const {
  ASSERT_EQ(recv(socket_, bytes, size, MSG_WAITALL), static_cast<ssize_t>(size));
}

void Line::SendDescriptor(int descriptor) const {
  ASSERT_EQ(base::SendWithFiles(socket_, "d", {&descriptor, 1}), ssize_t{1});
}

int Line::ReceiveDescriptor() const {
  char byte;
  std::vector<base::UniqueFd> files;
  ASSERT_EQ(base::ReceiveWithFiles(socket_, {&byte, 1}, 1, &files), ssize_t{1});
  ASSERT_TRUE(files.size() == 1);
  return files.front().Take();
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
