#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>

#include "agent/http/tls/tls_server.h"

namespace spillway::agent {
namespace {

struct Freed {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  void operator()(SSL* session) const { SSL_free(session); }
};

std::string WhyOpenSslFailed() {
  const unsigned long code = ERR_peek_last_error();
  ERR_clear_error();
  const char* const reason = ERR_reason_error_string(code);
  return reason != nullptr ? reason : "OpenSSL gives no reason";
}

class TlsTransport final : public Transport {
 public:
  TlsTransport(base::UniqueFd socket, std::unique_ptr<SSL, Freed> session)
      : socket_(std::move(socket)), session_(std::move(session)) {}

  int file() const override { return socket_.get(); }

  ssize_t Receive(char* to, size_t size) override {
    size_t received = 0;
    ERR_clear_error();
    const int done = SSL_read_ex(session_.get(), to, size, &received);
    return done == 1 ? Done(received) : NotDone(done);
  }

  // One part at a time: a record has at most 16 KiB.
  ssize_t Send(const iovec* parts, size_t count) override {
    const iovec* const end = parts + count;
    const iovec* const part =
        std::find_if(parts, end, [](const iovec& one) { return one.iov_len > 0; });
    if (part == end) return 0;
    size_t sent = 0;
    ERR_clear_error();
    const int done = SSL_write_ex(session_.get(), part->iov_base, part->iov_len, &sent);
    return done == 1 ? Done(sent) : NotDone(done);
  }

  uint32_t Needs(uint32_t wanted) const override { return needs_ != 0 ? needs_ : wanted; }

  void EndSending() override {
    ERR_clear_error();
    SSL_shutdown(session_.get());  // sends the close_notify, if there is room
    shutdown(socket_.get(), SHUT_WR);
  }

 private:
  ssize_t Done(size_t bytes) {
    needs_ = 0;
    return static_cast<ssize_t>(bytes);
  }

  ssize_t NotDone(int result) {
    const int error = SSL_get_error(session_.get(), result);
    needs_ = 0;
    if (error == SSL_ERROR_WANT_READ) needs_ = EPOLLIN;
    if (error == SSL_ERROR_WANT_WRITE) needs_ = EPOLLOUT;
    if (error == SSL_ERROR_ZERO_RETURN) return 0;
    errno = needs_ != 0 ? EAGAIN : ECONNRESET;
    return -1;
  }

  const base::UniqueFd socket_;
  const std::unique_ptr<SSL, Freed> session_;
  uint32_t needs_ = 0;  // what OpenSSL waits for; 0: nothing
};

class OpenSslServer final : public TlsServer {
 public:
  explicit OpenSslServer(std::unique_ptr<SSL_CTX, Freed> context) : context_(std::move(context)) {}

  std::unique_ptr<Transport> Accept(base::UniqueFd socket) const override {
    std::unique_ptr<SSL, Freed> session(SSL_new(context_.get()));
    if (session == nullptr || SSL_set_fd(session.get(), socket.get()) != 1) return nullptr;
    SSL_set_accept_state(session.get());
    return std::make_unique<TlsTransport>(std::move(socket), std::move(session));
  }

 private:
  const std::unique_ptr<SSL_CTX, Freed> context_;
};

// Otherwise OpenSSL asks on the terminal.
int NoPassphrase(char*, int, int, void*) { return 0; }

}  // namespace

base::Result<std::shared_ptr<const TlsServer>> TlsServer::Open(const std::string& certificate,
                                                               const std::string& key) {
  std::unique_ptr<SSL_CTX, Freed> context(SSL_CTX_new(TLS_server_method()));
  if (context == nullptr) return base::Error{"no TLS", WhyOpenSslFailed()};
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE |
                                      SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                      SSL_MODE_RELEASE_BUFFERS);
  // A client that sends only handshake messages must not keep one read busy.
  SSL_CTX_clear_mode(context.get(), SSL_MODE_AUTO_RETRY);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_default_passwd_cb(context.get(), NoPassphrase);
  if (SSL_CTX_use_certificate_chain_file(context.get(), certificate.c_str()) != 1)
    return base::Error{"cannot use [http] certificate " + certificate, WhyOpenSslFailed()};
  if (SSL_CTX_use_PrivateKey_file(context.get(), key.c_str(), SSL_FILETYPE_PEM) != 1)
    return base::Error{"cannot use [http] key " + key, WhyOpenSslFailed(),
                       "a key with a passphrase must be stored without: openssl pkey"};
  return std::shared_ptr<const TlsServer>(std::make_shared<OpenSslServer>(std::move(context)));
}

}  // namespace spillway::agent
