// A mutex that clang's thread-safety analysis understands, with a rank (lock_rank.h). Hold it
// through MutexLock. SPILLWAY_CHECK_LOCKS checks the order.
#pragma once

#include <cstdlib>
#include <mutex>

#include "base/lock_rank.h"
#include "base/schedule_point.h"

#if defined(__clang__)
#define SPILLWAY_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define SPILLWAY_THREAD_ANNOTATION(x)
#endif
#define SPILLWAY_CAPABILITY(x) SPILLWAY_THREAD_ANNOTATION(capability(x))
#define SPILLWAY_SCOPED_CAPABILITY SPILLWAY_THREAD_ANNOTATION(scoped_lockable)
#define SPILLWAY_GUARDED_BY(x) SPILLWAY_THREAD_ANNOTATION(guarded_by(x))
#define SPILLWAY_REQUIRES(...) SPILLWAY_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define SPILLWAY_EXCLUDES(...) SPILLWAY_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))
#define SPILLWAY_ACQUIRE(...) SPILLWAY_THREAD_ANNOTATION(acquire_capability(__VA_ARGS__))
#define SPILLWAY_TRY_ACQUIRE(...) SPILLWAY_THREAD_ANNOTATION(try_acquire_capability(__VA_ARGS__))
#define SPILLWAY_UNANALYSED SPILLWAY_THREAD_ANNOTATION(no_thread_safety_analysis)
#define SPILLWAY_RELEASE(...) SPILLWAY_THREAD_ANNOTATION(release_capability(__VA_ARGS__))

namespace spillway::base {

#if defined(SPILLWAY_CHECK_LOCKS)
inline thread_local unsigned held_ranks = 0;  // bit r: a lock of rank r is held

inline void NoteLock(LockRank rank) {
  const unsigned bit = 1u << static_cast<int>(rank);
  if (held_ranks >= bit) std::abort();
  held_ranks |= bit;
}
inline void NoteUnlock(LockRank rank) { held_ranks &= ~(1u << static_cast<int>(rank)); }
#else
inline void NoteLock(LockRank) {}
inline void NoteUnlock(LockRank) {}
#endif

class SPILLWAY_CAPABILITY("mutex") Mutex {
 public:
  explicit constexpr Mutex(LockRank rank) : rank_(rank) {}

  void Lock() SPILLWAY_ACQUIRE() {
    NoteLock(rank_);
    SchedulePoint();
    if (IsScheduled()) {
      while (!mutex_.try_lock()) SchedulePoint();
    } else {
      mutex_.lock();
    }
  }
  bool TryLock() SPILLWAY_TRY_ACQUIRE(true) {
    if (!mutex_.try_lock()) return false;
    NoteLock(rank_);
    return true;
  }
  void Unlock() SPILLWAY_RELEASE() {
    mutex_.unlock();
    NoteUnlock(rank_);
    SchedulePoint();
  }

 private:
  const LockRank rank_;
  std::mutex mutex_;
};

class SPILLWAY_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) SPILLWAY_ACQUIRE(mutex) : mutex_(mutex) { mutex_.Lock(); }
  ~MutexLock() SPILLWAY_RELEASE() { mutex_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

}  // namespace spillway::base
