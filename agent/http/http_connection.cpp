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

struct Reason {
  int status;
  const char* words;
};
constexpr Reason kReasons[] = {{200, "OK"},
                               {400, "Bad Request"},
                               {404, "Not Found"},
                               {405, "Method Not Allowed"},
                               {408, "Request Timeout"},
                               {414, "URI Too Long"},
                               {431, "Request Header Fields Too Large"},
                               {503, "Service Unavailable"},
                               {505, "HTTP Version Not Supported"}};

const char* WordsOf(int status) {
  const auto* found = std::find_if(std::begin(kReasons), std::end(kReasons),
                                   [&](const Reason& one) { return one.status == status; });
  return found == std::end(kReasons) ? "Error" : found->words;
}

// RFC 9110, 5.6.7. The agent's locale is C.
std::string Date() {
  const time_t now = time(nullptr);
  tm parts{};
  gmtime_r(&now, &parts);
  char text[64];
  return {text, strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &parts)};
}

std::string HeadOf(const HttpAnswer& answer) {
  return "HTTP/1.1 " + std::to_string(answer.status) + " " + WordsOf(answer.status) +
         "\r\nDate: " + Date() + "\r\nContent-Type: " + answer.type +
         "\r\nContent-Length: " + std::to_string(answer.body->size()) +
         (answer.status == 405 ? "\r\nAllow: GET, HEAD" : "") + "\r\nConnection: close\r\n\r\n";
}

bool WouldBlock() { return errno == EAGAIN || errno == EWOULDBLOCK; }

}  // namespace

HttpAnswer ErrorAnswer(int status) {
  return {
      status, "text/plain; charset=utf-8",
      std::make_shared<const std::string>(std::to_string(status) + " " + WordsOf(status) + "\n")};
}

uint32_t HttpConnection::events() const {
  if (state_ == State::kWriting) return EPOLLOUT;
  if (state_ == State::kReading || state_ == State::kClosing) return EPOLLIN;
  return 0;
}

bool HttpConnection::Go(int64_t now_ns) {
  if (state_ == State::kReading) return Read(now_ns);
  if (state_ == State::kWriting) Write(now_ns);
  if (state_ == State::kClosing) Discard();
  if (state_ == State::kWaiting) state_ = State::kDone;  // only a disconnect wakes a waiting client
  return false;
}

bool HttpConnection::Read(int64_t now_ns) {
  char piece[kPieceBytes];
  const ssize_t size = recv(file(), piece, sizeof piece, 0);
  if (size < 0 && (WouldBlock() || errno == EINTR)) return false;
  if (size <= 0) state_ = State::kDone;
  if (size <= 0) return false;
  const std::string_view news(piece, static_cast<size_t>(size));
  received_ += news;
  // A head ends with a line, so single bytes do not cause a new parse each.
  if (news.find('\n') == news.npos && received_.size() < kMostHeadBytes) return false;
  request_ = ReadRequestHead(received_);
  if (request_.state == RequestHead::State::kIncomplete) return false;
  received_ = {};
  if (request_.state == RequestHead::State::kComplete) return true;
  Answer(ErrorAnswer(request_.status), now_ns);
  return false;
}

void HttpConnection::AwaitPage(MadePage page, int64_t now_ns) {
  state_ = State::kWaiting;
  page_ = page;
  deadline_ns_ = now_ns + kAnswerNs;
}

void HttpConnection::Answer(const HttpAnswer& answer, int64_t now_ns) {
  head_ = HeadOf(answer);
  if (request_.method != "HEAD") body_ = answer.body;
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
    msghdr message{};
    message.msg_iov = rest;
    message.msg_iovlen = 2;
    const ssize_t sent = sendmsg(file(), &message, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && WouldBlock()) return;
    if (sent < 0) state_ = State::kDone;
    if (sent < 0) return;
    sent_ += static_cast<size_t>(sent);
  }
  shutdown(file(), SHUT_WR);
  state_ = State::kClosing;
  deadline_ns_ = now_ns + kCloseNs;
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
