#include "simulator/driver/engine/engine.h"

#include <signal.h>
#include <time.h>

#include <algorithm>
#include <chrono>

#include "base/clock.h"
#include "simulator/driver/engine/effect.h"
#include "simulator/driver/engine/timeline_file.h"
#include "simulator/driver/machine/node.h"
#include "simulator/driver/machine/process.h"
#include "simulator/driver/machine/process_status.h"
#include "simulator/driver/machine/profile.h"
#include "simulator/driver/machine/statistics.h"

namespace spillway::simulator {
namespace {

// A limit is needed: the host function may wait for the thread that advances the clock.
constexpr auto kHostFunctionTimeout = std::chrono::milliseconds(200);
// After so long without calls a program probably waits for a host function.
constexpr auto kHostIdle = std::chrono::milliseconds(20);
constexpr int kTurnAttempts = 100;
// A driver's queues take some thousand launches before the next launch blocks.
constexpr std::size_t kOperationsInFlight = 4096;
// A polling thread may sleep outside the virtual clock.
constexpr int kPatientPolls = 64;
constexpr auto kPollPause = std::chrono::milliseconds(1);

// For another process's event or for a memory value.
constexpr Nanos kWaitForOthers_ns = 1'000'000;
constexpr Nanos kWaitForTurn_ns = 1'000'000'000;

// A process is elsewhere if kChecksAsleep checks in a row find its threads asleep outside the
// driver, or after kChecksBusy checks in a row without a driver call. The former take well below
// 100 ms: so often a thread of a library below the program may call the driver, to look for work,
// while the program sleeps. Other processes then go on between two such calls.
constexpr auto kCheckInterval = std::chrono::milliseconds(20);
constexpr int kChecksAsleep = 2;
constexpr int kChecksBusy = 500;

Nanos MonotonicNow() { return base::NowNs(CLOCK_MONOTONIC); }

void BlockAllSignals() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, nullptr);
}

}  // namespace

Engine::Engine(const Profile& profile, AddressSpace& addresses, bool real_clock, int device_count,
               Node* node)
    : profile_(profile),
      addresses_(addresses),
      real_clock_(real_clock),
      real_origin_ns_(MonotonicNow()),
      node_(node),
      queues_(profile, device_count, node) {
  if (node_ != nullptr) std::thread([this] { AttendantMain(); }).detach();
}

Engine::Lock Engine::Acquire() {
  ++waiting_threads_;
  Lock lock(mutex_);
  --waiting_threads_;
  ++acquisitions_;
  return lock;
}

// A wait on the virtual clock runs kernels one after the other; other threads get turns.
void Engine::YieldMutex(Lock& lock) {
  const std::uint64_t before = acquisitions_;
  for (int attempt = 0; attempt < kTurnAttempts && waiting_threads_ > 0 && acquisitions_ == before;
       ++attempt) {
    lock.unlock();
    std::this_thread::yield();
    lock.lock();
  }
}

void Engine::Submit(Lock& lock, const OperationRef& operation,
                    const std::vector<OperationRef>& dependencies) {
  (void)lock;
  SubmitWithin(operation, dependencies);
  Settle();
  NotifyChanged();
}

void Engine::SubmitWithin(const OperationRef& operation,
                          const std::vector<OperationRef>& dependencies) {
  polls_without_work_ = 0;
  operation->sequence = next_sequence_++;
  operation->asked_ns = clock_ns_;
  for (const OperationRef& before : dependencies) Precede(before, operation);
  pending_.emplace(operation->sequence, operation);
  if (operation->resource == Resource::kHostThread) {
    ++host_pending_;
    EnsureHostThread();
  }
  if (operation->unmet == 0) MakeReady(operation);
}

void Engine::Precede(const OperationRef& earlier, const OperationRef& later) {
  if (IsDone(earlier)) return;
  earlier->successors.push_back(later);
  ++later->unmet;
}

void Engine::ChargeApiCall(Lock& lock) {
  ++api_calls_;
  WaitForQueueSpace(lock);
  if (real_clock_) {
    AdvanceToRealNow(lock);
  } else {
    AdvanceTo(lock, clock_ns_ + static_cast<Nanos>(profile_.api_call_ns));
  }
}

void Engine::WaitForQueueSpace(Lock& lock) {
  while (pending_.size() > kOperationsInFlight) {
    const OperationRef next = queues_.NextToEnd();
    if (next == nullptr) return;
    Wait(lock, next);
  }
}

void Engine::SpendHostTime(Lock& lock, Nanos time_ns) {
  if (!real_clock_) AdvanceTo(lock, clock_ns_ + time_ns);
}

void Engine::NoteNotReady(Lock& lock) {
  if (real_clock_ || ++polls_without_work_ <= kPatientPolls) return;
  if (const OperationRef next = queues_.NextToEnd(); next != nullptr) AdvanceTo(lock, next->end_ns);
}

void Engine::Wait(Lock& lock, const OperationRef& operation) {
  if (node_ != nullptr) return WaitShared(lock, operation);
  while (!IsDone(operation)) {
    if (real_clock_) AdvanceToRealNow(lock);
    if (operation->done) break;
    const OperationRef next = queues_.NextToEnd();
    if (next == nullptr) {
      changed_.wait_for(lock, kPollPause);
      PollExternalWaits();
    } else if (real_clock_) {
      changed_.wait_for(lock, std::chrono::nanoseconds(next->end_ns - clock_ns_));
    } else {
      AdvanceTo(lock, next->end_ns);
      YieldMutex(lock);
    }
  }
}

std::string Engine::DoomUsersOf(const Range& range) {
  std::string first;
  for (const auto& [sequence, operation] : pending_) {
    // A running kernel may have found the address in memory.
    const bool runs = operation->confined && queues_.IsComputing(operation);
    if (runs || operation->HasWordIn(range)) operation->AddSuspect(range);
    const std::uintptr_t used = operation->UsedAddressIn(range);
    if (used == 0) continue;
    operation->doomed_address = used;
    if (first.empty()) first = operation->Description();
  }
  return first;
}

void Engine::NotifyChanged() {
  changed_.notify_all();
  if (turn_waiters_ > 0) node_->WakeOwn();
}

void Engine::AdvanceToRealNow(Lock& lock) { AdvanceTo(lock, MonotonicNow() - real_origin_ns_); }

void Engine::AdvanceTo(Lock& lock, Nanos time_ns) {
  if (node_ != nullptr) return AdvanceShared(lock, time_ns);
  PollExternalWaits();
  while (true) {
    WaitForHostFunctions(lock);
    const OperationRef next = queues_.NextToEnd();
    if (next == nullptr || next->end_ns > time_ns) break;
    clock_ns_ = std::max(clock_ns_, next->end_ns);
    Retire(next);
    Settle();
  }
  clock_ns_ = std::max(clock_ns_, time_ns);
  TheStatistics().simulated_ns = static_cast<std::uint64_t>(clock_ns_);
}

void Engine::AdvanceShared(Lock& lock, Nanos time_ns) {
  PollExternalWaits();
  do {
    WaitForHostFunctions(lock);
  } while (!StepShared(lock, time_ns));
}

void Engine::WaitShared(Lock& lock, const OperationRef& operation) {
  while (!IsDone(operation)) {
    PollExternalWaits();
    WaitForHostFunctions(lock);
    if (operation->done) return;
    StepShared(lock, node::kNever);
    YieldMutex(lock);
  }
}

// An operation's end, the arrival at `time_ns` (true), or a sleep until another acts.
bool Engine::StepShared(Lock& lock, Nanos time_ns) {
  const Node::Answer answer = node_->Ask(std::max(time_ns, clock_ns_));
  if (answer.turn == Node::Turn::kNotYet) {
    const Nanos limit_ns = queues_.NextToEnd() == nullptr ? kWaitForOthers_ns : kWaitForTurn_ns;
    ++turn_waiters_;
    lock.unlock();
    node_->Sleep(answer.wake_count, limit_ns);
    lock.lock();
    --turn_waiters_;
    return false;
  }
  clock_ns_ = std::max(clock_ns_, answer.at_ns);
  TheStatistics().simulated_ns = static_cast<std::uint64_t>(clock_ns_);
  if (answer.turn == Node::Turn::kOwnEnd) EndOneShared();
  if (turn_waiters_ > 0) node_->WakeOwn();
  return answer.turn == Node::Turn::kArrived;
}

void Engine::EndOneShared() {
  queues_.ForecastSharedEnds();
  const OperationRef next = queues_.NextToEnd();
  if (next != nullptr && next->end_ns <= clock_ns_) Retire(next);
  Settle();
}

void Engine::Retire(const OperationRef& operation) {
  queues_.Retire(operation, clock_ns_);
  Finish(operation);
}

void Engine::WaitForHostFunctions(Lock& lock) {
  const auto idle = [&] { return !host_running_ && host_queue_.empty(); };
  if (real_clock_ || host_function_timed_out_ || idle() ||
      std::this_thread::get_id() == host_thread_)
    return;
  if (!changed_.wait_for(lock, kHostFunctionTimeout, idle))
    host_function_timed_out_ = host_running_;
}

void Engine::MakeReady(const OperationRef& operation) {
  operation->ready_ns = clock_ns_;
  switch (operation->resource) {
    case Resource::kNone:
      instant_.push_back(operation);
      break;
    case Resource::kExternalWait:
      external_.push_back(operation);
      instant_.push_back(operation);
      break;
    case Resource::kHostThread:
      host_queue_.push_back(operation);
      host_work_.notify_one();
      break;
    case Resource::kCompute:
    case Resource::kHostToDevice:
    case Resource::kDeviceToHost:
      queues_.Add(operation);
      break;
  }
}

void Engine::Settle() {
  while (!instant_.empty()) {
    const OperationRef operation = instant_.front();
    instant_.pop_front();
    if (operation->done) continue;
    if (operation->resource != Resource::kExternalWait) {
      Finish(operation);
    } else if (IsDead(*operation) || operation->condition()) {
      std::erase(external_, operation);
      Finish(operation);
    }
  }
  if (node_ != nullptr && queues_.CanStart()) clock_ns_ = std::max(clock_ns_, node_->AwaitTurn());
  queues_.Start(clock_ns_);
  if (node_ != nullptr) queues_.PublishHolds();
}

void Engine::Finish(const OperationRef& operation) {
  operation->end_ns = clock_ns_;
  NoteInTimeline(*operation);
  if (operation->resource != Resource::kHostThread) ApplyEffect(addresses_, *operation);
  operation->done = true;
  operation->effect = nullptr;
  operation->condition = nullptr;
  operation->extents.clear();
  operation->words.clear();
  operation->suspects.clear();
  pending_.erase(operation->sequence);
  for (const OperationRef& successor : operation->successors) {
    if (--successor->unmet == 0) MakeReady(successor);
  }
  operation->successors.clear();
}

void Engine::PollExternalWaits() {
  if (external_.empty()) return;
  instant_.insert(instant_.end(), external_.begin(), external_.end());
  Settle();
}

void Engine::EnsureHostThread() {
  if (host_thread_ != std::thread::id()) return;
  std::thread thread([this] { HostThreadMain(); });
  host_thread_ = thread.get_id();
  thread.detach();
}

void Engine::HostThreadMain() {
  Lock lock(mutex_);
  while (true) {
    const std::uint64_t calls_before = api_calls_;
    const bool work = host_work_.wait_for(lock, kHostIdle, [&] { return !host_queue_.empty(); });
    if (work) {
      RunHostFunction(lock);
    } else if (host_pending_ > 0 && api_calls_ == calls_before) {
      AdvanceForIdleProgram(lock);
    }
  }
}

void Engine::RunHostFunction(Lock& lock) {
  const OperationRef operation = host_queue_.front();
  host_queue_.pop_front();
  host_running_ = true;
  lock.unlock();
  operation->effect();
  lock.lock();
  host_running_ = false;
  host_function_timed_out_ = false;
  --host_pending_;
  Finish(operation);
  Settle();
  NotifyChanged();
}

// Nothing else advances the clock while a program waits for its host function.
void Engine::AdvanceForIdleProgram(Lock& lock) {
  if (real_clock_) return AdvanceToRealNow(lock);
  while (host_queue_.empty()) {
    const OperationRef next = queues_.NextToEnd();
    if (next == nullptr) return;
    AdvanceTo(lock, next->end_ns);
  }
}

// Runs the device's work while the program is elsewhere, so that other processes can go on.
void Engine::AttendantMain() {
  BlockAllSignals();
  std::uint64_t calls_seen = 0;
  int checks_alone = 0;
  int checks_asleep = 0;
  while (!HasShutDown()) {
    std::this_thread::sleep_for(kCheckInterval);
    node_->Beat();
    checks_alone = HasNoCallers(calls_seen) ? checks_alone + 1 : 0;
    if (checks_alone == 0) checks_asleep = 0;
    if (checks_alone == 0) continue;
    checks_asleep = AnotherThreadIsBusy() ? 0 : checks_asleep + 1;
    if (checks_asleep >= kChecksAsleep || checks_alone >= kChecksBusy) Attend(calls_seen);
  }
}

// True if no thread is in the driver, and none was since the last check.
bool Engine::HasNoCallers(std::uint64_t& calls_seen) {
  const Lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock() || turn_waiters_ > 0) return false;
  const bool alone = api_calls_ == calls_seen;
  calls_seen = api_calls_;
  return alone;
}

void Engine::Attend(std::uint64_t calls_seen) {
  Lock lock(mutex_);
  while (api_calls_ == calls_seen && !HasShutDown()) {
    PollExternalWaits();
    StepShared(lock, node::kNever);
  }
}

}  // namespace spillway::simulator
