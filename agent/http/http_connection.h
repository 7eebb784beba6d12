// One HTTP client: reads its request's head, sends one answer, and closes. Called by the server's
// thread when the socket is ready or a deadline passed; never blocks.
//
// Invariants
//  1. A client has kHeadNs in total to send its head, and kAnswerNs to take its answer.
//  2. Every answer says "Connection: close".
//  3. The connection is closed in order: no reset can overtake the answer.
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
  uint32_t events() const;

  // True: the head is complete and needs an answer (or a wait).
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
  PageText body_;  // null: no body
  size_t sent_ = 0;
};

}  // namespace spillway::agent
