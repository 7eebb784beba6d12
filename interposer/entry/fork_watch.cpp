#include "interposer/entry/fork_watch.h"

#include <pthread.h>

#include <atomic>

#include "interposer/entry/reentry_guard.h"

namespace spillway::entry {

void WatchForks() {
  static constinit std::atomic<bool> watching{false};
  if (watching.exchange(true)) return;
  pthread_atfork(nullptr, nullptr, &ForwardEverything);
}

}  // namespace spillway::entry
