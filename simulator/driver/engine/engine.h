// The core of the simulated GPU: runs operations as they depend on each other, on one clock.
//
// Virtual clock (default): a discrete-event simulation in integer nanoseconds. Each API call
// advances it by a constant, a wait to the awaited end. Real clock: CLOCK_MONOTONIC; waits sleep.
//
// Every member function needs the mutex held (a `Lock` argument is the proof). Host functions run
// on the engine's own thread, outside the mutex; kernels and copies on the thread that advances the
// clock.
//
// Invariants
//  1. The clock never goes back. Operations take effect in the order (end_ns, sequence).
//  2. A wait in one thread never keeps another thread from submitting work.
//  3. Work in flight is bounded: a program that submits faster than the device works must wait,
//     unless the device itself waits for an outside event.
//  4. On a machine that several processes share (node.h) the clock moves only in this process's
//     turn. A thread that waits for the turn releases the mutex.
//  5. After a fault no operation of that context takes effect, but all of them still become done.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "simulator/driver/engine/device_queues.h"
#include "simulator/driver/engine/operation.h"

namespace spillway::simulator {

struct Profile;
class AddressSpace;
class Node;

class Engine {
 public:
  using Lock = std::unique_lock<std::mutex>;

  // `addresses` may be built later, but before the first operation runs.
  Engine(const Profile& profile, AddressSpace& addresses, bool real_clock, int device_count = 1,
         Node* node = nullptr);

  Lock Acquire();

  // Null and finished `dependencies` are ignored.
  void Submit(Lock& lock, const OperationRef& operation,
              const std::vector<OperationRef>& dependencies);

  // From an effect: nothing starts before the effect returns.
  void SubmitWithin(const OperationRef& operation, const std::vector<OperationRef>& dependencies);

  // `later`, which is not ready yet, also waits for `earlier`.
  static void Precede(const OperationRef& earlier, const OperationRef& later);

  // Charges one API call. If the last call filled the queues, this one waits until they drain.
  void ChargeApiCall(Lock& lock);

  void SpendHostTime(Lock& lock, Nanos time_ns);

  // For an answer of "not ready". Many in a row count as a wait: the clock moves to the next end.
  void NoteNotReady(Lock& lock);

  void Wait(Lock& lock, const OperationRef& operation);

  // Before unmapping: unfinished operations that certainly use `range` will fault; returns the name
  // of the first, or an empty string. Operations that may use it fault if they touch it.
  std::string DoomUsersOf(const Range& range);

  // Every operation before the first is done; none has the second or a later one yet.
  std::uint64_t first_unfinished() const {
    return pending_.empty() ? next_sequence_ : pending_.begin()->first;
  }
  std::uint64_t next_sequence() const { return next_sequence_; }

  Nanos now() const { return clock_ns_; }
  bool real_clock() const { return real_clock_; }

 private:
  void YieldMutex(Lock& lock);
  void WaitForQueueSpace(Lock& lock);
  void AdvanceTo(Lock& lock, Nanos time_ns);
  void AdvanceToRealNow(Lock& lock);
  void NotifyChanged();

  void AdvanceShared(Lock& lock, Nanos time_ns);
  void WaitShared(Lock& lock, const OperationRef& operation);
  bool StepShared(Lock& lock, Nanos time_ns);
  void EndOneShared();
  void AttendantMain();
  bool HasNoCallers(std::uint64_t& calls_seen);
  void Attend(std::uint64_t calls_seen);

  void WaitForHostFunctions(Lock& lock);
  void MakeReady(const OperationRef& operation);
  void Settle();
  void Retire(const OperationRef& operation);
  void Finish(const OperationRef& operation);
  void PollExternalWaits();
  void RunHostFunction(Lock& lock);
  void AdvanceForIdleProgram(Lock& lock);
  void EnsureHostThread();
  void HostThreadMain();

  const Profile& profile_;
  AddressSpace& addresses_;
  const bool real_clock_;
  const Nanos real_origin_ns_;
  Node* const node_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;  // signalled for new work and finished host functions
  std::condition_variable host_work_;
  std::atomic<int> waiting_threads_{0};  // in Acquire

  Nanos clock_ns_ = 0;
  std::uint64_t next_sequence_ = 1;
  std::uint64_t api_calls_ = 0;
  int polls_without_work_ = 0;  // "not ready" answers since the last submission
  std::map<std::uint64_t, OperationRef> pending_;
  std::uint64_t acquisitions_ = 0;
  DeviceQueues queues_;
  std::deque<OperationRef> instant_;  // ready, takes no time
  std::vector<OperationRef> external_;
  std::deque<OperationRef> host_queue_;
  std::uint64_t host_pending_ = 0;  // not done
  bool host_running_ = false;
  bool host_function_timed_out_ = false;  // exceeded kHostFunctionTimeout
  std::thread::id host_thread_;
  int turn_waiters_ = 0;  // threads that wait for this process's turn
};

}  // namespace spillway::simulator
