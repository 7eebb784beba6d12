// The state of one machine that several processes' simulated drivers share, and the rule by which
// virtual time passes. The functions are pure; node.h calls them under the file's mutex.
//
// Note [One time for several processes]
// Each process has its own clock. To act on shared state (begin or end work on an engine, take or
// release memory) it waits until its (time, slot) is the smallest of all. A process that waits for
// the device can act next when its next operation ends, one that runs the program's code from its
// clock on. So all acts happen in one order of virtual time, and equal runs are equal to the
// nanosecond.
//
// Note [Engines in equal shares]
// The n processes with work on an engine share it like infinitely short time slices. `given` is the
// work that each of them has received since the beginning. An operation that begins at `given` and
// needs `work` ends at `given + work`, however n changes.
//
// Invariants
//  1. `acted_ns` never decreases, and no process acts before it.
//  2. `busy` is the number of slots that hold the engine; `given` does not grow while it is 0.
//  3. The slots' bytes on a device never exceed its capacity. Slots that are not present hold none.
#pragma once

#include <array>
#include <cstdint>
#include <limits>

namespace spillway::simulator::node {

using Nanos = std::int64_t;
using Work = unsigned __int128;

inline constexpr int kMostSlots = 64;
inline constexpr int kMostDevices = 8;
inline constexpr Nanos kNever = std::numeric_limits<Nanos>::max();
// Work per nanosecond of computing: divisible by every number of processes up to 16.
inline constexpr std::uint64_t kWorkPerNano = 720720;

enum Engine { kCompute, kH2d, kD2h, kEngines };
struct EngineId {
  int device;
  Engine engine;
};

// Alone and while both directions are busy.
struct LinkRates {
  std::uint64_t h2d, d2h, h2d_both, d2h_both;
};

enum class SlotState : std::uint32_t {
  kFree,
  kReserved,  // time waits for the expected process
  kPresent,
  kEnded,
  kKilled  // found dead
};

struct SlotStatistics {
  std::array<std::uint64_t, kMostDevices> held_bytes, peak_bytes;
  std::uint64_t kernels, h2d_bytes, d2h_bytes;
  std::uint64_t compute_ns;  // the time that its work would have taken alone
};

struct Slot {
  SlotState state;
  std::int32_t pid;
  std::uint64_t started_ticks;  // the pid may be reused
  char name[16];
  std::uint32_t waiting;    // waits in the driver for its next operation's end or for `target_ns`
  std::uint32_t suspended;  // stopped by a signal
  Nanos clock_ns;
  Nanos target_ns;
  std::uint32_t sleepers;    // threads that sleep on `wake_count`
  std::uint32_t wake_count;  // a futex
  std::uint32_t beats;       // grows while the program that took the slot runs
  std::array<std::array<std::uint32_t, kEngines>, kMostDevices> holds;
  std::array<std::array<Work, kEngines>, kMostDevices>
      next_end;  // `given` at its next operation's end
  SlotStatistics statistics;
};

struct DeviceState {
  Nanos settled_ns;
  Nanos computing_ns;  // of it, with work on the multiprocessors
  std::array<Work, kEngines> given;
  std::array<std::uint32_t, kEngines> busy;
  std::uint64_t peak_bytes;
};

struct State {
  std::int32_t device_count;
  std::int32_t slots_used;
  std::uint64_t capacity_bytes;
  LinkRates rates;
  Nanos acted_ns;
  std::array<DeviceState, kMostDevices> devices;
  std::array<Slot, kMostSlots> slots;
};

// How long the device has computed until a time that is not before the last change.
Nanos ComputingAt(const State& state, int device, Nanos time_ns);
// `given` at a time that is not before the last change.
Work GivenAt(const State& state, EngineId id, Nanos time_ns);
Nanos TimeOf(const State& state, EngineId id, Work end);
Work CopyWork(const State& state, EngineId id, std::uint64_t size_bytes, Nanos overhead_ns);

Nanos NextEndOf(const State& state, const Slot& slot);
// Whatever the others do.
Nanos EarliestPossibleEnd(const State& state, const Slot& slot);
Nanos EarliestActTime(const State& state, const Slot& slot);
int First(const State& state);

// At a time that is not before the last change.
void SetHolds(State& state, Slot& slot, EngineId id, bool holds, Nanos time_ns);
void Vacate(State& state, Slot& slot, SlotState left_as);
// A suspended slot holds no process back, and its work goes on. Resume undoes that.
void Suspend(State& state, Slot& slot);
void Resume(State& state, Slot& slot);
// From the slots, for a lock whose holder died.
void Recount(State& state);

std::uint64_t HeldBytes(const State& state, int device);
bool Take(State& state, Slot& slot, int device, std::uint64_t size_bytes);

}  // namespace spillway::simulator::node
