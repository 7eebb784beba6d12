#include "agent/http/tcp_listener.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <charconv>
#include <memory>
#include <optional>

namespace spillway::agent {
namespace {

std::optional<uint16_t> PortIn(const std::string& text) {
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size() && !text.empty()
             ? std::optional(port)
             : std::nullopt;
}

// No SO_REUSEPORT: two agents could share the port, and each scrape would reach one of them by
// chance.
base::UniqueFd Listening(const addrinfo& where) {
  base::UniqueFd file(
      socket(where.ai_family, where.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, where.ai_protocol));
  const int yes = 1, no = 0;
  if (!file) return {};
  setsockopt(file.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (where.ai_family == AF_INET6)
    setsockopt(file.get(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
  const bool listens =
      bind(file.get(), where.ai_addr, where.ai_addrlen) == 0 && listen(file.get(), SOMAXCONN) == 0;
  return listens ? std::move(file) : base::UniqueFd();
}

TcpListener ListenerOf(base::UniqueFd socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
    return {.socket = std::move(socket)};
  const auto& four = reinterpret_cast<const sockaddr_in&>(address);
  const auto& six = reinterpret_cast<const sockaddr_in6&>(address);
  const bool is_six = address.ss_family == AF_INET6;
  return {.socket = std::move(socket),
          .port = ntohs(is_six ? six.sin6_port : four.sin_port),
          .is_loopback = is_six
                             ? IN6_IS_ADDR_LOOPBACK(&six.sin6_addr)
                             : ntohl(four.sin_addr.s_addr) >> IN_CLASSA_NSHIFT == IN_LOOPBACKNET};
}

}  // namespace

base::Result<TcpListener> ListenOnTcp(const std::string& address) {
  const size_t colon = address.rfind(':');
  const std::string port = colon == address.npos ? "" : address.substr(colon + 1);
  if (!PortIn(port))
    return base::Error{"'" + address + "' is no address and port like 127.0.0.1:9477"};
  std::string host = address.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  // Where it fails, there is no address to listen on.
  static_cast<void>(
      getaddrinfo(host.empty() ? nullptr : host.c_str(), port.c_str(), &wanted, &found));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> all(
      found, [](addrinfo* list) { list != nullptr ? freeaddrinfo(list) : void(); });
  base::UniqueFd socket;
  for (const addrinfo* one = found; one != nullptr && !socket; one = one->ai_next)
    socket = Listening(*one);
  if (!socket) return base::Error{"cannot listen on " + address};
  return ListenerOf(std::move(socket));
}

}  // namespace spillway::agent
