// Chooses the next request to plan: users take turns, and nobody fills the queue or all workers.
// Pure: times are passed in.
//
// Invariants
//  1. A user has at most `per_user` requests here, waiting or begun; all users `in_all`.
//  2. Next is the user whose last turn is longest ago; within one user, the first request.
//  3. With several workers no user has all of them.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace spillway::agent {

class PlanQueue {
 public:
  struct Limits {
    int64_t per_user = 0, in_all = 0, workers = 0;
  };
  enum class Entry : uint8_t { kWaits, kUserHasTooMany, kTooMany };

  explicit PlanQueue(const Limits& limits) : limits_(limits) {}
  void SetLimits(const Limits& limits) { limits_ = limits; }

  Entry Enter(uint64_t id, const std::string& user, int64_t expires_ns);
  // Counted as begun. Nullopt: none waits, or none may begin.
  std::optional<uint64_t> Begin();
  std::vector<uint64_t> TakeExpired(int64_t now_ns);
  std::optional<int64_t> NextExpiry() const;
  // Unknown ids are ignored.
  void Leave(uint64_t id);

  int64_t waiting() const { return static_cast<int64_t>(requests_.size()) - running_; }
  int64_t running() const { return running_; }

 private:
  struct Request {
    std::string user;
    int64_t expires_ns = 0;
    bool has_begun = false;
  };
  struct User {
    std::deque<uint64_t> waiting = {};
    int64_t requests = 0, running = 0;
    uint64_t last_turn = 0;
  };

  Limits limits_;
  std::map<uint64_t, Request> requests_;
  std::map<std::string, User> users_;
  int64_t running_ = 0;
  uint64_t turns_ = 0;
};

}  // namespace spillway::agent
