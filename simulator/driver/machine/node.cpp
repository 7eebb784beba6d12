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
using node::Seat;
using node::SeatState;
using node::State;

// Whoever waits in vain for this long looks whether the one he waits for is still there.
constexpr node::Nanos kWatchEvery_ns = 50'000'000;
// A process of which nothing is heard for this long has no attendant any more: it became another program.
constexpr node::Nanos kSilence_ns = 2'000'000'000;

long FutexWait(std::uint32_t* word, std::uint32_t seen, node::Nanos limit_ns) {
  const timespec limit = {static_cast<time_t>(limit_ns / 1'000'000'000),
                          static_cast<long>(limit_ns % 1'000'000'000)};
  return syscall(SYS_futex, word, FUTEX_WAIT, seen, &limit, nullptr, 0);
}

// The count first: who has not yet fallen asleep sees that it changed.
void Wake(Seat& seat) {
  __atomic_add_fetch(&seat.wake_count, 1, __ATOMIC_RELEASE);
  if (seat.sleepers > 0) syscall(SYS_futex, &seat.wake_count, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace

base::Result<std::unique_ptr<Node>> Node::Join(const NodeSettings& settings, const Machine& machine) {
  const base::Result<NodeFile*> file = OpenNodeFile(settings.path, machine);
  if (!file) return file.error();
  std::unique_ptr<Node> joined(new Node(**file, settings.shares_time));
  if (!joined->TakeSeat(settings.seat)) return base::Error{"all its seats are taken"};
  return joined;
}

bool Node::TakeSeat(int wanted) {
  const NodeLock lock(file_);
  Sweep(file_, Whom::kAll);
  LeaveFormerSeat();
  State& state = file_.state;
  const auto state_of = [&](int seat) { return state.seats[static_cast<std::size_t>(seat)].state; };
  if (wanted >= 1 && wanted <= state.seats_used && state_of(wanted - 1) == SeatState::kReserved) {
    SitDown(wanted - 1);
    return true;
  }
  // Seats of those who left keep their books as long as there are others.
  for (const auto& may_sit :
       {+[](SeatState seat) { return seat == SeatState::kFree; },
        +[](SeatState seat) { return seat == SeatState::kEnded || seat == SeatState::kKilled; }}) {
    for (int seat = 0; seat < node::kMostSeats; ++seat) {
      if (!may_sit(state_of(seat))) continue;
      SitDown(seat);
      return true;
    }
  }
  return false;
}

// A process that became another program keeps its pid, and its seat was not given up.
void Node::LeaveFormerSeat() {
  const pid_t own = getpid();
  for (Seat& seat : file_.state.seats) {
    if (seat.state == SeatState::kPresent && seat.pid == own) Vacate(file_.state, seat, SeatState::kEnded);
  }
}

void Node::SitDown(int seat) {
  State& state = file_.state;
  seat_ = seat;
  state.seats_used = std::max(state.seats_used, seat + 1);
  Seat& own = OwnSeat();
  const std::uint32_t wake_count = own.wake_count;
  own = Seat{};
  own.wake_count = wake_count;
  own.pid = getpid();
  own.started_ticks = StartedTicks(own.pid);
  std::strncpy(own.name, program_invocation_short_name, sizeof own.name - 1);
  own.clock_ns = state.acted_ns;
  own.waiting = shares_time_ ? 0 : 1;
  own.target_ns = kNever;
  own.state = SeatState::kPresent;
}

Seat& Node::OwnSeat() const { return file_.state.seats[static_cast<std::size_t>(seat_)]; }

bool Node::IsFirst() const { return First(file_.state) == seat_; }

// Back from being stopped, and not before what others did meanwhile.
void Node::BeHere() {
  Seat& own = OwnSeat();
  if (own.suspended != 0) Resume(file_.state, own);
}

void Node::WakeFirst() {
  const int first = First(file_.state);
  if (first < 0 || first == seat_) return;
  Wake(file_.state.seats[static_cast<std::size_t>(first)]);
}

Node::Answer Node::Granted(Nanos at_ns, Turn turn) {
  Seat& own = OwnSeat();
  own.waiting = 0;
  own.clock_ns = at_ns;
  WakeFirst();
  return {turn, at_ns, 0};
}

Node::Answer Node::Ask(Nanos target_ns) {
  const NodeLock lock(file_);
  BeHere();
  State& state = file_.state;
  Seat& own = OwnSeat();
  const Nanos earliest_ns = std::max(own.clock_ns, state.acted_ns);
  if (target_ns != kNever && NoEndBefore(state, own) > std::max(target_ns, earliest_ns)) {
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
  Seat& own = OwnSeat();
  __atomic_add_fetch(&own.sleepers, 1, __ATOMIC_SEQ_CST);
  const bool in_vain =
      FutexWait(&own.wake_count, wake_count, std::min(limit_ns, kWatchEvery_ns)) != 0 && errno == ETIMEDOUT;
  __atomic_sub_fetch(&own.sleepers, 1, __ATOMIC_SEQ_CST);
  if (!in_vain || limit_ns < kWatchEvery_ns) return;
  const NodeLock lock(file_);
  if (!IsFirst()) WatchFirst();
  WakeFirst();
}

void Node::WatchFirst() {
  Sweep(file_, Whom::kFirst);
  const int first = First(file_.state);
  if (first < 0) return;
  Seat& seat = file_.state.seats[static_cast<std::size_t>(first)];
  const std::uint32_t beats = __atomic_load_n(&seat.beats, __ATOMIC_RELAXED);
  const auto now_ns = static_cast<Nanos>(base::MonotonicNs());
  if (first != watched_seat_ || beats != watched_beats_) {
    watched_seat_ = first;
    watched_beats_ = beats;
    watched_since_ns_ = now_ns;
  } else if (seat.state == SeatState::kPresent && now_ns - watched_since_ns_ > kSilence_ns) {
    Suspend(file_.state, seat);
  }
}

void Node::Beat() { __atomic_add_fetch(&OwnSeat().beats, 1, __ATOMIC_RELAXED); }

void Node::WakeOwn() {
  const NodeLock lock(file_);
  Wake(OwnSeat());
}

Node::Nanos Node::AwaitTurn() {
  if (!shares_time_) return 0;
  while (true) {
    std::uint32_t wake_count = 0;
    {
      const NodeLock lock(file_);
      BeHere();
      State& state = file_.state;
      Seat& own = OwnSeat();
      own.waiting = 0;
      own.clock_ns = std::max(own.clock_ns, state.acted_ns);
      if (IsFirst() || own.state != SeatState::kPresent) {
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
  return GivenAt(file_.state, id, OwnSeat().clock_ns);
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
  BeHere();
  Seat& own = OwnSeat();
  if (own.state != SeatState::kPresent) return;
  for (int device = 0; device < file_.state.device_count; ++device) {
    const auto at = static_cast<std::size_t>(device);
    for (const node::Engine engine : {node::kCompute, node::kH2d, node::kD2h}) {
      own.next_end[at][engine] = holds[at][engine].next_end;
      node::SetHolds(file_.state, own, {device, engine}, holds[at][engine].holds, own.clock_ns);
    }
  }
  own.books.kernels = done_so_far.kernels;
  own.books.h2d_bytes = done_so_far.h2d_bytes;
  own.books.d2h_bytes = done_so_far.d2h_bytes;
  own.books.compute_ns = done_so_far.compute_ns;
  WakeFirst();
}

bool Node::Take(int device, std::uint64_t size_bytes) {
  AwaitTurn();
  const NodeLock lock(file_);
  if (node::Take(file_.state, OwnSeat(), device, size_bytes)) return true;
  Sweep(file_, Whom::kAll);
  return node::Take(file_.state, OwnSeat(), device, size_bytes);
}

void Node::GiveBack(int device, std::uint64_t size_bytes) {
  AwaitTurn();
  const NodeLock lock(file_);
  Seat& own = OwnSeat();
  if (own.state == SeatState::kPresent) own.books.held_bytes[static_cast<std::size_t>(device)] -= size_bytes;
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
  Vacate(file_.state, OwnSeat(), SeatState::kEnded);
  WakeFirst();
}

}  // namespace spillway::simulator
