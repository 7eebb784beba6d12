#include "agent/http/http_connection.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

namespace spillway::agent {
namespace {

constexpr size_t kPieceBytes = 4096;
constexpr int kMostDiscarded = 16;  // pieces at a time, so that other clients get their turn

// RFC 9110, 5.6.7. The agent's locale is C.
std::string Date() {
  const time_t now = time(nullptr);
  tm parts{};
  gmtime_r(&now, &parts);
  char text[64];
  return {text, strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &parts)};
}

// Pages change with every request, and a document is only what its type says.
std::string FirstLines(int status, const char* type) {
  return "HTTP/1.1 " + std::to_string(status) + " " + WordsOf(status) + "\r\nDate: " + Date() +
         "\r\nContent-Type: " + type +
         "\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n";
}

constexpr char kLastLines[] = "Connection: close\r\n\r\n";

std::string HeadOf(const HttpAnswer& answer) {
  return FirstLines(answer.status, answer.type) + answer.fields +
         (answer.status == 405 ? "Allow: GET, HEAD\r\n" : "") +
         "Content-Length: " + std::to_string(answer.body->size()) + "\r\n" + kLastLines;
}

bool WouldBlock() { return errno == EAGAIN || errno == EWOULDBLOCK; }

}  // namespace

uint32_t HttpConnection::events() const {
  if (state_ == State::kWriting) return transport_->Needs(EPOLLOUT);
  if (state_ == State::kReading) return transport_->Needs(EPOLLIN);
  if (state_ == State::kClosing || state_ == State::kStreaming) return EPOLLIN;
  return 0;
}

bool HttpConnection::Go(int64_t now_ns) {
  if (state_ == State::kReading) return Read(now_ns);
  if (state_ == State::kWriting) {
    Write(now_ns);
  } else if (state_ == State::kClosing || state_ == State::kStreaming) {
    Discard();
  } else {
    state_ = State::kDone;  // only a disconnect wakes a waiting client
  }
  return false;
}

// Reads on until nothing is left: what TLS has buffered wakes nobody.
bool HttpConnection::Read(int64_t now_ns) {
  for (;;) {
    char piece[kPieceBytes];
    const ssize_t size = transport_->Receive(piece, sizeof piece);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && WouldBlock()) return false;
    if (size <= 0) state_ = State::kDone;
    if (size <= 0) return false;
    const std::string_view news(piece, static_cast<size_t>(size));
    received_ += news;
    // A head ends with a line, so single bytes do not cause a new parse each.
    if (news.find('\n') == news.npos && received_.size() < kMostHeadBytes) continue;
    request_ = ReadRequestHead(received_);
    if (request_.state != RequestHead::State::kIncomplete) break;
  }
  received_ = {};
  if (request_.state == RequestHead::State::kComplete) return true;
  Answer(ErrorAnswer(request_.status), now_ns);
  return false;
}

void HttpConnection::AwaitPage(const std::string& path, int64_t now_ns) {
  state_ = State::kWaiting;
  path_ = path;
  deadline_ns_ = now_ns + kAnswerNs;
}

void HttpConnection::Answer(const HttpAnswer& answer, int64_t now_ns) {
  BeginWriting(HeadOf(answer), request_.method == "HEAD" ? nullptr : answer.body, now_ns);
}

void HttpConnection::BeginStream(const char* fields, PageText first, int64_t now_ns) {
  is_stream_ = true;
  BeginWriting(FirstLines(200, "text/event-stream") + fields + kLastLines, std::move(first),
               now_ns);
}

void HttpConnection::Push(const PageText& event, int64_t now_ns) {
  if (state_ == State::kStreaming) BeginWriting("", event, now_ns);
}

// In the middle of an event it is cut.
void HttpConnection::EndStream(int64_t now_ns) {
  is_stream_ = false;
  if (state_ != State::kStreaming) return void(state_ = State::kDone);
  EndWriting(now_ns);
}

void HttpConnection::BeginWriting(std::string head, PageText body, int64_t now_ns) {
  head_ = std::move(head);
  body_ = std::move(body);
  sent_ = 0;
  state_ = State::kWriting;
  deadline_ns_ = now_ns + kAnswerNs;
  Write(now_ns);
}

void HttpConnection::Write(int64_t now_ns) {
  const size_t body_bytes = body_ == nullptr ? 0 : body_->size();
  while (sent_ < head_.size() + body_bytes) {
    const bool in_head = sent_ < head_.size();
    const size_t body_sent = in_head ? 0 : sent_ - head_.size();
    iovec rest[2] = {{const_cast<char*>(head_.data()) + std::min(sent_, head_.size()),
                      in_head ? head_.size() - sent_ : 0},
                     {nullptr, body_bytes - body_sent}};
    if (body_bytes > 0) rest[1].iov_base = const_cast<char*>(body_->data()) + body_sent;
    const ssize_t sent = transport_->Send(rest, 2);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && WouldBlock()) return;
    if (sent < 0) state_ = State::kDone;
    if (sent < 0) return;
    sent_ += static_cast<size_t>(sent);
  }
  EndWriting(now_ns);
}

void HttpConnection::EndWriting(int64_t now_ns) {
  body_ = nullptr;
  state_ = is_stream_ ? State::kStreaming : State::kClosing;
  deadline_ns_ = now_ns + (is_stream_ ? kSilenceNs : kCloseNs);
  if (!is_stream_) transport_->EndSending();
}

// Closing a socket with unread bytes resets it; the reset can overtake the answer (RFC 9112, 9.6).
void HttpConnection::Discard() {
  char piece[kPieceBytes];
  for (int i = 0; i < kMostDiscarded; ++i) {
    const ssize_t size = recv(file(), piece, sizeof piece, 0);
    if (size > 0) continue;
    if (size == 0 || (!WouldBlock() && errno != EINTR)) state_ = State::kDone;
    return;
  }
}

void HttpConnection::MissDeadline(int64_t now_ns) {
  if (state_ == State::kReading && !received_.empty()) return Answer(ErrorAnswer(408), now_ns);
  if (state_ == State::kWaiting) return Answer(ErrorAnswer(503), now_ns);
  state_ = State::kDone;
}

}  // namespace spillway::agent
