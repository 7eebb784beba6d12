// The engine on a shared machine (node_state.h): the same steps, each in this process's turn.
#include <signal.h>

#include <algorithm>
#include <chrono>

#include "simulator/driver/engine/engine.h"
#include "simulator/driver/machine/node.h"
#include "simulator/driver/machine/process.h"
#include "simulator/driver/machine/process_status.h"
#include "simulator/driver/machine/statistics.h"

namespace spillway::simulator {
namespace {

using node::EngineId;

// The longest wait of an idle process, for another process's event or for a memory value.
constexpr Nanos kWaitForOthers_ns = 1'000'000;
constexpr Nanos kWaitForTurn_ns = 1'000'000'000;

// A process is elsewhere if kChecksAsleep checks in a row find its threads asleep outside the
// driver, or after kChecksBusy checks in a row without a driver call.
constexpr auto kCheckInterval = std::chrono::milliseconds(20);
constexpr int kChecksAsleep = 5;
constexpr int kChecksBusy = 500;

node::Engine EngineOf(const Operation& operation) {
  if (operation.resource == Resource::kHostToDevice) return node::kH2d;
  return operation.resource == Resource::kDeviceToHost ? node::kD2h : node::kCompute;
}

EngineId IdOf(const Operation& operation) { return {operation.device, EngineOf(operation)}; }

void BlockAllSignals() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, nullptr);
}

}  // namespace

void Engine::NotifyChanged() {
  changed_.notify_all();
  if (turn_waiters_ > 0) node_->WakeOwn();
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

// One step: an operation's end, the arrival at `time_ns` (true), or a sleep until another acts.
bool Engine::StepShared(Lock& lock, Nanos time_ns) {
  const Node::Answer answer = node_->Ask(std::max(time_ns, clock_ns_));
  if (answer.turn == Node::Turn::kNotYet) {
    const Nanos limit_ns = NextToEnd() == nullptr ? kWaitForOthers_ns : kWaitForTurn_ns;
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
  ForecastSharedEnds();
  const OperationRef next = NextToEnd();
  if (next != nullptr && next->end_ns <= clock_ns_) Retire(next);
  holds_changed_ = true;
  Settle();
}

bool Engine::CanStart() const {
  return std::any_of(devices_.begin(), devices_.end(), [](const DeviceQueues& device) {
    const ReadyQueue& ready = device.ready_compute;
    if (!ready.empty() && (*ready.begin())->multiprocessors <= device.free_multiprocessors)
      return true;
    return (device.copying[kH2d] == nullptr && !device.ready_copies[kH2d].empty()) ||
           (device.copying[kD2h] == nullptr && !device.ready_copies[kD2h].empty());
  });
}

void Engine::TakeTurn() { clock_ns_ = std::max(clock_ns_, node_->AwaitTurn()); }

void Engine::StartOnSharedEngine(Operation& operation) {
  const EngineId id = IdOf(operation);
  const node::Work work = id.engine == node::kCompute
                              ? static_cast<node::Work>(operation.duration_ns) * node::kWorkPerNano
                              : node_->CopyWork(id, operation.link_bytes, operation.duration_ns);
  operation.shared_end = node_->GivenNow(id) + work;
  holds_changed_ = true;
}

void Engine::ForecastSharedEnds() {
  const std::vector<OperationRef> computing(computing_.begin(), computing_.end());
  computing_.clear();  // their order depends on the end times that change now
  for (const OperationRef& operation : computing) {
    operation->end_ns = node_->TimeOf(IdOf(*operation), operation->shared_end);
    computing_.insert(operation);
  }
  for (const DeviceQueues& device : devices_) {
    for (const OperationRef& copy : device.copying) {
      if (copy != nullptr) copy->end_ns = node_->TimeOf(IdOf(*copy), copy->shared_end);
    }
  }
}

void Engine::PublishHolds() {
  Node::Holds holds = {};
  const auto add = [&](const Operation& operation) {
    Node::Hold& hold = holds[static_cast<std::size_t>(operation.device)][EngineOf(operation)];
    hold.next_end =
        hold.holds ? std::min(hold.next_end, operation.shared_end) : operation.shared_end;
    hold.holds = true;
  };
  for (const OperationRef& operation : computing_) add(*operation);
  for (const DeviceQueues& device : devices_) {
    for (const OperationRef& copy : device.copying) {
      if (copy != nullptr) add(*copy);
    }
  }
  const Statistics& statistics = TheStatistics();
  node_->SetHolds(holds, {statistics.kernels, statistics.h2d_bytes, statistics.d2h_bytes,
                          static_cast<std::uint64_t>(computed_ns_)});
  holds_changed_ = false;
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
