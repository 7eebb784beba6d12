#include "agent/http/http_server.h"

#include <httplib.h>

#include <charconv>
#include <chrono>
#include <optional>
#include <thread>

#include "agent/http/metrics.h"
#include "agent/report/pages.h"

namespace spillway::agent {
namespace {

constexpr size_t kThreads = 2;
constexpr time_t kPatienceS = 5;
constexpr size_t kMostRequestBytes = 4096;

std::optional<uint16_t> PortIn(const std::string& text) {
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size() && !text.empty() ? std::optional(port)
                                                                                   : std::nullopt;
}

// Not cpp-httplib's own: by SO_REUSEPORT two agents had the port, and each scrape came to one of them by chance.
void AllowSoonAgain(socket_t socket) {
  const int yes = 1;
  setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
}

}  // namespace

class HttpServer::Impl {
 public:
  Impl(std::string address, const LatestReport* latest, UsedMemory* used)
      : address_(std::move(address)), latest_(*latest), used_(used) {
    server_.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
    server_.set_socket_options(&AllowSoonAgain);
    // Who keeps a connection for its next request has one of few threads till then, and the agent's end waits for it.
    server_.set_keep_alive_max_count(1);
    server_.set_read_timeout(kPatienceS);
    server_.set_write_timeout(kPatienceS);
    server_.set_payload_max_length(kMostRequestBytes);
    server_.Get("/metrics", [this](const httplib::Request&, httplib::Response& response) {
      const auto used_bytes = used_ != nullptr ? used_->Read() : std::map<std::string, int64_t>();
      response.set_content(MetricsOf(*latest_.Get(), used_bytes), "text/plain; version=0.0.4; charset=utf-8");
    });
    server_.Get("/healthz", [](const httplib::Request&, httplib::Response& response) {
      response.set_content("ok\n", "text/plain");
    });
    server_.Get("/readyz", [this](const httplib::Request&, httplib::Response& response) { Ready(response); });
    server_.Get("/api/v1/status", [this](const httplib::Request&, httplib::Response& response) {
      protocol::Ask ask;
      ask.form = protocol::Form::kJson;
      response.set_content(PageOf(ask, *latest_.Get()), "application/json");
    });
  }
  ~Impl() {
    server_.stop();
    if (thread_.joinable()) thread_.join();
  }

  std::string Start() {
    const size_t colon = address_.rfind(':');
    const std::optional<uint16_t> port =
        colon == std::string::npos ? std::nullopt : PortIn(address_.substr(colon + 1));
    if (!port) return "'" + address_ + "' is no address and port like 127.0.0.1:9477";
    std::string host = address_.substr(0, colon);
    if (host.size() > 1 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
    port_ = *port == 0                                  ? server_.bind_to_any_port(host.c_str())
            : server_.bind_to_port(host.c_str(), *port) ? *port
                                                        : -1;
    if (port_ < 0) return "cannot listen on " + address_;
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    // cpp-httplib 0.11 forgets a stop() that comes before it runs, and the join after it would wait for ever.
    while (!server_.is_running()) std::this_thread::yield();
    return "";
  }
  int port() const { return port_; }

 private:
  void Ready(httplib::Response& response) const {
    const std::shared_ptr<const NodeReport> report = latest_.Get();
    std::string why_not;
    if (report->devices.empty()) why_not = "no device is known\n";
    if (report->resuming) why_not = "waiting for jobs to come back\n";
    if (report->draining) why_not = "draining\n";
    response.status = why_not.empty() ? 200 : 503;
    response.set_content(why_not.empty() ? "ready\n" : why_not, "text/plain");
  }

  const std::string address_;
  const LatestReport& latest_;
  UsedMemory* const used_;
  httplib::Server server_;
  std::thread thread_;
  int port_ = -1;
};

HttpServer::HttpServer(std::string address, const LatestReport* latest, UsedMemory* used)
    : impl_(std::make_unique<Impl>(std::move(address), latest, used)) {}
HttpServer::~HttpServer() = default;
std::string HttpServer::Start() { return impl_->Start(); }
int HttpServer::port() const { return impl_->port(); }

}  // namespace spillway::agent
