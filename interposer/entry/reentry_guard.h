// Keeps a hook from taking work of its own, or of the driver's, for the program's.
//
// Every hook that does more than forward has one as its first line, on the program's thread:
//
//     ReentryGuard guard;
//     if (!guard.IsOutermost()) return Driver().cuMemFree_v2(address);
//
// Invariants
//  1. On each thread at most one guard is outermost at any moment: driver calls made below a hook,
//  by us or by the
//     driver's own use of its exported functions, meet guards that are not, and pass.
//  2. After ForwardEverything() no guard is ever outermost again: every hook only forwards. A
//  forked child calls it (the
//     driver refuses an inherited context by itself, and the answer is to be the driver's own), and
//     so does the interposer when it must disarm.
//
// It takes no lock and calls nothing.
#pragma once

#include <atomic>

namespace spillway::entry {

namespace internal {
inline constinit std::atomic<bool> forwards_everything{false};
// Initial-exec: a preloaded library has its place in the static TLS block, and the access needs no
// call.
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
