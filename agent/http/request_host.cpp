#include "agent/http/request_host.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cctype>
#include <string>

namespace spillway::agent {
namespace {

// "[::1]" of "[::1]:9477", "node" of "Node.:9477".
std::string NameIn(std::string_view authority) {
  const size_t bracket = authority.starts_with('[') ? authority.find(']') : 0;
  if (bracket == authority.npos) return "[";  // no name has it
  std::string name(authority.substr(0, authority.find(':', bracket)));
  if (name.ends_with('.')) name.pop_back();
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return name;
}

bool IsLiteralAddress(const std::string& name) {
  in6_addr place{};  // has room for both kinds
  if (inet_pton(AF_INET, name.c_str(), &place) == 1) return true;
  return name.starts_with('[') && name.ends_with(']') &&
         inet_pton(AF_INET6, name.substr(1, name.size() - 2).c_str(), &place) == 1;
}

}  // namespace

bool IsNameOfLoopback(std::string_view host, std::string_view address) {
  if (host.empty()) return true;  // HTTP/1.0; browsers always name it
  const std::string name = NameIn(host);
  if (name.empty()) return false;
  return name == "localhost" || IsLiteralAddress(name) || name == NameIn(address);
}

}  // namespace spillway::agent
