// The two locks of a job's memory, and names by which classes say which one they need.
//
// Ranks: kMaking and kState in base/lock_rank.h.
//
// Note [Named locks]
// A decision about memory crosses several classes, so they share two locks. Clang's analysis tells
// locks apart by the expression that names them, and each class would use another expression. So
// kMakingLock and kStateLock stand for the locks of whichever job the code works on. Annotations
// name these two, and the guards below declare that they hold them. A thread never holds the state
// locks of two jobs: both have one rank.
//
// Invariants
//  1. Making comes before state: a thread that holds the state lock does not take the making lock.
#pragma once

#include "base/mutex.h"

#define SPILLWAY_PT_GUARDED_BY(x) SPILLWAY_THREAD_ANNOTATION(pt_guarded_by(x))

namespace spillway::interposer {

class SPILLWAY_CAPABILITY("mutex") NamedLock {};
inline constexpr NamedLock kMakingLock;  // the right to make memory resident
inline constexpr NamedLock kStateLock;   // all that is known of the job's memory

class StateMutex {
 public:
  void Lock() SPILLWAY_UNANALYSED {
    mutex_.Lock();
    is_held_here = true;
  }
  bool TryLock() SPILLWAY_UNANALYSED {
    const bool taken = mutex_.TryLock();
    if (taken) is_held_here = true;
    return taken;
  }
  void Unlock() SPILLWAY_UNANALYSED {
    is_held_here = false;
    mutex_.Unlock();
  }
  static bool IsHeldHere() { return is_held_here; }

 private:
  // Initial-exec, as in reentry_guard.h. One flag for all jobs: see Note [Named locks].
  static inline constinit thread_local bool is_held_here
      __attribute__((tls_model("initial-exec"))) = false;
  base::Mutex mutex_{base::LockRank::kState};
};

class JobLocks {
 public:
  bool TryLockMaking() SPILLWAY_TRY_ACQUIRE(true, kMakingLock) SPILLWAY_UNANALYSED {
    return making_.TryLock();
  }
  void UnlockMaking() SPILLWAY_RELEASE(kMakingLock) SPILLWAY_UNANALYSED { making_.Unlock(); }
  bool TryLockState() SPILLWAY_TRY_ACQUIRE(true, kStateLock) SPILLWAY_UNANALYSED {
    return state_.TryLock();
  }
  void UnlockState() SPILLWAY_RELEASE(kStateLock) SPILLWAY_UNANALYSED { state_.Unlock(); }

 private:
  friend class MakingLock;
  friend class StateLock;
  base::Mutex making_{base::LockRank::kMaking};
  StateMutex state_;
};

class SPILLWAY_SCOPED_CAPABILITY MakingLock {
 public:
  explicit MakingLock(JobLocks& locks) SPILLWAY_ACQUIRE(kMakingLock) SPILLWAY_UNANALYSED
      : mutex_(locks.making_) {
    mutex_.Lock();
  }
  ~MakingLock() SPILLWAY_RELEASE() SPILLWAY_UNANALYSED { mutex_.Unlock(); }
  MakingLock(const MakingLock&) = delete;
  MakingLock& operator=(const MakingLock&) = delete;

 private:
  base::Mutex& mutex_;
};

class SPILLWAY_SCOPED_CAPABILITY StateLock {
 public:
  explicit StateLock(JobLocks& locks) SPILLWAY_ACQUIRE(kStateLock) SPILLWAY_UNANALYSED
      : mutex_(locks.state_) {
    mutex_.Lock();
  }
  ~StateLock() SPILLWAY_RELEASE() SPILLWAY_UNANALYSED { mutex_.Unlock(); }
  StateLock(const StateLock&) = delete;
  StateLock& operator=(const StateLock&) = delete;

  // Whether this thread is below a holder. So is a driver that asks about memory during a launch of
  // ours, as the simulated one does.
  static bool IsHeldHere() { return StateMutex::IsHeldHere(); }

 private:
  StateMutex& mutex_;
};

}  // namespace spillway::interposer
