// Keeps a hook from treating our own calls, or the driver's, as the program's.
//
// Every hook that does more than forward begins with a guard, on the program's thread:
//
//     ReentryGuard guard;
//     if (!guard.IsOutermost()) return Driver().cuMemFree_v2(address);
//
// Invariants
//  1. On each thread at most one guard is outermost. Driver calls below a hook, by us or by the
//     driver's own use of its exports, find their guards not outermost, and pass.
//  2. After ForwardEverything() no guard is ever outermost again: every hook only forwards. Called
//     in a forked child, because the driver itself must refuse it, and to disarm.
#pragma once

#include <atomic>

namespace spillway::entry {

namespace internal {
inline constinit std::atomic<bool> forwards_everything{false};
// Initial-exec: a preloaded library is in the static TLS block, so the access needs no call.
inline constinit thread_local bool inside_hook __attribute__((tls_model("initial-exec"))) = false;
}  // namespace internal

class ReentryGuard {
 public:
  ReentryGuard()
      : is_outermost_(!internal::inside_hook &&
                      !internal::forwards_everything.load(std::memory_order_relaxed)) {
    if (is_outermost_) internal::inside_hook = true;
  }
  ~ReentryGuard() {
    if (is_outermost_) internal::inside_hook = false;
  }
  ReentryGuard(const ReentryGuard&) = delete;
  ReentryGuard& operator=(const ReentryGuard&) = delete;

  bool IsOutermost() const { return is_outermost_; }

 private:
  const bool is_outermost_;
};

inline void ForwardEverything() {
  internal::forwards_everything.store(true, std::memory_order_relaxed);
}
inline bool ForwardsEverything() {
  return internal::forwards_everything.load(std::memory_order_relaxed);
}

}  // namespace spillway::entry
