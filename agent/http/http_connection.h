// One HTTP client: reads its request's head, sends one answer or a stream of events, and closes.
// Called by the server's thread when the socket is ready or a deadline passed; never blocks.
//
// Invariants
//  1. A client has kHeadNs in total to send its head, and kAnswerNs to take its answer, or an
//  event.
//  2. Every answer says "Connection: close".
//  3. The connection is closed in order: no reset can overtake the answer.
//  4. A stream holds at most one event. A client that is not done with one misses the next.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "agent/http/http_answer.h"
#include "agent/http/request_head.h"
#include "agent/http/transport.h"

namespace spillway::agent {

class HttpConnection {
 public:
  enum class State : uint8_t { kReading, kWaiting, kWriting, kStreaming, kClosing, kDone };

  // `is_local`: over a Unix socket, whose permissions say who may connect.
  HttpConnection(std::unique_ptr<Transport> transport, bool is_local, int64_t now_ns)
      : transport_(std::move(transport)), is_local_(is_local), deadline_ns_(now_ns + kHeadNs) {}

  int file() const { return transport_->file(); }
  State state() const { return state_; }
  bool is_local() const { return is_local_; }
  bool is_stream() const { return is_stream_; }
  int64_t deadline_ns() const { return deadline_ns_; }
  const RequestHead& request() const { return request_; }
  uint32_t events() const;

  // True: the head is complete and needs an answer (or a wait).
  bool Go(int64_t now_ns);
  void AwaitPage(const std::string& path, int64_t now_ns);
  bool Awaits(const std::string& path) const { return state_ == State::kWaiting && path_ == path; }
  void Answer(const HttpAnswer& answer, int64_t now_ns);
  // The head of a stream, with further `fields` as in HttpAnswer, and its first bytes.
  void BeginStream(const char* fields, PageText first, int64_t now_ns);
  void Push(const PageText& event, int64_t now_ns);
  void EndStream(int64_t now_ns);
  void MissDeadline(int64_t now_ns);

 private:
  static constexpr int64_t kHeadNs = 5'000'000'000, kAnswerNs = 10'000'000'000,
                           kSilenceNs = 60'000'000'000, kCloseNs = 1'000'000'000;

  bool Read(int64_t now_ns);
  void BeginWriting(std::string head, PageText body, int64_t now_ns);
  void Write(int64_t now_ns);
  void EndWriting(int64_t now_ns);
  void Discard();

  std::unique_ptr<Transport> transport_;
  bool is_local_;
  State state_ = State::kReading;
  bool is_stream_ = false;
  std::string path_;  // of the page that it awaits
  int64_t deadline_ns_;
  std::string received_, head_;
  RequestHead request_;
  PageText body_;  // null: no body
  size_t sent_ = 0;
};

}  // namespace spillway::agent
