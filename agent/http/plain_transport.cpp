#include <sys/socket.h>

#include "agent/http/transport.h"

namespace spillway::agent {
namespace {

class Plain final : public Transport {
 public:
  explicit Plain(base::UniqueFd socket) : socket_(std::move(socket)) {}

  int file() const override { return socket_.get(); }
  ssize_t Receive(char* to, size_t size) override { return recv(file(), to, size, 0); }
  ssize_t Send(const iovec* parts, size_t count) override {
    msghdr message{};
    message.msg_iov = const_cast<iovec*>(parts);
    message.msg_iovlen = count;
    return sendmsg(file(), &message, MSG_NOSIGNAL);
  }
  uint32_t Needs(uint32_t wanted) const override { return wanted; }
  void EndSending() override { shutdown(file(), SHUT_WR); }

 private:
  const base::UniqueFd socket_;
};

}  // namespace

std::unique_ptr<Transport> PlainTransport(base::UniqueFd socket) {
  return std::make_unique<Plain>(std::move(socket));
}

}  // namespace spillway::agent
