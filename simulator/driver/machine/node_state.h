// What the simulated drivers of several processes share of one machine: who is there, who works on
// which engine, how much memory each holds, and the rule by which virtual time passes for all of
// them.
//
// Plain values in a mapped file; the functions are pure, and node.h calls them under the file's
// mutex.
//
// Note [One time for several processes]
// Each process has a clock of its own and may act on what is shared (begin or end work on an
// engine, take or give back memory) only when nobody else can still act earlier: when its (time,
// slot) is the smallest of all. A process that waits for the device can act next when its next
// operation ends; one that runs the program's code can act from its clock on, so it holds the
// others until it calls again. Acts so happen in one order of virtual time, whatever the machine's
// scheduler does, and equal runs are equal to the nanosecond.
//
// Note [Engines in equal shares]
// The processes that have work on an engine share it as by time slices that are infinitely short:
// each is given 1/n of it. `given` is what each of them has been given since the beginning, the
// same for all; an operation that begins at `given` and needs `work` ends when `given` has grown by
// that, however the number of processes changes in between.
//
// Invariants
//  1. `acted_ns` never goes down, and nobody acts before it.
//  2. `busy` is the number of slots that hold the engine; `given` stands still while it is 0.
//  3. What the slots hold of a device never exceeds its capacity, and is nothing for slots that are
//  not present.
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
// A nanosecond of computing: divides by every number of processes up to 16 without a rest.
inline constexpr std::uint64_t kWorkPerNano = 720720;

enum Engine { kCompute, kH2d, kD2h, kEngines };
// A number of an engine among all: what all tables below are indexed by.
struct EngineId {
  int device;
  Engine engine;
};

// Bytes per second of the link, each direction alone and while both are busy.
struct LinkRates {
  std::uint64_t h2d, d2h, h2d_both, d2h_both;
};

enum class SlotState : std::uint32_t {
  kFree,
  kReserved,  // somebody is expected here from the start, and time waits
  kPresent,
  kEnded,  // the process has left
  kKilled  // it was found dead
};

struct SlotStatistics {
  std::array<std::uint64_t, kMostDevices> held_bytes, peak_bytes;
  std::uint64_t kernels, h2d_bytes, d2h_bytes;
  std::uint64_t compute_ns;  // the time that its work would have taken alone
};

struct Slot {
  SlotState state;
  std::int32_t pid;
  std::uint64_t started_ticks;  // of the process: its pid may be another's later
  char name[16];
  std::uint32_t waiting;    // in the driver, for its next operation's end or for `target_ns`
  std::uint32_t suspended;  // stopped by a signal: holds nobody, and its work goes on
  Nanos clock_ns;
  Nanos target_ns;
  std::uint32_t sleepers;    // threads that sleep on `wake_count`
  std::uint32_t wake_count;  // a futex
  std::uint32_t beats;       // grows as long as the program that sat down runs
  std::array<std::array<std::uint32_t, kEngines>, kMostDevices> holds;
  std::array<std::array<Work, kEngines>, kMostDevices>
      next_end;  // `given` at which its next operation ends
  SlotStatistics statistics;
};

struct DeviceState {
  Nanos settled_ns;
  std::array<Work, kEngines> given;
  std::array<std::uint32_t, kEngines> busy;
  std::uint64_t peak_bytes;
};

struct State {
  std::int32_t device_count;
  std::int32_t slots_used;  // no slot from here on was ever taken
  std::uint64_t capacity_bytes;
  LinkRates rates;
  Nanos acted_ns;
  std::array<DeviceState, kMostDevices> devices;
  std::array<Slot, kMostSlots> slots;
};

// What `given` is at a time that is not before the last change.
Work GivenAt(const State& state, EngineId id, Nanos time_ns);
// When `given` reaches `end`, if nothing changes.
Nanos TimeOf(const State& state, EngineId id, Work end);
// The work of a copy: its bytes, after an overhead that counts as bytes too.
Work CopyWork(const State& state, EngineId id, std::uint64_t size_bytes, Nanos overhead_ns);

// When the slot's next operation ends, if nothing changes; kNever without any.
Nanos NextEndOf(const State& state, const Slot& slot);
// Before this, none of its operations ends, whatever the others do.
Nanos NoEndBefore(const State& state, const Slot& slot);
// The earliest time at which the slot may act.
Nanos BoundOf(const State& state, const Slot& slot);
// The slot whose turn it is; -1: nobody will ever act.
int First(const State& state);

// Takes and gives up engines at a time that is not before the last change.
void SetHolds(State& state, Slot& slot, EngineId id, bool holds, Nanos time_ns);
// The slot holds nothing any more: no engine, no memory.
void Vacate(State& state, Slot& slot, SlotState left_as);
// Its work goes on without it, and it holds nobody; the second is the way back.
void Suspend(State& state, Slot& slot);
void Resume(State& state, Slot& slot);
// Derives the counts from the slots, after somebody died while changing them.
void Recount(State& state);

std::uint64_t HeldBytes(const State& state, int device);
// False: the device is full.
bool Take(State& state, Slot& slot, int device, std::uint64_t size_bytes);

}  // namespace spillway::simulator::node
