// One client of the pages: reads its request's head, sends one answer, and closes.
//
// Owned and called by the pages' server, on its thread, when the socket is ready or time has
// passed. Never blocks.
//
// Invariants
//  1. A client has kHeadNs to send its head and kAnswerNs to take its answer, from the first byte
//  to the last.
//  2. Every answer says "Connection: close": a second request on the connection is never read.
//  3. After the answer the connection is closed in order: the client can read all of it before a
//  reset could take it away.
#pragma once

#include <cstdint>
#include <string>

#include "agent/http/page_maker.h"
#include "agent/http/request_head.h"
#include "base/unique_fd.h"

namespace spillway::agent {

struct HttpAnswer {
  int status = 200;
  const char* type = "text/plain; charset=utf-8";
  PageText body;
};

HttpAnswer ErrorAnswer(int status);

class HttpConnection {
 public:
  enum class State : uint8_t { kReading, kWaiting, kWriting, kClosing, kDone };

  HttpConnection(base::UniqueFd socket, int64_t now_ns)
      : socket_(std::move(socket)), deadline_ns_(now_ns + kHeadNs) {}

  int file() const { return socket_.get(); }
  State state() const { return state_; }
  int64_t deadline_ns() const { return deadline_ns_; }
  const RequestHead& request() const { return request_; }
  // What epoll is to watch.
  uint32_t events() const;

  // The socket is ready. True: a head has come whole, and is to be answered (or made to wait).
  bool Go(int64_t now_ns);
  void AwaitPage(MadePage page, int64_t now_ns);
  bool Awaits(MadePage page) const { return state_ == State::kWaiting && page_ == page; }
  void Answer(const HttpAnswer& answer, int64_t now_ns);
  void MissDeadline(int64_t now_ns);

 private:
  static constexpr int64_t kHeadNs = 5'000'000'000, kAnswerNs = 10'000'000'000,
                           kCloseNs = 1'000'000'000;

  bool Read(int64_t now_ns);
  void Write(int64_t now_ns);
  void Discard();

  base::UniqueFd socket_;
  State state_ = State::kReading;
  MadePage page_ = MadePage::kMetrics;
  int64_t deadline_ns_;
  std::string received_, head_;
  RequestHead request_;
  PageText body_;  // null: none is sent
  size_t sent_ = 0;
};

}  // namespace spillway::agent
