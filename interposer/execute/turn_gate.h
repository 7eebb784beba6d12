// Where the program's calls wait while it is not this process's turn on a device.
//
// Hooks of calls that enqueue work or allocate hold a TurnPass from before the first lock until the
// driver's function has returned. Calls that only wait for the device, and frees, pass freely. One
// gate serves the whole process: a job has its turn on all its devices, or on none. AgentSession
// holds and opens it. Until then a pass costs one load.
//
// Note [Quiet]
// Memory may leave for another job only once no call is in progress that could need more than the
// smaller budget. A pass is counted before it looks at the gate, and whoever holds the gate looks
// at the count afterwards, both sequentially consistent. So once the gate is held and IsQuiet, no
// call is inside, and none comes in. The first Hold finds passes that were not counted yet; the
// job's own counts of calls (JobView::AnyCallInside) tell of these.
//
// Note [Captures pass]
// While any thread captures, the gate holds no call of the process, on any thread: the capture may
// need another thread's call, and a call says too late that it belongs to a capture. So a process
// that captures all the time does not wait for its turns.
//
// Invariants
//  1. No call waits here while a stream capture goes on. (Note [Captures pass])
//  2. A thread that waits here holds no lock of ours, and the process counts as active.
#pragma once

#include <atomic>
#include <cstdint>

namespace spillway::interposer {

class TurnGate {
 public:
  static TurnGate& Instance() { return instance_; }

  // True: Leave must follow.
  bool Enter() { return is_counting_.load(std::memory_order_relaxed) && EnterCounted(); }
  void Leave() { inside_.fetch_sub(1); }

  void Hold();
  void Open();
  bool IsHeld() const { return is_held_.load(); }
  bool AnyWaits() const { return waiting_.load() > 0; }
  bool IsQuiet() const { return inside_.load() == 0; }

  // Since the process began. While a call waits, its time so far is included.
  std::uint64_t WaitedNs() const;
  std::uint64_t turns() const { return turns_.load(std::memory_order_relaxed); }

 private:
  bool EnterCounted();
  void Await();

  static TurnGate instance_;
  std::atomic<bool> is_counting_{false}, is_held_{false};
  std::atomic<int> inside_{0};
  std::atomic<int> waiting_{0};
  std::atomic<std::uint64_t> waiting_since_ns_{0};  // the process, as long as any call waits
  std::atomic<std::uint64_t> waited_ns_{0}, turns_{0};
};

class TurnPass {
 public:
  TurnPass() : is_counted_(TurnGate::Instance().Enter()) {}
  ~TurnPass() {
    if (is_counted_) TurnGate::Instance().Leave();
  }
  TurnPass(const TurnPass&) = delete;
  TurnPass& operator=(const TurnPass&) = delete;

 private:
  const bool is_counted_;
};

}  // namespace spillway::interposer
