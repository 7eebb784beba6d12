#include "simulator/driver/machine/node_state.h"

#include <algorithm>

namespace spillway::simulator::node {
namespace {

constexpr std::uint64_t kNanosPerSecond = 1'000'000'000;

const DeviceState& DeviceOf(const State& state, EngineId id) {
  return state.devices[static_cast<std::size_t>(id.device)];
}

bool Counts(const Slot& slot) { return slot.state == SlotState::kPresent && slot.suspended == 0; }

std::uint64_t Rate(const State& state, EngineId id) {
  const DeviceState& device = DeviceOf(state, id);
  if (id.engine == kH2d) return device.busy[kD2h] > 0 ? state.rates.h2d_both : state.rates.h2d;
  if (id.engine == kD2h) return device.busy[kH2d] > 0 ? state.rates.d2h_both : state.rates.d2h;
  return kWorkPerNano;
}

std::uint64_t BestRate(const State& state, Engine engine) {
  if (engine == kH2d) return std::max(state.rates.h2d, state.rates.h2d_both);
  if (engine == kD2h) return std::max(state.rates.d2h, state.rates.d2h_both);
  return kWorkPerNano;
}

void Settle(State& state, int device, Nanos time_ns) {
  DeviceState& own = state.devices[static_cast<std::size_t>(device)];
  if (time_ns <= own.settled_ns) return;
  std::array<Work, kEngines> given;
  for (const Engine engine : {kCompute, kH2d, kD2h}) {
    given[engine] = GivenAt(state, {device, engine}, time_ns);
  }
  own.given = given;
  own.computing_ns = ComputingAt(state, device, time_ns);
  own.settled_ns = time_ns;
}

template <class Visit>
void ForEachHeld(const State& state, const Slot& slot, Visit visit) {
  for (int device = 0; device < state.device_count; ++device) {
    for (const Engine engine : {kCompute, kH2d, kD2h}) {
      const auto at = static_cast<std::size_t>(device);
      if (slot.holds[at][engine] != 0) visit(EngineId{device, engine}, slot.next_end[at][engine]);
    }
  }
}

Work Missing(const State& state, EngineId id, Work end) {
  const Work given = DeviceOf(state, id).given[id.engine];
  return end > given ? end - given : 0;
}

Nanos After(const State& state, EngineId id, Work steps) {
  const Work most = static_cast<Work>(kNever / 2);
  return DeviceOf(state, id).settled_ns + static_cast<Nanos>(std::min(steps, most));
}

}  // namespace

Nanos ComputingAt(const State& state, int device, Nanos time_ns) {
  const DeviceState& own = state.devices[static_cast<std::size_t>(device)];
  const bool computes = own.busy[kCompute] > 0 && time_ns > own.settled_ns;
  return own.computing_ns + (computes ? time_ns - own.settled_ns : 0);
}

Work GivenAt(const State& state, EngineId id, Nanos time_ns) {
  const DeviceState& device = DeviceOf(state, id);
  const std::uint32_t busy = device.busy[id.engine];
  if (busy == 0 || time_ns <= device.settled_ns) return device.given[id.engine];
  const auto passed_ns = static_cast<Work>(time_ns - device.settled_ns);
  return device.given[id.engine] + passed_ns * Rate(state, id) / busy;
}

Nanos TimeOf(const State& state, EngineId id, Work end) {
  const Work busy = std::max<std::uint32_t>(1, DeviceOf(state, id).busy[id.engine]);
  const Work rate = Rate(state, id);
  return After(state, id, (Missing(state, id, end) * busy + rate - 1) / rate);
}

Work CopyWork(const State& state, EngineId id, std::uint64_t size_bytes, Nanos overhead_ns) {
  return Work{size_bytes} * kNanosPerSecond + static_cast<Work>(overhead_ns) * Rate(state, id);
}

Nanos NextEndOf(const State& state, const Slot& slot) {
  Nanos next_ns = kNever;
  ForEachHeld(state, slot,
              [&](EngineId id, Work end) { next_ns = std::min(next_ns, TimeOf(state, id, end)); });
  return next_ns;
}

Nanos EarliestPossibleEnd(const State& state, const Slot& slot) {
  Nanos next_ns = kNever;
  ForEachHeld(state, slot, [&](EngineId id, Work end) {
    const Work rate = BestRate(state, id.engine);
    next_ns = std::min(next_ns, After(state, id, (Missing(state, id, end) + rate - 1) / rate));
  });
  return next_ns;
}

Nanos EarliestActTime(const State& state, const Slot& slot) {
  if (slot.state == SlotState::kReserved) return 0;
  if (!Counts(slot)) return kNever;
  if (slot.waiting == 0) return slot.clock_ns;
  return std::max(slot.clock_ns, std::min(slot.target_ns, NextEndOf(state, slot)));
}

int First(const State& state) {
  int first = -1;
  Nanos earliest_ns = kNever;
  for (int i = 0; i < state.slots_used; ++i) {
    const Nanos bound_ns = EarliestActTime(state, state.slots[static_cast<std::size_t>(i)]);
    if (bound_ns >= earliest_ns) continue;
    earliest_ns = bound_ns;
    first = i;
  }
  return first;
}

void SetHolds(State& state, Slot& slot, EngineId id, bool holds, Nanos time_ns) {
  std::uint32_t& held = slot.holds[static_cast<std::size_t>(id.device)][id.engine];
  if ((held != 0) == holds) return;
  Settle(state, id.device, time_ns);
  held = holds ? 1 : 0;
  Recount(state);
}

void Vacate(State& state, Slot& slot, SlotState left_as) {
  for (int device = 0; device < state.device_count; ++device) Settle(state, device, state.acted_ns);
  slot.holds = {};
  slot.statistics.held_bytes = {};
  slot.waiting = 0;
  slot.suspended = 0;
  slot.state = left_as;
  Recount(state);
}

void Suspend(State& state, Slot& slot) {
  for (int device = 0; device < state.device_count; ++device) Settle(state, device, state.acted_ns);
  slot.suspended = 1;
  Recount(state);
}

void Resume(State& state, Slot& slot) {
  for (int device = 0; device < state.device_count; ++device) Settle(state, device, state.acted_ns);
  slot.suspended = 0;
  slot.clock_ns = std::max(slot.clock_ns, state.acted_ns);
  Recount(state);
}

void Recount(State& state) {
  for (int device = 0; device < state.device_count; ++device) {
    auto& own = state.devices[static_cast<std::size_t>(device)];
    own.busy = {};
    for (int i = 0; i < state.slots_used; ++i) {
      const Slot& slot = state.slots[static_cast<std::size_t>(i)];
      if (!Counts(slot)) continue;
      for (std::size_t engine = 0; engine < kEngines; ++engine) {
        own.busy[engine] += slot.holds[static_cast<std::size_t>(device)][engine];
      }
    }
  }
}

std::uint64_t HeldBytes(const State& state, int device) {
  std::uint64_t held_bytes = 0;
  for (int i = 0; i < state.slots_used; ++i) {
    const Slot& slot = state.slots[static_cast<std::size_t>(i)];
    held_bytes += slot.statistics.held_bytes[static_cast<std::size_t>(device)];
  }
  return held_bytes;
}

bool Take(State& state, Slot& slot, int device, std::uint64_t size_bytes) {
  const auto at = static_cast<std::size_t>(device);
  const std::uint64_t held_bytes = HeldBytes(state, device);
  if (size_bytes > state.capacity_bytes - held_bytes) return false;
  slot.statistics.held_bytes[at] += size_bytes;
  slot.statistics.peak_bytes[at] =
      std::max(slot.statistics.peak_bytes[at], slot.statistics.held_bytes[at]);
  state.devices[at].peak_bytes = std::max(state.devices[at].peak_bytes, held_bytes + size_bytes);
  return true;
}

}  // namespace spillway::simulator::node
