#include "simulator/driver/machine/node_statistics.h"

#include <sys/mman.h>

#include "base/json_text.h"
#include "simulator/driver/machine/node_file.h"

namespace spillway::simulator {
namespace {

using node::Slot;
using node::SlotState;

const char* NameOf(const Slot& slot) {
  switch (slot.state) {
    case SlotState::kFree:
      return "free";
    case SlotState::kReserved:
      return "expected";
    case SlotState::kPresent:
      return slot.suspended != 0 ? "stopped" : "present";
    case SlotState::kEnded:
      return "ended";
    case SlotState::kKilled:
      return "killed";
  }
  return "";
}

std::string Member(const char* name, std::uint64_t value) {
  return std::string("\"") + name + "\":" + std::to_string(value);
}

template <class Value>
std::string List(int count, Value value) {
  std::string list = "[";
  for (int i = 0; i < count; ++i) list += (i == 0 ? "" : ",") + value(static_cast<std::size_t>(i));
  return list + "]";
}

std::string Describe(const node::State& state, const Slot& slot, std::size_t number) {
  const auto bytes = [&](const auto& figures) {
    return List(state.device_count,
                [&](std::size_t device) { return std::to_string(figures[device]); });
  };
  std::string json = "{" + Member("slot", number + 1) + ",\"state\":\"" + NameOf(slot) + "\"";
  if (slot.pid == 0) return json + "}";
  json += "," + Member("pid", static_cast<std::uint64_t>(slot.pid)) +
          ",\"name\":" + base::JsonQuoted(slot.name);
  json += "," + Member("simulated_ns", static_cast<std::uint64_t>(slot.clock_ns));
  json += ",\"device_bytes_now\":" + bytes(slot.statistics.held_bytes);
  json += ",\"device_bytes_peak\":" + bytes(slot.statistics.peak_bytes);
  json += "," + Member("kernels", slot.statistics.kernels) + "," +
          Member("compute_ns", slot.statistics.compute_ns);
  json += "," + Member("h2d_bytes", slot.statistics.h2d_bytes) + "," +
          Member("d2h_bytes", slot.statistics.d2h_bytes);
  return json + "}";
}

std::string Describe(const NodeFile& file) {
  const node::State& state = file.state;
  const auto device = [&](std::size_t at) {
    return "{" + Member("bytes_now", HeldBytes(state, static_cast<int>(at))) + "," +
           Member("bytes_peak", state.devices[at].peak_bytes) + "}";
  };
  const auto slot = [&](std::size_t at) { return Describe(state, state.slots[at], at); };
  return "{\"schema\":1,\"profile\":" + base::JsonQuoted(file.profile) + "," +
         Member("device_bytes_capacity", state.capacity_bytes) + "," +
         Member("simulated_ns", static_cast<std::uint64_t>(state.acted_ns)) +
         ",\"devices\":" + List(state.device_count, device) +
         ",\"processes\":" + List(state.slots_used, slot) + "}\n";
}

// Calls `read` with the machine's state, under its lock. An error if there is no such machine.
template <class Read>
base::Status ReadNode(const std::string& path, Read read) {
  const base::Result<NodeFile*> opened = OpenNodeFile(path);
  if (!opened) return opened.status();
  NodeFile* const file = *opened;
  {
    const NodeLock lock(*file);
    read(*file);
  }
  munmap(file, sizeof(NodeFile));
  return base::Ok();
}

}  // namespace

std::vector<NodeProcess> ReadNodeProcesses(const std::string& path, int device) {
  std::vector<NodeProcess> processes;
  static_cast<void>(ReadNode(path, [&](NodeFile& file) {
    Sweep(file, Whom::kAll);
    for (const Slot& slot : file.state.slots) {
      if (slot.state != SlotState::kPresent) continue;
      processes.push_back({slot.pid, slot.statistics.held_bytes[static_cast<std::size_t>(device)]});
    }
  }));
  return processes;
}

NodeTime ReadNodeTime(const std::string& path, int device) {
  NodeTime time;
  static_cast<void>(ReadNode(path, [&](const NodeFile& file) {
    time = {file.state.acted_ns, node::ComputingAt(file.state, device, file.state.acted_ns)};
  }));
  return time;
}

base::Result<std::string> ReadNodeStatistics(const std::string& path) {
  std::string json;
  base::Status read = ReadNode(path, [&](NodeFile& file) {
    Sweep(file, Whom::kAll);
    json = Describe(file);
  });
  if (!read.ok()) return read;
  return json;
}

}  // namespace spillway::simulator
