// The simulated GPU's heart: runs operations in the order of their dependencies, on one clock,
// under one mutex.
//
// Virtual clock (default): integer nanoseconds, a discrete-event simulation. The host's time and
// the device's time are one clock: each API call advances it by a constant, a wait advances it to
// the awaited end, and every operation whose end it passes takes effect on the way. Real clock: the
// same machine, but "now" is CLOCK_MONOTONIC and waits sleep.
//
// Threads: every member function needs the mutex held (a `Lock` argument is the proof). Host
// functions run on a thread of the engine's own, outside the mutex; kernels and copies run on
// whichever thread advances the clock. Ownership: one instance, never destroyed.
//
// Invariants
//  1. The clock never goes back. Operations take effect in the order (end_ns, sequence).
//  2. Each device has two copy engines of its own, which work on one operation at a time, and
//  computes as many as have
//     multiprocessors; among ready ones the smallest (priority, ready_ns, sequence) goes first and
//     none overtakes it. Nothing in the choice depends on addresses or on real time.
//  3. Both links of a device busy: each progresses at its both-way rate from that moment on.
//  4. A wait in one thread never keeps another thread from submitting work.
//  5. Work in flight is bounded: who submits faster than the device works is held back, unless the
//  device itself waits
//     for something outside.
//  6. On a machine that several processes share (node.h) the clock moves only in this process's
//  turn, and an operation's end
//     depends on who else works: engine_shared.cpp. A thread that waits for the turn lets the
//     others in.
//  7. After a fault no operation of that context takes effect, but all still become done.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "simulator/driver/engine/operation.h"

namespace spillway::simulator {

struct Profile;
class AddressSpace;
class Node;

class Engine {
 public:
  using Lock = std::unique_lock<std::mutex>;

  // `addresses` may be built later, but before the first operation runs. All devices are alike.
  // `node`: the machine whose time is shared, or null.
  Engine(const Profile& profile, AddressSpace& addresses, bool real_clock, int device_count = 1,
         Node* node = nullptr);

  Lock Acquire();

  // Adds work that starts after `dependencies` (null and finished ones are ignored).
  void Submit(Lock& lock, const OperationRef& operation,
              const std::vector<OperationRef>& dependencies);

  // One API call has been made: its cost passes, and whatever ends meanwhile takes effect. If the
  // last call filled the queues, this one waits for room.
  void ChargeApiCall(Lock& lock);

  // The calling thread is busy in the driver for this long.
  void SpendHostTime(Lock& lock, Nanos time_ns);

  // A query answered "not ready". A program that only asks, again and again, waits: the clock goes
  // to the next end.
  void NoteNotReady(Lock& lock);

  // Returns when `operation` is done; the mutex is free while it sleeps.
  void Wait(Lock& lock, const OperationRef& operation);

  // `range` goes away now: operations that are not done and certainly use it will end in a fault.
  // Returns the name of the first of them, or an empty string. Those that only may use it fault,
  // and are counted, if they touch it.
  std::string DoomUsersOf(const Range& range);

  Nanos now() const { return clock_ns_; }
  bool real_clock() const { return real_clock_; }

 private:
  struct ReadyOrder {
    bool operator()(const OperationRef& a, const OperationRef& b) const;
  };
  struct EndOrder {
    bool operator()(const OperationRef& a, const OperationRef& b) const;
  };
  using ReadyQueue = std::set<OperationRef, ReadyOrder>;
  enum Link { kH2d, kD2h, kLinks };
  // What one device has to work with.
  struct DeviceQueues {
    int free_multiprocessors;
    ReadyQueue ready_compute;
    std::array<ReadyQueue, kLinks> ready_copies;
    std::array<OperationRef, kLinks> copying;
  };

  void LetOthersIn(Lock& lock);
  void WaitForRoom(Lock& lock);
  void AdvanceTo(Lock& lock, Nanos time_ns);
  void AdvanceToRealNow(Lock& lock);
  void NotifyChanged();

  // With a node.
  void AdvanceShared(Lock& lock, Nanos time_ns);
  void WaitShared(Lock& lock, const OperationRef& operation);
  bool StepShared(Lock& lock, Nanos time_ns);
  void EndOneShared();
  bool CanStart() const;
  void TakeTurn();
  void JoinEngine(Operation& operation);
  void ForecastSharedEnds();
  void PublishHolds();
  void AttendantMain();
  bool IsLeftAlone(std::uint64_t& calls_seen);
  void Attend(std::uint64_t calls_seen);

  void WaitForHostFunctions(Lock& lock);
  OperationRef NextToEnd() const;
  void MakeReady(const OperationRef& operation);
  void Settle();
  void Retire(const OperationRef& operation);
  DeviceQueues& QueuesOf(const Operation& operation) {
    return devices_[static_cast<std::size_t>(operation.device)];
  }
  void StartCompute(DeviceQueues& device);
  void StartLinks();
  void Finish(const OperationRef& operation);
  void ApplyEffect(Operation& operation);
  void RunEffect(const Operation& operation);
  static void NoteFault(const Operation& operation, std::uintptr_t address);
  void PollExternalWaits();
  void SettleLinkWork();
  void ForecastLinkEnds();
  std::uint64_t LinkRate(const DeviceQueues& device, int link) const;
  void RunHostFunction(Lock& lock);
  void AdvanceForIdleProgram(Lock& lock);
  void EnsureHostThread();
  void HostThreadMain();

  // Constant after construction.
  const Profile& profile_;
  AddressSpace& addresses_;
  const bool real_clock_;
  const Nanos real_origin_ns_;
  Node* const node_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;  // work came, or a host function finished
  std::condition_variable host_work_;
  std::atomic<int> waiting_threads_{0};  // in Acquire

  // Guarded by mutex_.
  Nanos clock_ns_ = 0;
  Nanos link_settled_ns_ = 0;
  std::uint64_t next_sequence_ = 1;
  std::uint64_t api_calls_ = 0;
  int polls_without_work_ = 0;  // "not ready" answers since the last submission
  std::map<std::uint64_t, OperationRef> pending_;
  std::uint64_t acquisitions_ = 0;
  std::vector<DeviceQueues> devices_;
  std::set<OperationRef, EndOrder> computing_;
  std::deque<OperationRef> instant_;  // ready, takes no time
  std::vector<OperationRef> external_;
  std::deque<OperationRef> host_queue_;
  std::uint64_t host_pending_ = 0;  // host functions that are not done
  bool host_running_ = false;
  bool patience_is_over_ = false;  // with the host function that runs
  std::thread::id host_thread_;    // none before the first host function
  int turn_waiters_ = 0;           // threads that wait for this process's turn
  bool holds_changed_ = false;  // which of the node's engines this process works on, not yet told
  Nanos computed_ns_ = 0;       // so far
};

}  // namespace spillway::simulator
