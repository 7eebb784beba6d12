#include "simulator/driver/machine/node.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstring>

#include "base/clock.h"
#include "simulator/driver/machine/process_status.h"

namespace spillway::simulator {
namespace {

using node::kNever;
using node::Slot;
using node::SlotState;
using node::State;

// Then a process checks whether the process whose turn it is still lives.
constexpr node::Nanos kWatchEvery_ns = 50'000'000;
// Without a beat for so long a process has no attendant any more: exec replaced its program.
constexpr node::Nanos kSilence_ns = 2'000'000'000;

long FutexWait(std::uint32_t* word, std::uint32_t seen, node::Nanos limit_ns) {
  const timespec limit = {static_cast<time_t>(limit_ns / 1'000'000'000),
                          static_cast<long>(limit_ns % 1'000'000'000)};
  return syscall(SYS_futex, word, FUTEX_WAIT, seen, &limit, nullptr, 0);
}

// The count must change first, so that a thread that is about to sleep notices the change.
void Wake(Slot& slot) {
  __atomic_add_fetch(&slot.wake_count, 1, __ATOMIC_RELEASE);
  if (slot.sleepers > 0)
    syscall(SYS_futex, &slot.wake_count, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace

base::Result<std::unique_ptr<Node>> Node::Join(const NodeSettings& settings,
                                               const Machine& machine) {
  const base::Result<NodeFile*> file = OpenNodeFile(settings.path, machine);
  if (!file) return file.error();
  std::unique_ptr<Node> joined(new Node(**file, settings.shares_time));
  if (!joined->ClaimSlot(settings.slot)) return base::Error{"all its slots are taken"};
  return joined;
}

bool Node::ClaimSlot(int wanted) {
  const NodeLock lock(file_);
  Sweep(file_, Whom::kAll);
  LeaveFormerSlot();
  State& state = file_.state;
  const auto state_of = [&](int slot) { return state.slots[static_cast<std::size_t>(slot)].state; };
  if (wanted >= 1 && wanted <= state.slots_used && state_of(wanted - 1) == SlotState::kReserved) {
    Occupy(wanted - 1);
    return true;
  }
  // Slots of ended processes keep their statistics while others are free.
  for (const auto& may_take :
       {+[](SlotState slot) { return slot == SlotState::kFree; },
        +[](SlotState slot) { return slot == SlotState::kEnded || slot == SlotState::kKilled; }}) {
    for (int slot = 0; slot < node::kMostSlots; ++slot) {
      if (!may_take(state_of(slot))) continue;
      Occupy(slot);
      return true;
    }
  }
  return false;
}

// exec keeps the pid, and does not release the slot.
void Node::LeaveFormerSlot() {
  const pid_t own = getpid();
  for (Slot& slot : file_.state.slots) {
    if (slot.state == SlotState::kPresent && slot.pid == own)
      Vacate(file_.state, slot, SlotState::kEnded);
  }
}

void Node::Occupy(int slot) {
  State& state = file_.state;
  slot_ = slot;
  state.slots_used = std::max(state.slots_used, slot + 1);
  Slot& own = OwnSlot();
  const std::uint32_t wake_count = own.wake_count;
  own = Slot{};
  own.wake_count = wake_count;
  own.pid = getpid();
  own.started_ticks = StartedTicks(own.pid);
  std::strncpy(own.name, program_invocation_short_name, sizeof own.name - 1);
  own.clock_ns = state.acted_ns;
  own.waiting = shares_time_ ? 0 : 1;
  own.target_ns = kNever;
  own.state = SlotState::kPresent;
}

Slot& Node::OwnSlot() const { return file_.state.slots[static_cast<std::size_t>(slot_)]; }

bool Node::IsFirst() const { return First(file_.state) == slot_; }

// No earlier than the others' latest act.
void Node::ResumeIfSuspended() {
  Slot& own = OwnSlot();
  if (own.suspended != 0) Resume(file_.state, own);
}

void Node::WakeFirst() {
  const int first = First(file_.state);
  if (first < 0 || first == slot_) return;
  Wake(file_.state.slots[static_cast<std::size_t>(first)]);
}

Node::Answer Node::Granted(Nanos at_ns, Turn turn) {
  Slot& own = OwnSlot();
  own.waiting = 0;
  own.clock_ns = at_ns;
  WakeFirst();
  return {turn, at_ns, 0};
}

Node::Answer Node::Ask(Nanos target_ns) {
  const NodeLock lock(file_);
  ResumeIfSuspended();
  State& state = file_.state;
  Slot& own = OwnSlot();
  const Nanos earliest_ns = std::max(own.clock_ns, state.acted_ns);
  if (target_ns != kNever && EarliestPossibleEnd(state, own) > std::max(target_ns, earliest_ns)) {
    return Granted(std::max(target_ns, earliest_ns), Turn::kArrived);
  }
  own.waiting = 1;
  own.target_ns = target_ns;
  const Nanos end_ns = NextEndOf(state, own);
  const Nanos next_ns = std::max(std::min(end_ns, target_ns), earliest_ns);
  if (next_ns == kNever || !IsFirst()) {
    WakeFirst();
    return {Turn::kNotYet, 0, own.wake_count};
  }
  state.acted_ns = next_ns;
  return Granted(next_ns, end_ns <= next_ns ? Turn::kOwnEnd : Turn::kArrived);
}

void Node::Sleep(std::uint32_t wake_count, Nanos limit_ns) {
  Slot& own = OwnSlot();
  __atomic_add_fetch(&own.sleepers, 1, __ATOMIC_SEQ_CST);
  const bool in_vain =
      FutexWait(&own.wake_count, wake_count, std::min(limit_ns, kWatchEvery_ns)) != 0 &&
      errno == ETIMEDOUT;
  __atomic_sub_fetch(&own.sleepers, 1, __ATOMIC_SEQ_CST);
  if (!in_vain || limit_ns < kWatchEvery_ns) return;
  const NodeLock lock(file_);
  if (!IsFirst()) CheckFirstIsAlive();
  WakeFirst();
}

void Node::CheckFirstIsAlive() {
  Sweep(file_, Whom::kFirst);
  const int first = First(file_.state);
  if (first < 0) return;
  Slot& slot = file_.state.slots[static_cast<std::size_t>(first)];
  const std::uint32_t beats = __atomic_load_n(&slot.beats, __ATOMIC_RELAXED);
  const auto now_ns = static_cast<Nanos>(base::MonotonicNs());
  if (first != watched_slot_ || beats != watched_beats_) {
    watched_slot_ = first;
    watched_beats_ = beats;
    watched_since_ns_ = now_ns;
  } else if (slot.state == SlotState::kPresent && now_ns - watched_since_ns_ > kSilence_ns) {
    Suspend(file_.state, slot);
  }
}

void Node::Beat() { __atomic_add_fetch(&OwnSlot().beats, 1, __ATOMIC_RELAXED); }

void Node::WakeOwn() {
  const NodeLock lock(file_);
  Wake(OwnSlot());
}

Node::Nanos Node::AwaitTurn() {
  if (!shares_time_) return 0;
  while (true) {
    std::uint32_t wake_count = 0;
    {
      const NodeLock lock(file_);
      ResumeIfSuspended();
      State& state = file_.state;
      Slot& own = OwnSlot();
      own.waiting = 0;
      own.clock_ns = std::max(own.clock_ns, state.acted_ns);
      if (IsFirst() || own.state != SlotState::kPresent) {
        state.acted_ns = own.clock_ns;
        return own.clock_ns;
      }
      WakeFirst();
      wake_count = own.wake_count;
    }
    Sleep(wake_count, kWatchEvery_ns);
  }
}

node::Work Node::GivenNow(node::EngineId id) const {
  const NodeLock lock(file_);
  return GivenAt(file_.state, id, OwnSlot().clock_ns);
}

node::Work Node::CopyWork(node::EngineId id, std::uint64_t size_bytes, Nanos overhead_ns) const {
  const NodeLock lock(file_);
  return node::CopyWork(file_.state, id, size_bytes, overhead_ns);
}

Node::Nanos Node::TimeOf(node::EngineId id, node::Work end) const {
  const NodeLock lock(file_);
  return node::TimeOf(file_.state, id, end);
}

void Node::SetHolds(const Holds& holds, const Done& done_so_far) {
  const NodeLock lock(file_);
  ResumeIfSuspended();
  Slot& own = OwnSlot();
  if (own.state != SlotState::kPresent) return;
  for (int device = 0; device < file_.state.device_count; ++device) {
    const auto at = static_cast<std::size_t>(device);
    for (const node::Engine engine : {node::kCompute, node::kH2d, node::kD2h}) {
      own.next_end[at][engine] = holds[at][engine].next_end;
      node::SetHolds(file_.state, own, {device, engine}, holds[at][engine].holds, own.clock_ns);
    }
  }
  own.statistics.kernels = done_so_far.kernels;
  own.statistics.h2d_bytes = done_so_far.h2d_bytes;
  own.statistics.d2h_bytes = done_so_far.d2h_bytes;
  own.statistics.compute_ns = done_so_far.compute_ns;
  WakeFirst();
}

bool Node::Take(int device, std::uint64_t size_bytes) {
  AwaitTurn();
  const NodeLock lock(file_);
  if (node::Take(file_.state, OwnSlot(), device, size_bytes)) return true;
  Sweep(file_, Whom::kAll);
  return node::Take(file_.state, OwnSlot(), device, size_bytes);
}

void Node::GiveBack(int device, std::uint64_t size_bytes) {
  AwaitTurn();
  const NodeLock lock(file_);
  Slot& own = OwnSlot();
  if (own.state == SlotState::kPresent)
    own.statistics.held_bytes[static_cast<std::size_t>(device)] -= size_bytes;
}

std::uint64_t Node::FreeBytes(int device) {
  AwaitTurn();
  const NodeLock lock(file_);
  Sweep(file_, Whom::kAll);
  return file_.state.capacity_bytes - HeldBytes(file_.state, device);
}

void Node::Leave() {
  AwaitTurn();
  const NodeLock lock(file_);
  Vacate(file_.state, OwnSlot(), SlotState::kEnded);
  WakeFirst();
}

}  // namespace spillway::simulator
