#include "deploy/kubernetes/api_client.h"

#include <errno.h>
#include <httplib.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/clock.h"
#include "base/file.h"

namespace spillway::kubernetes {
namespace {

constexpr char kAccount[] = "/var/run/secrets/kubernetes.io/serviceaccount/";
constexpr int kConnectS = 5, kAnswerS = 10;
// The server sends a bookmark about every minute.
constexpr int kWatchSilenceS = 330;
constexpr char kJson[] = "application/json";

struct Host {
  bool is_tls = false;
  std::string name;
  int port = 0;
};

// "https://[fd00::1]:6443": a scheme, a host, and perhaps a port.
std::optional<Host> HostIn(const std::string& url) {
  Host host;
  const size_t scheme = url.find("://");
  if (scheme == std::string::npos) return std::nullopt;
  host.is_tls = url.substr(0, scheme) == "https";
  if (!host.is_tls && url.substr(0, scheme) != "http") return std::nullopt;
  host.port = host.is_tls ? 443 : 80;
  std::string rest = url.substr(scheme + 3);
  if (rest.ends_with('/')) rest.pop_back();
  const size_t bracket = rest.find(']');
  const size_t colon = rest.find(':', bracket == std::string::npos ? 0 : bracket);
  host.name = rest.substr(0, colon);
  if (host.name.starts_with('[')) host.name = host.name.substr(1, host.name.size() - 2);
  if (colon != std::string::npos) {
    const char* const end = rest.data() + rest.size();
    const auto [last, error] = std::from_chars(rest.data() + colon + 1, end, host.port);
    if (error != std::errc() || last != end) return std::nullopt;
  }
  if (host.name.empty() || host.name.find('/') != std::string::npos) return std::nullopt;
  return host;
}

class HttpApiClient final : public ApiClient {
 public:
  HttpApiClient(ApiServer server, Host host) : server_(std::move(server)), host_(std::move(host)) {}

  base::Result<ApiAnswer> Get(const std::string& path, int64_t until_ns) override {
    return Ask([&](httplib::ClientImpl& client, const httplib::Headers& headers) {
      EndBy(client, until_ns);
      return client.Get(path.c_str(), headers);
    });
  }
  base::Result<ApiAnswer> Post(const std::string& path, const std::string& body) override {
    return Ask([&](httplib::ClientImpl& client, const httplib::Headers& headers) {
      return client.Post(path.c_str(), headers, body, kJson);
    });
  }
  base::Result<ApiAnswer> Put(const std::string& path, const std::string& body) override {
    return Ask([&](httplib::ClientImpl& client, const httplib::Headers& headers) {
      return client.Put(path.c_str(), headers, body, kJson);
    });
  }
  base::Result<ApiAnswer> Delete(const std::string& path) override {
    return Ask([&](httplib::ClientImpl& client, const httplib::Headers& headers) {
      return client.Delete(path.c_str(), headers);
    });
  }

  base::Result<ApiAnswer> Watch(const std::string& path,
                                const std::function<bool(const std::string&)>& take) override {
    const std::unique_ptr<httplib::ClientImpl> client = Connect();
    client->set_read_timeout(kWatchSilenceS);
    {
      const std::lock_guard lock(mutex_);
      watch_ = client.get();
    }
    base::Result<ApiAnswer> answer = WatchWith(*client, path, take);
    const std::lock_guard lock(mutex_);
    watch_ = nullptr;
    // A watch ends by its receiver, by Interrupt, or by a connection that breaks: all the same.
    if (std::exchange(is_interrupted_, false)) return ApiAnswer{200, ""};
    return answer;
  }

  void Interrupt() override {
    const std::lock_guard lock(mutex_);
    is_interrupted_ = true;
    if (watch_ != nullptr) watch_->stop();
  }

 private:
  bool IsInterrupted() {
    const std::lock_guard lock(mutex_);
    return is_interrupted_;
  }

  // Stopping a client whose connection is not open yet has no effect, so the flag counts until the
  // server's first answer.
  base::Result<ApiAnswer> WatchWith(httplib::ClientImpl& client, const std::string& path,
                                    const std::function<bool(const std::string&)>& take) {
    if (IsInterrupted()) return ApiAnswer{200, ""};
    ApiAnswer answer;
    std::string line;
    bool is_taken = true;
    const httplib::Result result = client.Get(
        path.c_str(), Headers(),
        [&](const httplib::Response& response) {
          answer.status = response.status;
          return !IsInterrupted();
        },
        [&](const char* data, size_t size) {
          if (answer.status != 200) return answer.body.append(data, size), true;
          for (size_t i = 0; i < size && is_taken; ++i) {
            if (data[i] != '\n') {
              line += data[i];
            } else {
              is_taken = take(std::exchange(line, {}));
            }
          }
          return is_taken;
        });
    if (answer.status == 0) return NoAnswer(result);
    return answer;
  }

  // Half of what is left to connect, half to be answered.
  static void EndBy(httplib::ClientImpl& client, int64_t until_ns) {
    constexpr int64_t kMillisecond = 1'000'000, kLeastMs = 50;
    const int64_t now_ns = base::NowNs(CLOCK_MONOTONIC);
    const std::chrono::milliseconds half(
        std::max(kLeastMs, (until_ns - now_ns) / 2 / kMillisecond));
    if (half < std::chrono::seconds(kConnectS)) client.set_connection_timeout(half);
    if (half < std::chrono::seconds(kAnswerS)) client.set_read_timeout(half);
  }

  std::unique_ptr<httplib::ClientImpl> Connect() const {
    std::unique_ptr<httplib::ClientImpl> client;
    if (host_.is_tls) {
      auto secure = std::make_unique<httplib::SSLClient>(host_.name, host_.port);
      if (!server_.ca_file.empty()) secure->set_ca_cert_path(server_.ca_file.c_str());
      client = std::move(secure);
    } else {
      client = std::make_unique<httplib::ClientImpl>(host_.name, host_.port);
    }
    client->set_connection_timeout(kConnectS);
    client->set_read_timeout(kAnswerS);
    return client;
  }

  std::string Token() const {
    if (server_.token_file.empty()) return "";
    std::string token = base::ReadFile(server_.token_file).value_or("");
    while (!token.empty() && (token.back() == '\n' || token.back() == '\r')) token.pop_back();
    return token;
  }
  httplib::Headers Headers() const {
    httplib::Headers headers = {{"Accept", kJson}, {"User-Agent", "spillway-kubernetes"}};
    if (const std::string token = Token(); !token.empty())
      headers.emplace("Authorization", "Bearer " + token);
    return headers;
  }

  base::Error NoAnswer(const httplib::Result& result) const {
    return {"no answer from the API server at " + server_.url, httplib::to_string(result.error()),
            "is it reachable from this node, and its certificate from " +
                (server_.ca_file.empty() ? std::string("a known authority") : server_.ca_file) +
                "?"};
  }

  template <class Request>
  base::Result<ApiAnswer> Ask(Request request) const {
    const std::unique_ptr<httplib::ClientImpl> client = Connect();
    const httplib::Result result = request(*client, Headers());
    if (!result) return NoAnswer(result);
    return ApiAnswer{result->status, result->body};
  }

  const ApiServer server_;
  const Host host_;
  std::mutex mutex_;  // leaf; held while the watch's socket is shut
  // guarded by mutex_
  httplib::ClientImpl* watch_ = nullptr;
  bool is_interrupted_ = false;
};

}  // namespace

base::Result<ApiServer> ApiServerOfPod() {
  const char* const host = std::getenv("KUBERNETES_SERVICE_HOST");
  const char* const port = std::getenv("KUBERNETES_SERVICE_PORT");
  if (host == nullptr || port == nullptr)
    return base::Error{"this is no pod (KUBERNETES_SERVICE_HOST is not set)", "",
                       "say where the API server is with --api-server"};
  const std::string name = std::string(host).find(':') == std::string::npos
                               ? std::string(host)
                               : "[" + std::string(host) + "]";
  return ApiServer{"https://" + name + ":" + port, std::string(kAccount) + "token",
                   std::string(kAccount) + "ca.crt"};
}

base::Result<std::unique_ptr<ApiClient>> ApiClient::Make(ApiServer server) {
  std::optional<Host> host = HostIn(server.url);
  if (!host)
    return base::Error{"'" + server.url + "' is no address of an API server", "",
                       "write it as https://HOST:PORT"};
  return std::unique_ptr<ApiClient>(
      std::make_unique<HttpApiClient>(std::move(server), *std::move(host)));
}

base::Error ErrorOf(const ApiAnswer& answer, const std::string& what) {
  const auto status = nlohmann::json::parse(answer.body, nullptr, false);
  const bool has_message =
      status.is_object() && status.contains("message") && status["message"].is_string();
  base::Error error{what + ": the API server answers " + std::to_string(answer.status),
                    has_message ? status["message"].get<std::string>() : std::string()};
  if (answer.status == 401) error.remedy = "is the token in --token-file valid?";
  if (answer.status == 403)
    error.remedy =
        "the driver's account needs the rights in deploy/kubernetes/overlays/claims/rbac.yaml";
  if (answer.status == 404) error.code = ENOENT;
  return error;
}

}  // namespace spillway::kubernetes
