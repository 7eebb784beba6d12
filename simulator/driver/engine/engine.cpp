#include "simulator/driver/engine/engine.h"

#include <time.h>

#include <chrono>
#include <cstdio>
#include <tuple>

#include "base/clock.h"
#include "simulator/driver/engine/timeline_file.h"
#include "simulator/driver/machine/node.h"
#include "simulator/driver/machine/profile.h"
#include "simulator/driver/machine/statistics.h"
#include "simulator/driver/memory/address_space.h"

namespace spillway::simulator {
namespace {

constexpr unsigned __int128 kWideNanosPerSecond = 1'000'000'000;
// A limit is needed: the host function may wait for the thread that advances the clock.
constexpr auto kHostFunctionTimeout = std::chrono::milliseconds(200);
// A program without calls for this long probably waits for a host function without the driver.
constexpr auto kHostIdle = std::chrono::milliseconds(20);
constexpr int kTurnAttempts = 100;
// A driver's queues take some thousand launches before the next launch blocks.
constexpr std::size_t kOperationsInFlight = 4096;
// So many polls in a row count as a wait: a polling thread may sleep outside the virtual clock.
constexpr int kPatientPolls = 64;
constexpr auto kPollPause = std::chrono::milliseconds(1);

Nanos MonotonicNow() { return base::NowNs(CLOCK_MONOTONIC); }

// With its context broken, the operation takes no effect and waits for nothing.
bool IsDead(const Operation& operation) {
  return operation.errors != nullptr && operation.errors->sticky != CUDA_SUCCESS;
}

// Makes the ranges inaccessible while it lives; a Fault also restores them.
class WithheldRanges {
 public:
  WithheldRanges(AddressSpace& addresses, const std::vector<Range>& ranges)
      : addresses_(addresses), ranges_(ranges) {
    for (const Range& range : ranges_) addresses_.Withhold(range.base, range.size_bytes);
  }
  ~WithheldRanges() {
    for (const Range& range : ranges_) addresses_.GiveBack(range.base, range.size_bytes);
  }
  WithheldRanges(const WithheldRanges&) = delete;
  WithheldRanges& operator=(const WithheldRanges&) = delete;

 private:
  AddressSpace& addresses_;
  const std::vector<Range>& ranges_;
};

// While an instance lives, a kernel can access only memory that its device may reach.
class Confinement {
 public:
  Confinement(AddressSpace& addresses, const Operation& operation)
      : addresses_(addresses), confines_(operation.confined && addresses.device_count() > 1) {
    if (confines_) addresses_.ShowOnlyTo({operation.device, operation.peers});
  }
  ~Confinement() {
    if (confines_) addresses_.ShowToAll();
  }
  Confinement(const Confinement&) = delete;
  Confinement& operator=(const Confinement&) = delete;

 private:
  AddressSpace& addresses_;
  const bool confines_;
};

}  // namespace

bool Engine::ReadyOrder::operator()(const OperationRef& a, const OperationRef& b) const {
  return std::tie(a->priority, a->ready_ns, a->sequence) <
         std::tie(b->priority, b->ready_ns, b->sequence);
}

bool Engine::EndOrder::operator()(const OperationRef& a, const OperationRef& b) const {
  return std::tie(a->end_ns, a->sequence) < std::tie(b->end_ns, b->sequence);
}

Engine::Engine(const Profile& profile, AddressSpace& addresses, bool real_clock, int device_count,
               Node* node)
    : profile_(profile),
      addresses_(addresses),
      real_clock_(real_clock),
      real_origin_ns_(MonotonicNow()),
      node_(node),
      devices_(static_cast<std::size_t>(device_count),
               DeviceQueues{profile.multiprocessors, {}, {}, {}}) {
  if (node_ != nullptr) std::thread([this] { AttendantMain(); }).detach();
}

Engine::Lock Engine::Acquire() {
  ++waiting_threads_;
  Lock lock(mutex_);
  --waiting_threads_;
  ++acquisitions_;
  return lock;
}

// A wait on the virtual clock runs kernels one after the other; other threads get turns in between.
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
    const OperationRef next = NextToEnd();
    if (next == nullptr) return;
    Wait(lock, next);
  }
}

void Engine::SpendHostTime(Lock& lock, Nanos time_ns) {
  if (!real_clock_) AdvanceTo(lock, clock_ns_ + time_ns);
}

void Engine::NoteNotReady(Lock& lock) {
  if (real_clock_ || ++polls_without_work_ <= kPatientPolls) return;
  if (const OperationRef next = NextToEnd(); next != nullptr) AdvanceTo(lock, next->end_ns);
}

void Engine::Wait(Lock& lock, const OperationRef& operation) {
  if (node_ != nullptr) return WaitShared(lock, operation);
  while (!IsDone(operation)) {
    if (real_clock_) AdvanceToRealNow(lock);
    if (operation->done) break;
    const OperationRef next = NextToEnd();
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
    const bool runs = operation->confined && computing_.contains(operation);
    if (runs || operation->HasWordIn(range)) operation->AddSuspect(range);
    const std::uintptr_t used = operation->UsedAddressIn(range);
    if (used == 0) continue;
    operation->doomed_address = used;
    if (first.empty()) first = operation->Description();
  }
  return first;
}

void Engine::AdvanceToRealNow(Lock& lock) { AdvanceTo(lock, MonotonicNow() - real_origin_ns_); }

void Engine::AdvanceTo(Lock& lock, Nanos time_ns) {
  if (node_ != nullptr) return AdvanceShared(lock, time_ns);
  PollExternalWaits();
  while (true) {
    WaitForHostFunctions(lock);
    const OperationRef next = NextToEnd();
    if (next == nullptr || next->end_ns > time_ns) break;
    clock_ns_ = std::max(clock_ns_, next->end_ns);
    Retire(next);
    Settle();
  }
  clock_ns_ = std::max(clock_ns_, time_ns);
  TheStatistics().simulated_ns = static_cast<std::uint64_t>(clock_ns_);
}

void Engine::Retire(const OperationRef& operation) {
  SettleLinkWork();
  if (node_ != nullptr) holds_changed_ = true;
  if (operation->resource == Resource::kCompute) {
    computing_.erase(operation);
    computed_ns_ += operation->duration_ns;
    QueuesOf(*operation).free_multiprocessors += operation->multiprocessors;
  } else {
    QueuesOf(*operation).copying[operation->resource == Resource::kHostToDevice ? kH2d : kD2h] =
        nullptr;
  }
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

OperationRef Engine::NextToEnd() const {
  OperationRef next = computing_.empty() ? nullptr : *computing_.begin();
  for (const DeviceQueues& device : devices_) {
    for (const OperationRef& copy : device.copying) {
      if (copy != nullptr && (next == nullptr || EndOrder()(copy, next))) next = copy;
    }
  }
  return next;
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
      QueuesOf(*operation).ready_compute.insert(operation);
      break;
    case Resource::kHostToDevice:
      QueuesOf(*operation).ready_copies[kH2d].insert(operation);
      break;
    case Resource::kDeviceToHost:
      QueuesOf(*operation).ready_copies[kD2h].insert(operation);
      break;
  }
}

// Runs all operations that need no time, then starts new ones on idle resources.
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
  if (node_ != nullptr && CanStart()) TakeTurn();
  for (DeviceQueues& device : devices_) StartCompute(device);
  StartLinks();
  if (holds_changed_) PublishHolds();
}

void Engine::StartCompute(DeviceQueues& device) {
  ReadyQueue& ready = device.ready_compute;
  while (!ready.empty() && (*ready.begin())->multiprocessors <= device.free_multiprocessors) {
    const OperationRef operation = *ready.begin();
    ready.erase(ready.begin());
    device.free_multiprocessors -= operation->multiprocessors;
    operation->start_ns = clock_ns_;
    operation->end_ns = clock_ns_ + operation->duration_ns;
    if (node_ != nullptr) StartOnSharedEngine(*operation);
    computing_.insert(operation);
  }
}

void Engine::StartLinks() {
  SettleLinkWork();
  for (DeviceQueues& device : devices_) {
    for (const int link : {kH2d, kD2h}) {
      ReadyQueue& ready = device.ready_copies[link];
      if (device.copying[link] != nullptr || ready.empty()) continue;
      const OperationRef operation = *ready.begin();
      ready.erase(ready.begin());
      device.copying[link] = operation;
      operation->start_ns = clock_ns_;
      // The set-up time counts as work too, so one number is all that remains.
      operation->remaining =
          operation->link_bytes * kWideNanosPerSecond +
          static_cast<unsigned __int128>(operation->duration_ns) * LinkRate(device, link);
      if (node_ != nullptr) StartOnSharedEngine(*operation);
    }
  }
  ForecastLinkEnds();
}

std::uint64_t Engine::LinkRate(const DeviceQueues& device, int link) const {
  const bool both = device.copying[kH2d] != nullptr && device.copying[kD2h] != nullptr;
  if (link == kH2d)
    return both ? profile_.h2d_both_bytes_per_second : profile_.h2d_bytes_per_second;
  return both ? profile_.d2h_both_bytes_per_second : profile_.d2h_bytes_per_second;
}

// Takes the progress since the last change off running copies. Precedes every change among them.
void Engine::SettleLinkWork() {
  if (node_ != nullptr) return;
  const auto passed_ns = static_cast<unsigned __int128>(clock_ns_ - link_settled_ns_);
  link_settled_ns_ = clock_ns_;
  for (DeviceQueues& device : devices_) {
    for (const int link : {kH2d, kD2h}) {
      if (device.copying[link] == nullptr) continue;
      const unsigned __int128 progress = passed_ns * LinkRate(device, link);
      device.copying[link]->remaining -= std::min(device.copying[link]->remaining, progress);
    }
  }
}

void Engine::ForecastLinkEnds() {
  if (node_ != nullptr) return;
  for (DeviceQueues& device : devices_) {
    for (const int link : {kH2d, kD2h}) {
      if (device.copying[link] == nullptr) continue;
      const std::uint64_t rate = LinkRate(device, link);
      device.copying[link]->end_ns =
          clock_ns_ + static_cast<Nanos>((device.copying[link]->remaining + rate - 1) / rate);
    }
  }
}

void Engine::Finish(const OperationRef& operation) {
  operation->end_ns = clock_ns_;
  NoteInTimeline(*operation);
  if (operation->resource != Resource::kHostThread) ApplyEffect(*operation);
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

void Engine::ApplyEffect(Operation& operation) {
  if (IsDead(operation) || operation.effect == nullptr) return;
  try {
    if (operation.doomed_address != 0) throw Fault{operation.doomed_address};
    RunEffect(operation);
  } catch (const Fault& fault) {
    if (operation.errors != nullptr) operation.errors->sticky = fault.error;
    if (fault.error == CUDA_ERROR_ILLEGAL_ADDRESS) NoteFault(operation, fault.address);
  }
}

void Engine::RunEffect(const Operation& operation) {
  const Confinement confinement(addresses_, operation);
  const WithheldRanges withheld(addresses_, operation.suspects);
  operation.effect();
}

void Engine::NoteFault(const Operation& operation, std::uintptr_t address) {
  if (operation.IsSuspect(address)) {
    ++TheStatistics().unmapped_while_in_use;
    TheStatistics().AddViolation("cuMemUnmap under unfinished work: " + operation.Description());
  }
  char text[64];
  std::snprintf(text, sizeof text, " touched unmapped device memory at 0x%lx", address);
  ++TheStatistics().illegal_accesses;
  TheStatistics().AddViolation("illegal address: " + operation.Description() + text);
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

// Nothing else advances the clock while a program waits for its host function without the driver.
void Engine::AdvanceForIdleProgram(Lock& lock) {
  if (real_clock_) return AdvanceToRealNow(lock);
  while (host_queue_.empty()) {
    const OperationRef next = NextToEnd();
    if (next == nullptr) return;
    AdvanceTo(lock, next->end_ns);
  }
}

}  // namespace spillway::simulator
