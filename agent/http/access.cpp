#include "agent/http/access.h"

#include <sys/stat.h>

#include <algorithm>
#include <cctype>

#include "base/file.h"

namespace spillway::agent {
namespace {

constexpr size_t kLeastTokenBytes = 16, kMostTokenBytes = 1024;
constexpr std::string_view kScheme = "Bearer ";

// A b64token of RFC 6750, 2.1.
bool IsTokenText(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) ||
           std::string_view("-._~+/=").find(c) != std::string_view::npos;
  });
}

base::Result<std::string> ReadToken(const std::string& path) {
  struct stat facts {};
  if (stat(path.c_str(), &facts) != 0)
    return base::ErrnoError("cannot read [http] token_file " + path);
  if ((facts.st_mode & S_IRWXO) != 0)
    return base::Error{"[http] token_file " + path + " is no secret", "all users have rights to it",
                       "chmod o= " + path};
  base::Result<std::string> token = base::ReadFile(path);
  if (!token) return token.error();
  while (!token->empty() && std::isspace(static_cast<unsigned char>(token->back())))
    token->pop_back();
  if (token->size() >= kLeastTokenBytes && token->size() <= kMostTokenBytes && IsTokenText(*token))
    return token;
  return base::Error{"[http] token_file " + path + " has no token",
                     "a token is one line of 16 to 1024 letters, digits and -._~+/=",
                     "openssl rand -hex 32 > " + path};
}

bool AreEqualInConstantTime(std::string_view given, std::string_view expected) {
  volatile unsigned difference = given.size() == expected.size() ? 0 : 1;
  for (size_t i = 0; i < given.size(); ++i)
    difference = difference | static_cast<unsigned char>(given[i] ^ expected[i % expected.size()]);
  return difference == 0;
}

bool StartsWithScheme(std::string_view field) {
  return field.size() >= kScheme.size() &&
         std::equal(kScheme.begin(), kScheme.end(), field.begin(), [](char a, char b) {
           return std::tolower(static_cast<unsigned char>(a)) ==
                  std::tolower(static_cast<unsigned char>(b));
         });
}

}  // namespace

base::Result<std::shared_ptr<const HttpAccess>> HttpAccess::Open(const AccessFiles& files) {
  const auto access = std::make_shared<HttpAccess>();
  if (!files.token.empty()) {
    base::Result<std::string> token = ReadToken(files.token);
    if (!token) return token.error();
    access->token_ = *std::move(token);
  }
  if (!files.certificate.empty()) {
    auto tls = TlsServer::Open(files.certificate, files.key);
    if (!tls) return tls.error();
    access->tls_ = *std::move(tls);
  }
  return std::shared_ptr<const HttpAccess>(access);
}

bool HttpAccess::Admits(std::string_view authorization) const {
  if (token_.empty()) return true;
  if (!StartsWithScheme(authorization)) return false;
  return AreEqualInConstantTime(authorization.substr(kScheme.size()), token_);
}

std::unique_ptr<Transport> HttpAccess::Accept(base::UniqueFd socket) const {
  return tls_ == nullptr ? PlainTransport(std::move(socket)) : tls_->Accept(std::move(socket));
}

}  // namespace spillway::agent
