#include "agent/http/http_server.h"

#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <thread>

#include "agent/http/assets.h"
#include "agent/http/http_connection.h"
#include "agent/http/page_maker.h"
#include "agent/http/page_source.h"
#include "agent/http/request_host.h"
#include "agent/http/routes.h"
#include "agent/http/tcp_listener.h"
#include "base/clock.h"
#include "base/unix_endpoint.h"

namespace spillway::agent {
namespace {

// Note [A crowd of clients]
// One thread serves all clients, and no client can block it. With kMostClients connected, the next
// replaces the one silent for longest: a silent crowd displaces only itself. A client that sends
// its request at once, as probes and scrapers do, is answered before the next is accepted.
constexpr size_t kMostClients = 256;
constexpr size_t kMostStreams = 32;
constexpr int kMostReady = 64;
constexpr int kMostTaken = 64;  // accepted before clients get their turn
constexpr int64_t kNoFilesNs = 100'000'000;

constexpr uint64_t kListener = 0, kLocalListener = 1, kScraped = 2, kMade = 3, kPlanned = 4,
                   kReport = 5, kAccess = 6, kEnd = 7, kFirstClient = 8;

constexpr char kEventsPath[] = "/api/v1/events";
// How long a browser waits before it connects again, in ms.
constexpr char kStreamBegin[] = "retry: 2000\n\n";

constexpr char kWhyNotByThisName[] =
    "ask this agent by localhost or by its address: it answers to no name from DNS, which any site "
    "could lead here. A proxy gives it Host: localhost, or uses [http] socket";
constexpr char kWhyNoPlan[] =
    "a plan reveals the shape of its job's network, so it is shown only to those with a token "
    "([http] token_file), or over [http] socket";
// So the page asks for no plan in vain: browsers list each refusal as an error.
constexpr char kPlansShown[] = "Spillway-Plans: shown\r\n";
constexpr char kPlansHidden[] = "Spillway-Plans: hidden\r\n";
constexpr char kChallenge[] = "WWW-Authenticate: Bearer realm=\"spillway\"\r\n";

// OpenSSL writes to sockets without MSG_NOSIGNAL.
void IgnoreBrokenPipes() {
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
}

int64_t ClockNs() { return static_cast<int64_t>(base::MonotonicNs()); }

}  // namespace

class HttpServer::Impl {
 public:
  Impl(HttpPlaces places, std::shared_ptr<const HttpAccess> access, const LatestReport* latest,
       UsedMemory* used, PlanPage plans)
      : places_(std::move(places)),
        access_(std::move(access)),
        latest_(*latest),
        source_(latest, used, std::move(plans)),
        scraper_([this](const std::string&) { return source_.Scrape(); }),
        maker_([this](const std::string& path) { return source_.Make(path); }),
        plan_maker_([this](const std::string& path) { return source_.Plan(path); }) {}
  ~Impl() {
    eventfd_write(end_.get(), 1);
    if (thread_.joinable()) thread_.join();
    if (listeners_[kLocalListener]) unlink(places_.socket.c_str());
  }

  base::Status Start() {
    base::Status listens = Listen();
    if (!listens.ok()) return listens;
    WatchListeners(EPOLL_CTL_ADD, EPOLLIN);
    Watch(EPOLL_CTL_ADD, scraper_.file(), EPOLLIN, kScraped);
    Watch(EPOLL_CTL_ADD, maker_.file(), EPOLLIN, kMade);
    Watch(EPOLL_CTL_ADD, plan_maker_.file(), EPOLLIN, kPlanned);
    Watch(EPOLL_CTL_ADD, latest_.file(), EPOLLIN, kReport);
    Watch(EPOLL_CTL_ADD, access_notifier_.get(), EPOLLIN, kAccess);
    Watch(EPOLL_CTL_ADD, end_.get(), EPOLLIN, kEnd);
    thread_ = std::thread([this] { Run(); });
    return base::Ok();
  }
  int port() const { return port_; }
  void SetAccess(std::shared_ptr<const HttpAccess> access) {
    {
      const std::lock_guard lock(mutex_);
      access_ = std::move(access);
    }
    eventfd_write(access_notifier_.get(), 1);
  }

 private:
  using Clients = std::map<uint64_t, HttpConnection>;  // in order of arrival
  using State = HttpConnection::State;

  base::Status Listen() {
    if (!places_.address.empty()) {
      base::Result<TcpListener> listener = ListenOnTcp(places_.address);
      if (!listener) return listener.error();
      listeners_[kListener] = std::move(listener->socket);
      port_ = listener->port;
      is_loopback_ = listener->is_loopback;
    }
    if (places_.socket.empty()) return base::Ok();
    listeners_[kLocalListener] = base::ListenOn(places_.socket, SOCK_STREAM, places_.socket_mode);
    if (!listeners_[kLocalListener]) return base::ErrnoError("cannot listen on " + places_.socket);
    return base::Ok();
  }

  std::shared_ptr<const HttpAccess> access() const {
    const std::lock_guard lock(mutex_);
    return access_;
  }

  void Run() {
    IgnoreBrokenPipes();
    for (;;) {
      epoll_event events[kMostReady];
      const int count = epoll_wait(poll_.get(), events, kMostReady, WaitMs());
      for (int i = 0; i < count; ++i) {
        if (events[i].data.u64 == kEnd) return;
        Handle(events[i].data.u64);
      }
      CloseOverdueClients();
    }
  }

  void Handle(uint64_t token) {
    if (token == kListener || token == kLocalListener) return AcceptSome(token);
    if (token == kScraped) return SendMadePages(scraper_);
    if (token == kMade) return SendMadePages(maker_);
    if (token == kPlanned) return SendMadePages(plan_maker_);
    if (token == kReport) return TakeSample();
    if (token == kAccess) return EndStreamsNotAdmitted();
    const auto client = clients_.find(token);
    if (client != clients_.end()) Go(client);
  }

  void Go(Clients::iterator client) {
    HttpConnection& connection = client->second;
    const uint32_t before = connection.events();
    if (connection.Go(ClockNs())) Respond(connection);
    Follow(client, before);
  }

  void Respond(HttpConnection& connection) {
    const std::string& path = connection.request().path;
    const Page page = RouteOf(path).page;
    const bool is_probe = page == Page::kHealth || page == Page::kReadiness;
    if (!is_probe && !MayUseItsName(connection))
      return connection.Answer(ErrorAnswer(421, kWhyNotByThisName), ClockNs());
    const std::optional<HttpAnswer> asset =
        page == Page::kAsset ? AssetAt(path) : std::optional<HttpAnswer>();
    if (page == Page::kNone || (page == Page::kAsset && !asset))
      return connection.Answer(ErrorAnswer(404), ClockNs());
    if (connection.request().method != "GET" && connection.request().method != "HEAD")
      return connection.Answer(ErrorAnswer(405), ClockNs());
    if (!IsPublic(page) && !IsAdmitted(connection))
      return connection.Answer(ErrorAnswer(401, "this page needs the agent's token", kChallenge),
                               ClockNs());
    if (asset) return connection.Answer(*asset, ClockNs());
    if (page == Page::kHealth) return connection.Answer({.body = TextPage("ok\n")}, ClockNs());
    if (page == Page::kReadiness) return connection.Answer(Readiness(), ClockNs());
    if (page == Page::kEvents) return BeginStream(connection);
    if (page == Page::kJobPlan && !MaySeePlans(connection))
      return connection.Answer(ErrorAnswer(403, kWhyNoPlan), ClockNs());
    connection.AwaitPage(path, ClockNs());
    MakerOf(page).Want(path);
  }

  // Where a token or a certificate is needed, no page of another site has it.
  bool MayUseItsName(const HttpConnection& connection) const {
    const auto guards = access();
    return !is_loopback_ || connection.is_local() || guards->has_token() || guards->has_tls() ||
           IsNameOfLoopback(connection.request().host, places_.address);
  }

  bool IsAdmitted(const HttpConnection& connection) const {
    return connection.is_local() || access()->Admits(connection.request().authorization);
  }

  // Of a client that is admitted.
  bool MaySeePlans(const HttpConnection& connection) const {
    return connection.is_local() || access()->has_token();
  }

  PageMaker& MakerOf(Page page) {
    if (page == Page::kMetrics) return scraper_;
    return page == Page::kJobPlan ? plan_maker_ : maker_;
  }

  // The next sample, within a second, is its first event.
  void BeginStream(HttpConnection& connection) {
    if (connection.request().method == "HEAD")
      return connection.Answer({.type = "text/event-stream", .body = TextPage("")}, ClockNs());
    if (Streams() >= kMostStreams)
      return connection.Answer(
          ErrorAnswer(503, "too many clients watch already; try again later", "Retry-After: 5\r\n"),
          ClockNs());
    connection.BeginStream(MaySeePlans(connection) ? kPlansShown : kPlansHidden,
                           TextPage(kStreamBegin), ClockNs());
    source_.SetWatched(true);
  }

  size_t Streams() const {
    return static_cast<size_t>(
        std::count_if(clients_.begin(), clients_.end(),
                      [](const Clients::value_type& one) { return one.second.is_stream(); }));
  }

  void EndStreamsNotAdmitted() {
    eventfd_t ignored = 0;
    eventfd_read(access_notifier_.get(), &ignored);
    for (auto client = clients_.begin(); client != clients_.end();) {
      const auto next = std::next(client);
      HttpConnection& connection = client->second;
      const uint32_t before = connection.events();
      const bool goes_on = IsAdmitted(connection) && MayUseItsName(connection);
      if (connection.is_stream() && !goes_on) connection.EndStream(ClockNs());
      Follow(client, before);
      client = next;
    }
  }

  void TakeSample() {
    latest_.Drain();
    source_.SetWatched(Streams() > 0);
    maker_.Want(kEventsPath);
  }

  HttpAnswer Readiness() const {
    const std::shared_ptr<const NodeReport> report = latest_.Get();
    std::string why_not;
    if (report->devices.empty()) why_not = "no device is known\n";
    if (report->resuming) why_not = "waiting for jobs to come back\n";
    if (report->draining) why_not = "draining\n";
    return {.status = why_not.empty() ? 200 : 503,
            .body = TextPage(why_not.empty() ? "ready\n" : why_not)};
  }

  void SendMadePages(PageMaker& maker) {
    for (const PageMaker::Made& made : maker.Take()) {
      for (auto client = clients_.begin(); client != clients_.end();) {
        const auto next = std::next(client);
        Send(made, client);
        client = next;
      }
    }
  }

  void Send(const PageMaker::Made& made, Clients::iterator client) {
    HttpConnection& connection = client->second;
    const uint32_t before = connection.events();
    if (connection.Awaits(made.path)) {
      connection.Answer(made.answer, ClockNs());
    } else if (connection.is_stream() && made.path == kEventsPath && !made.answer.body->empty()) {
      connection.Push(made.answer.body, ClockNs());
    }
    Follow(client, before);
  }

  void AcceptSome(uint64_t listener) {
    for (int i = 0; i < kMostTaken; ++i) {
      base::UniqueFd socket(
          accept4(listeners_[listener].get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!socket && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS))
        return PauseAccepting();
      if (!socket && (errno == ECONNABORTED || errno == EINTR)) continue;
      if (!socket) return;
      if (clients_.size() >= kMostClients) MakeRoom();
      const bool is_local = listener == kLocalListener;
      std::unique_ptr<Transport> transport =
          is_local ? PlainTransport(std::move(socket)) : access()->Accept(std::move(socket));
      if (transport == nullptr) continue;
      const auto client =
          clients_
              .emplace(next_client_++, HttpConnection(std::move(transport), is_local, ClockNs()))
              .first;
      Watch(EPOLL_CTL_ADD, client->second.file(), EPOLLIN, client->first);
      Go(client);
    }
  }

  // First who asks nothing, then who came last: a crowd must not end the streams of others.
  void MakeRoom() {
    auto gone = std::find_if(clients_.begin(), clients_.end(), [](const Clients::value_type& one) {
      return one.second.state() == State::kReading || one.second.state() == State::kClosing;
    });
    if (gone != clients_.end()) return void(clients_.erase(gone));
    const auto last =
        std::find_if(clients_.rbegin(), clients_.rend(),
                     [](const Clients::value_type& one) { return !one.second.is_stream(); });
    clients_.erase(last == clients_.rend() ? clients_.begin() : std::prev(last.base()));
  }

  // Without free descriptors, a watched listener would wake the thread forever.
  void PauseAccepting() {
    WatchListeners(EPOLL_CTL_MOD, 0);
    accept_again_ns_ = ClockNs() + kNoFilesNs;
  }

  void CloseOverdueClients() {
    const int64_t now_ns = ClockNs();
    for (auto client = clients_.begin(); client != clients_.end();) {
      const auto next = std::next(client);
      const uint32_t before = client->second.events();
      if (client->second.deadline_ns() <= now_ns) {
        client->second.MissDeadline(now_ns);
        Follow(client, before);
      }
      client = next;
    }
    if (accept_again_ns_ == 0 || now_ns < accept_again_ns_) return;
    accept_again_ns_ = 0;
    WatchListeners(EPOLL_CTL_MOD, EPOLLIN);
  }

  void Follow(Clients::iterator client, uint32_t events_before) {
    if (client->second.state() == State::kDone) {
      clients_.erase(client);
    } else if (client->second.events() != events_before) {
      Watch(EPOLL_CTL_MOD, client->second.file(), client->second.events(), client->first);
    }
  }

  int WaitMs() const {
    int64_t until_ns = accept_again_ns_ > 0 ? accept_again_ns_ : INT64_MAX;
    for (const auto& [token, connection] : clients_)
      until_ns = std::min(until_ns, connection.deadline_ns());
    if (until_ns == INT64_MAX) return -1;
    return static_cast<int>(std::clamp<int64_t>((until_ns - ClockNs()) / 1'000'000 + 1, 0, 10'000));
  }

  void WatchListeners(int operation, uint32_t events) const {
    for (const uint64_t token : {kListener, kLocalListener}) {
      if (listeners_[token]) Watch(operation, listeners_[token].get(), events, token);
    }
  }

  void Watch(int operation, int file, uint32_t events, uint64_t token) const {
    epoll_event event{};
    event.events = events;
    event.data.u64 = token;
    epoll_ctl(poll_.get(), operation, file, &event);
  }

  const HttpPlaces places_;
  mutable std::mutex mutex_;
  std::shared_ptr<const HttpAccess> access_;  // guarded by mutex_
  const LatestReport& latest_;
  const base::UniqueFd poll_{epoll_create1(EPOLL_CLOEXEC)};
  const base::UniqueFd end_{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)},
      access_notifier_{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  std::array<base::UniqueFd, 2> listeners_;  // by token; invalid: none
  int port_ = -1;
  bool is_loopback_ = false;  // the TCP listener
  Clients clients_;
  uint64_t next_client_ = kFirstClient;
  int64_t accept_again_ns_ = 0;  // 0: accepting now
  PageSource source_;
  PageMaker scraper_, maker_, plan_maker_;
  std::thread thread_;
};

HttpServer::HttpServer(HttpPlaces places, std::shared_ptr<const HttpAccess> access,
                       const LatestReport* latest, UsedMemory* used, PlanPage plans)
    : impl_(std::make_unique<Impl>(std::move(places), std::move(access), latest, used,
                                   std::move(plans))) {}
HttpServer::~HttpServer() = default;
base::Status HttpServer::Start() { return impl_->Start(); }
int HttpServer::port() const { return impl_->port(); }
void HttpServer::SetAccess(std::shared_ptr<const HttpAccess> access) {
  impl_->SetAccess(std::move(access));
}

}  // namespace spillway::agent
