#include "simulator/driver/machine/node_books.h"

#include <sys/mman.h>

#include "base/json_text.h"
#include "simulator/driver/machine/node_file.h"

namespace spillway::simulator {
namespace {

using node::Seat;
using node::SeatState;

const char* NameOf(const Seat& seat) {
  switch (seat.state) {
    case SeatState::kFree:
      return "free";
    case SeatState::kReserved:
      return "expected";
    case SeatState::kPresent:
      return seat.suspended != 0 ? "stopped" : "present";
    case SeatState::kEnded:
      return "ended";
    case SeatState::kKilled:
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

std::string Describe(const node::State& state, const Seat& seat, std::size_t number) {
  const auto bytes = [&](const auto& figures) {
    return List(state.device_count, [&](std::size_t device) { return std::to_string(figures[device]); });
  };
  std::string json = "{" + Member("seat", number + 1) + ",\"state\":\"" + NameOf(seat) + "\"";
  if (seat.pid == 0) return json + "}";
  json +=
      "," + Member("pid", static_cast<std::uint64_t>(seat.pid)) + ",\"name\":" + base::JsonQuoted(seat.name);
  json += "," + Member("simulated_ns", static_cast<std::uint64_t>(seat.clock_ns));
  json += ",\"device_bytes_now\":" + bytes(seat.books.held_bytes);
  json += ",\"device_bytes_peak\":" + bytes(seat.books.peak_bytes);
  json += "," + Member("kernels", seat.books.kernels) + "," + Member("compute_ns", seat.books.compute_ns);
  json += "," + Member("h2d_bytes", seat.books.h2d_bytes) + "," + Member("d2h_bytes", seat.books.d2h_bytes);
  return json + "}";
}

std::string Describe(const NodeFile& file) {
  const node::State& state = file.state;
  const auto device = [&](std::size_t at) {
    return "{" + Member("bytes_now", HeldBytes(state, static_cast<int>(at))) + "," +
           Member("bytes_peak", state.devices[at].peak_bytes) + "}";
  };
  const auto seat = [&](std::size_t at) { return Describe(state, state.seats[at], at); };
  return "{\"schema\":1,\"profile\":" + base::JsonQuoted(file.profile) + "," +
         Member("device_bytes_capacity", state.capacity_bytes) + "," +
         Member("simulated_ns", static_cast<std::uint64_t>(state.acted_ns)) +
         ",\"devices\":" + List(state.device_count, device) +
         ",\"processes\":" + List(state.seats_used, seat) + "}\n";
}

}  // namespace

std::vector<NodeProcess> ReadNodeProcesses(const std::string& path, int device) {
  std::vector<NodeProcess> processes;
  const base::Result<NodeFile*> opened = OpenNodeFile(path);
  if (!opened) return processes;
  NodeFile* const file = *opened;
  {
    const NodeLock lock(*file);
    Sweep(*file, Whom::kAll);
    for (const Seat& seat : file->state.seats) {
      if (seat.state != SeatState::kPresent) continue;
      processes.push_back({seat.pid, seat.books.held_bytes[static_cast<std::size_t>(device)]});
    }
  }
  munmap(file, sizeof(NodeFile));
  return processes;
}

base::Result<std::string> ReadNodeBooks(const std::string& path) {
  const base::Result<NodeFile*> opened = OpenNodeFile(path);
  if (!opened) return opened.error();
  NodeFile* const file = *opened;
  std::string json;
  {
    const NodeLock lock(*file);
    Sweep(*file, Whom::kAll);
    json = Describe(*file);
  }
  munmap(file, sizeof(NodeFile));
  return json;
}

}  // namespace spillway::simulator
