// Adds one to a count while the object lives.
#pragma once

#include <atomic>

namespace spillway::base {

class ScopedCount {
 public:
  explicit ScopedCount(std::atomic<int>* count) : count_(count) {
    count_->fetch_add(1, std::memory_order_relaxed);
  }
  ~ScopedCount() { count_->fetch_sub(1, std::memory_order_relaxed); }
  ScopedCount(const ScopedCount&) = delete;
  ScopedCount& operator=(const ScopedCount&) = delete;

 private:
  std::atomic<int>* const count_;
};

}  // namespace spillway::base
