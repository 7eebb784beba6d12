#include "agent/config/config_fields.h"

#include <algorithm>
#include <charconv>

#include "base/size_text.h"

namespace spillway::agent {
namespace {

constexpr int64_t kHour = 3600;
constexpr int64_t kMostBytes = int64_t{1} << 56;
constexpr size_t kMostSocketBytes = 107;  // sizeof sockaddr_un::sun_path, without the final NUL

base::Status CheckAddress(const std::string& text) {
  if (text.empty()) return base::Ok();
  const size_t colon = text.rfind(':');
  const std::string port = colon == text.npos ? "" : text.substr(colon + 1);
  uint16_t number = 0;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  const bool is_port = !port.empty() && error == std::errc() && end == port.data() + port.size();
  if (is_port) return base::Ok();
  return base::Error{"'" + text + "' is no address and port like 127.0.0.1:9477"};
}

base::Status CheckPath(const std::string& text) {
  if (text.empty() || text.starts_with('/')) return base::Ok();
  return base::Error{"'" + text + "' is no whole path"};
}

base::Status CheckSocketPath(const std::string& text) {
  if (text.size() <= kMostSocketBytes) return CheckPath(text);
  return base::Error{"a socket's path has at most 107 bytes"};
}

base::Status CheckFormat(const std::string& text) {
  if (text == "text" || text == "json") return base::Ok();
  return base::Error{"log_format is text or json"};
}

base::Status CheckLevel(const std::string& text) {
  constexpr std::string_view levels[] = {"trace", "debug", "info", "warn", "error"};
  const bool is_one = std::find(std::begin(levels), std::end(levels), text) != std::end(levels);
  if (is_one) return base::Ok();
  return base::Error{"log_level is trace, debug, info, warn or error"};
}

base::Status CheckSocket(const std::string& text) {
  const bool is_one =
      (text.starts_with('/') || text.starts_with('@')) && text.size() <= kMostSocketBytes;
  if (is_one) return base::Ok();
  return base::Error{
      "socket is a whole path of at most 107 bytes, like \"/run/spillway/agent.sock\""};
}

using C = Config;
using K = FieldKind;

constexpr ConfigField kFields[] = {
    {"agent", "socket", K::kText, 0, 0, true, "where jobs and the command connect",
     [](C& c) -> FieldPlace { return &c.socket; }, CheckSocket},
    {"agent", "socket_mode", K::kNumber, 0, 0777, true, "its permissions",
     [](C& c) -> FieldPlace { return &c.socket_mode; }},
    {"agent", "job_socket", K::kText, 0, 0, true,
     "path where jobs connect, too, and nobody may operate the node, for containers that mount its "
     "folder; empty: none",
     [](C& c) -> FieldPlace { return &c.job_socket; }, CheckSocketPath},
    {"agent", "http", K::kText, 0, 0, true, "address and port of metrics and pages; empty: none",
     [](C& c) -> FieldPlace { return &c.http; }, CheckAddress},
    {"agent", "log_level", K::kText, 0, 0, false, "trace, debug, info, warn or error",
     [](C& c) -> FieldPlace { return &c.log_level; }, CheckLevel},
    {"agent", "log_format", K::kText, 0, 0, true,
     "text, or json: one object on each line, with time, level, message and a job's figures",
     [](C& c) -> FieldPlace { return &c.log_format; }, CheckFormat},
    {"agent", "usage_interval_ms", K::kNumber, 10, kHour * 1000, false,
     "how often jobs say how they fare", [](C& c) -> FieldPlace { return &c.usage_interval_ms; }},
    {"agent", "resume_ms", K::kNumber, 0, kHour * 1000, true,
     "after a start, time for running jobs to come back: each tries every 2 s at the latest",
     [](C& c) -> FieldPlace { return &c.resume_ms; }},
    {"agent", "state", K::kText, 0, 0, true,
     "file of what operators have set, for the next agent; empty: beside the socket",
     [](C& c) -> FieldPlace { return &c.state; }},
    {"agent", "operators", K::kNumbers, 0, UINT32_MAX, false,
     "user ids that may change budgets, beside root's",
     [](C& c) -> FieldPlace { return &c.operators; }},
    {"http", "token_file", K::kText, 0, 0, false,
     "its line is the token that clients of the address give as \"Authorization: Bearer TOKEN\"; "
     "empty: they need none",
     [](C& c) -> FieldPlace { return &c.http_token_file; }, CheckPath},
    {"http", "certificate", K::kText, 0, 0, false,
     "with its chain, in PEM: the address then speaks HTTPS; empty: HTTP",
     [](C& c) -> FieldPlace { return &c.http_certificate; }, CheckPath},
    {"http", "key", K::kText, 0, 0, false, "the certificate's",
     [](C& c) -> FieldPlace { return &c.http_key; }, CheckPath},
    {"http", "open", K::kFlag, 0, 0, false,
     "an address that other machines reach needs no token: whoever reaches it may look",
     [](C& c) -> FieldPlace { return &c.http_open; }},
    {"http", "socket", K::kText, 0, 0, true,
     "path where local clients get the pages too, without a token; empty: none",
     [](C& c) -> FieldPlace { return &c.http_socket; }, CheckSocketPath},
    {"http", "socket_mode", K::kNumber, 0, 0777, true, "who they are: its permissions",
     [](C& c) -> FieldPlace { return &c.http_socket_mode; }},
    {"devices", "find", K::kFlag, 0, 0, true, "ask NVML which devices there are",
     [](C& c) -> FieldPlace { return &c.find_devices; }},
    {"devices", "reserve", K::kSize, 0, kMostBytes, false,
     "of each device, for what no budget sees",
     [](C& c) -> FieldPlace { return &c.device_reserve_bytes; }},
    {"native_limits", "backstop", K::kFlag, 0, 0, false,
     "set the driver's own hard limit (r615, as root) on the control groups of jobs, above their "
     "budgets: for memory that evades the preload; never tried with a real driver",
     [](C& c) -> FieldPlace { return &c.sets_hard_limits; }},
    {"native_limits", "reserve", K::kBytes, 0, kMostBytes, false,
     "of each process above its budget, for its context, kernels and libraries",
     [](C& c) -> FieldPlace { return &c.hard_limit_reserve_bytes; }},
    {"host", "memory", K::kSize, 0, kMostBytes, true,
     "for evicted memory; 0: half of the machine's",
     [](C& c) -> FieldPlace { return &c.host_bytes; }},
    {"host", "pool", K::kFlag, 0, 0, true,
     "lend it to jobs in slabs, instead of having each pin its own",
     [](C& c) -> FieldPlace { return &c.host_pool; }},
    {"host", "slab", K::kBytes, int64_t{1} << 20, int64_t{1} << 30, true, "size of a slab",
     [](C& c) -> FieldPlace { return &c.slab_bytes; }},
    {"host", "spare", K::kSize, 0, kMostBytes, true,
     "in slabs that are made before somebody asks; others that are unused go back to the system",
     [](C& c) -> FieldPlace { return &c.spare_slab_bytes; }},
    {"host", "device_factor", K::kNumber, 1, 1000, false,
     "a process has slabs of at most so many times the device memory that it has held",
     [](C& c) -> FieldPlace { return &c.device_factor; }},
    {"host", "huge_pages", K::kFlag, 0, 0, true, "slabs of 2 MiB pages, while the system has any",
     [](C& c) -> FieldPlace { return &c.huge_pages; }},
    {"host", "driver_slabs", K::kFlag, 0, 0, true,
     "slabs are memory that the driver makes and exports, where it can; not yet proven on a GPU",
     [](C& c) -> FieldPlace { return &c.driver_slabs; }},
    {"host", "spill_folder", K::kText, 0, 0, true,
     "folder on a local disk, for evicted memory of idle and waiting jobs while others want host "
     "memory; empty: none",
     [](C& c) -> FieldPlace { return &c.spill_folder; }, CheckPath},
    {"host", "spill_bytes", K::kBytes, 0, kMostBytes, true, "the most that all jobs store there",
     [](C& c) -> FieldPlace { return &c.spill_bytes; }},
    {"host", "spill_after_ms", K::kNumber, 0, kHour * 1000, false,
     "a job stores nothing before it was idle, or waited for its turn, for so long",
     [](C& c) -> FieldPlace { return &c.spill_after_ms; }},
    {"host", "spill_in_memory", K::kFlag, 0, 0, true,
     "that folder may lie in memory (tmpfs), where it saves none: for tests",
     [](C& c) -> FieldPlace { return &c.spill_in_memory; }},
    {"link", "to_device", K::kBytes, 0, kMostBytes, false,
     "bytes per second that jobs share; 0: by the device's name, or no limit",
     [](C& c) -> FieldPlace { return &c.link_to_device_bytes_per_second; }},
    {"link", "to_host", K::kBytes, 0, kMostBytes, false, "the same, the other way",
     [](C& c) -> FieldPlace { return &c.link_to_host_bytes_per_second; }},
    {"planning", "workers", K::kNumber, 0, 1000, false,
     "processes that make plans at once; 0: jobs plan for themselves",
     [](C& c) -> FieldPlace { return &c.plan_workers; }},
    {"planning", "time_limit_ms", K::kNumber, 1, kHour * 1000, false, "of one plan",
     [](C& c) -> FieldPlace { return &c.plan_time_limit_ms; }},
    {"planning", "memory", K::kBytes, int64_t{64} << 20, kMostBytes, false,
     "of one process that makes a plan", [](C& c) -> FieldPlace { return &c.plan_memory_bytes; }},
    {"planning", "queue_per_user", K::kNumber, 1, 100'000, false,
     "requests of one user, waiting or begun",
     [](C& c) -> FieldPlace { return &c.plan_queue_per_user; }},
    {"planning", "queue", K::kNumber, 1, 100'000, false, "requests in all",
     [](C& c) -> FieldPlace { return &c.plan_queue; }},
    {"planning", "store", K::kText, 0, 0, true,
     "folder of plans for jobs' next runs; empty: the service's state folder, else beside the "
     "socket",
     [](C& c) -> FieldPlace { return &c.plan_store; }},
    {"planning", "store_size", K::kBytes, 0, kMostBytes, false, "of that folder; 0: none are kept",
     [](C& c) -> FieldPlace { return &c.plan_store_bytes; }},
    {"arbiter", "return_within_ms", K::kNumber, 1, kHour * 1000, false,
     "time to give back what was lent", [](C& c) -> FieldPlace { return &c.return_within_ms; }},
    {"arbiter", "patience_s", K::kNumber, 0, 1000 * kHour, false,
     "after which nobody passes a waiting job", [](C& c) -> FieldPlace { return &c.patience_s; }},
    {"arbiter", "unused_ms", K::kNumber, 0, kHour * 1000, false,
     "a process that holds nothing so long after it was granted memory has no claim on any",
     [](C& c) -> FieldPlace { return &c.unused_ms; }},
    {"arbiter", "step", K::kBytes, 1, kMostBytes, true, "smaller rises of a budget wait",
     [](C& c) -> FieldPlace { return &c.step_bytes; }},
    {"arbiter", "headroom", K::kBytes, 0, kMostBytes, false, "granted beyond what a job wants",
     [](C& c) -> FieldPlace { return &c.headroom_bytes; }},
    {"turns", "quantum_ms", K::kNumber, 100, kHour * 1000, false, "the least length of a turn",
     [](C& c) -> FieldPlace { return &c.turn_quantum_ms; }},
    {"turns", "cost_factor", K::kNumber, 1, 1000, false,
     "a turn lasts at least so many times what its job's memory takes to come and go",
     [](C& c) -> FieldPlace { return &c.turn_cost_factor; }},
    {"turns", "stuck_s", K::kNumber, 1, kHour, false,
     "a job that begins no call for so long loses its turn",
     [](C& c) -> FieldPlace { return &c.turn_stuck_s; }},
    {"limits", "sessions", K::kNumber, 1, 1'000'000, false, "in all",
     [](C& c) -> FieldPlace { return &c.limits.sessions; }},
    {"limits", "sessions_per_user", K::kNumber, 1, 1'000'000, false, "of one user",
     [](C& c) -> FieldPlace { return &c.limits.sessions_per_user; }},
    {"limits", "connections_per_second_per_user", K::kNumber, 1, 1'000'000, false, "of one user",
     [](C& c) -> FieldPlace { return &c.limits.connections_per_second_per_user; }},
    {"limits", "messages_per_second", K::kNumber, 1, 1'000'000, false, "of one session",
     [](C& c) -> FieldPlace { return &c.limits.messages_per_second; }},
    {"limits", "devices_per_session", K::kNumber, 1, 64, false, "of one session",
     [](C& c) -> FieldPlace { return &c.limits.devices_per_session; }},
};

using T = TermsChange;

constexpr TermsField kTerms[] = {
    {"guaranteed", K::kSize, 0, kMostBytes, "device memory that comes back as soon as it is wanted",
     &T::guaranteed_bytes},
    {"limit", K::kSize, 1, kMostBytes, "the most device memory", &T::limit_bytes},
    {"floor", K::kSize, 0, kMostBytes,
     "device memory without which it cannot run; 512MiB where nobody sets it", &T::floor_bytes},
    {"host_guaranteed", K::kSize, 0, kMostBytes, "host memory for evicted memory",
     &T::host_guaranteed_bytes},
    {"host_limit", K::kSize, 0, kMostBytes, "the most host memory", &T::host_limit_bytes},
    {"link_guaranteed", K::kNumber, 0, 1000, "thousandths of the link",
     &T::link_guaranteed_permille},
    {"link_limit", K::kNumber, 1, 1000, "the most of the link", &T::link_limit_permille},
    {"workspace_limit", K::kSize, 0, kMostBytes,
     "the most device memory of one cuDNN workspace; what needs more is not offered where another "
     "algorithm of its kind does with less",
     &T::workspace_limit_bytes},
    {"weight", K::kNumber, 1, 10'000, "of its share beside jobs of the same priority", &T::weight},
    {"priority", K::kNumber, 0, 1000, "higher goes first", &T::priority},
    {"turns", K::kTurns, 0, 2,
     "whether it takes turns on a device with jobs that do not fit beside it: never, auto (where "
     "sharing costs more time) or always; never where nobody sets it",
     &T::turns},
};

using O = OwnerChange;

constexpr OwnerField kOwners[] = {
    {"guaranteed", K::kSize, 0, kMostBytes, "of each device, for its jobs that want it",
     &O::guaranteed_bytes},
    {"limit", K::kSize, 1, kMostBytes, "the most of each device", &O::limit_bytes},
    {"host_limit", K::kSize, 0, kMostBytes, "the most host memory", &O::host_limit_bytes},
    {"weight", K::kNumber, 1, 10'000, "of its share beside other users, or accounts", &O::weight},
    {"jobs", K::kNumber, 1, 1'000'000, "that run at once; others wait", &O::jobs},
};

// Edit distance: letters to insert, drop or change.
size_t Distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0]++;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t change = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({change, row[j] + 1, diagonal + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

std::span<const ConfigField> ConfigFields() { return kFields; }
std::span<const TermsField> TermsFields() { return kTerms; }
std::span<const OwnerField> OwnerFields() { return kOwners; }

std::optional<int64_t> ParseBytes(std::string_view text) {
  const std::optional<base::Size> size = base::ParseSize(text);
  if (!size || size->kind != base::SizeKind::kBytes || size->bytes > kMostBytes)
    return std::nullopt;
  return static_cast<int64_t>(size->bytes);
}

std::optional<int64_t> ParseSizeOrShare(std::string_view text) {
  const std::optional<base::Size> size = base::ParseSize(text);
  if (!size || size->kind != base::SizeKind::kShareOfDevice) return ParseBytes(text);
  constexpr uint64_t kWhole = 1'000'000'000, kPerMillionth = kWhole / kWholeInMillionths;
  const uint64_t millionths = (size->share_per_billion + kPerMillionth / 2) / kPerMillionth;
  const bool is_share = size->share_per_billion <= kWhole && millionths > 0;
  return is_share ? std::optional(-static_cast<int64_t>(millionths)) : std::nullopt;
}

std::string ShowSize(int64_t size) {
  if (size >= 0) return base::FormatBytesExactly(static_cast<uint64_t>(size));
  constexpr int64_t one_percent = kWholeInMillionths / 100;
  std::string text = std::to_string(-size / one_percent);
  if (const int64_t rest = -size % one_percent; rest != 0) {
    std::string digits = std::to_string(one_percent + rest).substr(1);
    while (digits.back() == '0') digits.pop_back();
    text += "." + digits;
  }
  return text + "%";
}

namespace {
constexpr std::string_view kTurns[] = {"never", "auto", "always"};
}

std::optional<int64_t> ParseTurns(std::string_view text) {
  const auto found = std::find(std::begin(kTurns), std::end(kTurns), text);
  return found == std::end(kTurns) ? std::nullopt
                                   : std::optional<int64_t>(found - std::begin(kTurns));
}

const char* ShowTurns(int64_t turns) { return kTurns[static_cast<size_t>(turns)].data(); }

std::string Nearest(std::string_view wrong, const std::vector<std::string>& names) {
  size_t least = std::max<size_t>(2, wrong.size() / 3) + 1;
  std::string nearest;
  for (const std::string& name : names) {
    const size_t distance = Distance(wrong, name);
    if (distance < least) {
      least = distance;
      nearest = name;
    }
  }
  return nearest;
}

}  // namespace spillway::agent
