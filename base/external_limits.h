// Device memory limits that other systems put into a job's environment, and the budget that follows
// from them. Pure: the environment comes in, values and complaints come out.
//
// Sources in their order; the first that speaks for a device sets its budget:
//   1. NVIDIA_GPU_MEMORY_REQUEST, NVIDIA_GPU_MEMORY_LIMIT   whole MiB, of each device (NVIDIA's
//      container toolkit, KAI gpu-fractioning; the plural names of older versions, too)
//   2. CUDA_DEVICE_MEMORY_LIMIT_<i>, CUDA_DEVICE_MEMORY_LIMIT   "8192m"; 0: no limit (HAMi)
//   3. CUDA_MEM_LIMIT_<i>, CUDA_MEM_LIMIT, over CUDA_MEM_RATIO[_<i>]   "8192m" (vgpu-manager)
//   4. CUDA_MPS_PINNED_DEVICE_MEM_LIMIT   "0=8G,1=512M", or by UUID or its beginning (NVIDIA MPS)
// <i> is the process's own number of the device.
//
// Invariants
//  1. The driver enforces source 4, so no other source, nor the launcher, raises a budget above it.
//  2. A value that is not understood is no limit, and one of `problems` says so: what was read,
//     what is understood, and what holds instead.
//  3. Of several entries of source 4 for a device, the least holds.
//  4. These limits count all that a process uses. Its budget leaves room for its context.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "base/lines.h"
#include "base/size_text.h"

namespace spillway::base {

struct DeviceName {
  int number = 0;         // the process's own
  std::string_view uuid;  // "GPU-..."
};

struct ExternalLimit {
  int source = 0;  // its place in the order
  std::optional<int> number;
  std::string uuid;  // or its beginning; with neither: of every device
  std::uint64_t bytes = 0;
  std::string setting;  // "CUDA_DEVICE_MEMORY_LIMIT_0=8192m", at most kMostSettingBytes
};

struct ExternalProblem {
  int source = 0;
  std::string text;
};

// What a process may hold where it may use `limit_bytes`: its context also needs memory. (A context
// of an NVIDIA T4 takes 3 to 4 % of it; one of an H100 some 500 MiB.)
inline std::uint64_t BudgetBelow(std::uint64_t limit_bytes) {
  constexpr std::uint64_t kMostBytes = 512ULL << 20;
  return limit_bytes - std::min(limit_bytes / 16, kMostBytes);
}

class ExternalLimits {
 public:
  using Environment = FunctionRef<const char*(const char* name)>;
  static constexpr int kNvidiasSource = 1, kHamisSource = 2, kVgpuManagersSource = 3,
                       kDriversSource = 4;
  static constexpr int kMostDevices = 16;  // as HAMi and vgpu-manager
  static constexpr std::size_t kMostSettingBytes = 512;

  static ExternalLimits Read(Environment environment) {
    ExternalLimits limits;
    limits.ReadNvidias(environment);
    limits.ReadIndexed(environment, kHamisSource, "CUDA_DEVICE_MEMORY_LIMIT", "");
    limits.ReadIndexed(environment, kVgpuManagersSource, "CUDA_MEM_LIMIT", "CUDA_MEM_RATIO");
    limits.ReadMps(environment);
    return limits;
  }

  const ExternalLimit* FirstFor(const DeviceName& device) const {
    for (const ExternalLimit& limit : limits_) {
      if (Names(limit, device)) return limit.source == kDriversSource ? DriversFor(device) : &limit;
    }
    return nullptr;
  }
  // The least: the driver's own choice among several is not documented.
  const ExternalLimit* DriversFor(const DeviceName& device) const {
    const ExternalLimit* least = nullptr;
    for (const ExternalLimit& limit : limits_) {
      if (limit.source == kDriversSource && Names(limit, device) &&
          (least == nullptr || limit.bytes < least->bytes))
        least = &limit;
    }
    return least;
  }

  bool empty() const { return limits_.empty(); }
  const std::vector<ExternalLimit>& all() const { return limits_; }
  const std::vector<ExternalProblem>& problems() const { return problems_; }

  static bool Names(const ExternalLimit& limit, const DeviceName& device) {
    if (!limit.uuid.empty())
      return size_text::LowerCase(device.uuid).starts_with(size_text::LowerCase(limit.uuid));
    return !limit.number || *limit.number == device.number;
  }

 private:
  struct Variable {
    std::string name, value;
    std::string setting() const { return Cut(name + "=" + value); }
  };
  // Reports and messages have bounded room.
  static std::string Cut(std::string setting) {
    if (setting.size() > kMostSettingBytes)
      setting.replace(kMostSettingBytes - 3, setting.npos, "...");
    return setting;
  }

  static constexpr char kSizes[] = "a size like 8192m or 8G";

  // An empty variable counts as unset.
  static std::optional<Variable> Get(Environment environment, const std::string& name) {
    const char* const value = name.empty() ? nullptr : environment(name.c_str());
    if (value == nullptr || *value == '\0') return std::nullopt;
    return Variable{name, value};
  }

  static std::optional<std::uint64_t> Bytes(std::string_view text) {
    const std::optional<Size> size = ParseSize(text);
    if (!size || size->kind != SizeKind::kBytes) return std::nullopt;
    return size->bytes;
  }

  void Complain(int source, const std::string& setting, const std::string& understood,
                const std::string& holds = "no budget is taken from it") {
    std::string problem = setting + " is not understood: it may be " + understood + "; " + holds;
    const auto is_same = [&](const ExternalProblem& one) { return one.text == problem; };
    if (std::none_of(problems_.begin(), problems_.end(), is_same))
      problems_.push_back({source, std::move(problem)});
  }

  void Add(int source, std::optional<int> number, std::uint64_t bytes, std::string setting) {
    limits_.push_back({source, number, "", bytes, Cut(std::move(setting))});
  }

  // 0: sets nothing.
  std::uint64_t WholeMebibytes(const std::optional<Variable>& variable, std::uint64_t least) {
    constexpr std::uint64_t kMost = size_text::kMaxBytes >> 20;
    if (!variable) return 0;
    std::string_view rest = variable->value;
    std::uint64_t number = 0;
    int digits = 0;
    if (size_text::TakeDigits(rest, number, digits) && rest.empty() && number >= least &&
        number <= kMost)
      return number << 20;
    Complain(kNvidiasSource, variable->setting(), "a whole number of MiB, like 8192");
    return 0;
  }

  // Over the request a process may be ended for the sake of others (MPS v3), so the request counts.
  void ReadNvidias(Environment environment) {
    const auto either = [&](const char* name, const char* former) {
      const std::optional<Variable> variable = Get(environment, name);
      return variable ? variable : Get(environment, former);
    };
    const auto request = either("NVIDIA_GPU_MEMORY_REQUEST", "NVIDIA_GPU_MEMORY_REQUESTS");
    const auto limit = either("NVIDIA_GPU_MEMORY_LIMIT", "NVIDIA_GPU_MEMORY_LIMITS");
    const std::uint64_t request_bytes = WholeMebibytes(request, 0);
    const std::uint64_t limit_bytes = WholeMebibytes(limit, 1);
    const bool limit_counts =
        limit_bytes > 0 && (request_bytes == 0 || limit_bytes < request_bytes);
    if (request_bytes > 0 && limit_counts)
      problems_.push_back({kNvidiasSource, request->setting() + " is above " + limit->setting() +
                                               ": the smaller one holds"});
    if (limit_counts)
      Add(kNvidiasSource, std::nullopt, limit_bytes, limit->setting());
    else if (request_bytes > 0)
      Add(kNvidiasSource, std::nullopt, request_bytes, request->setting());
  }

  // A device's own variable comes before the one for all.
  void ReadIndexed(Environment environment, int source, const std::string& name,
                   const std::string& ratio_name) {
    const std::optional<Variable> common = Get(environment, name);
    const std::optional<Variable> common_ratio = Get(environment, ratio_name);
    for (int number = 0; number < kMostDevices; ++number) {
      const std::string suffix = "_" + std::to_string(number);
      const std::optional<Variable> own = Get(environment, name + suffix);
      const std::optional<Variable> ratio =
          ratio_name.empty() ? std::nullopt : Get(environment, ratio_name + suffix);
      const std::optional<Variable>& limit = own || !ratio ? own : common;
      if (limit) AddSize(source, number, *limit, ratio ? ratio : common_ratio);
    }
    if (common) AddSize(source, std::nullopt, *common, common_ratio);
  }

  void AddSize(int source, std::optional<int> number, const Variable& variable,
               const std::optional<Variable>& ratio) {
    const std::optional<std::uint64_t> bytes = Bytes(variable.value);
    const bool means_none = bytes == 0U && source == kHamisSource;
    if (means_none) return;
    if (bytes.value_or(0) == 0) return Complain(source, variable.setting(), kSizes);
    const std::uint64_t device_bytes = ratio ? Over(*bytes, *ratio) : *bytes;
    std::string setting = variable.setting();
    if (device_bytes != *bytes) setting += " over " + ratio->setting();
    Add(source, number, device_bytes, std::move(setting));
  }

  // vgpu-manager's limit is what a program sees; so many times less of it is device memory.
  std::uint64_t Over(std::uint64_t bytes, const Variable& ratio) {
    std::string_view rest = ratio.value;
    const std::optional<size_text::Decimal> number = size_text::TakeDecimal(rest);
    if (!number || !rest.empty() || number->whole > 1'000'000) {
      Complain(kVgpuManagersSource, ratio.setting(), "a number like 1.5", "the limit holds whole");
      return bytes;
    }
    const auto billionths =
        size_text::UnsignedWide{number->whole} * size_text::kBillion + number->billionths;
    if (billionths <= size_text::kBillion) return bytes;
    return static_cast<std::uint64_t>(size_text::UnsignedWide{bytes} * size_text::kBillion /
                                      billionths);
  }

  void ReadMps(Environment environment) {
    const auto variable = Get(environment, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT");
    if (!variable) return;
    std::string_view rest = variable->value;
    for (std::size_t comma = 0; comma != rest.npos; rest.remove_prefix(comma + 1)) {
      comma = rest.find(',');
      AddMps(*variable, Trimmed(rest.substr(0, comma), " "));
      if (comma == rest.npos) return;
    }
  }

  void AddMps(const Variable& variable, std::string_view entry) {
    const std::size_t equals = std::min(entry.find('='), entry.size());
    const std::string_view size = entry.substr(std::min(equals + 1, entry.size()));
    ExternalLimit limit{kDriversSource, std::nullopt, "", Bytes(Trimmed(size, " ")).value_or(0),
                        variable.setting()};
    if (TakeKey(Trimmed(entry.substr(0, equals), " "), limit) && limit.bytes > 0)
      limits_.push_back(std::move(limit));
    else
      Complain(kDriversSource, variable.setting(), "a list like 0=8G,1=512M, or GPU-UUID=8G",
               "'" + Cut(std::string(entry)) + "' of it sets no budget");
  }

  static bool TakeKey(std::string_view key, ExternalLimit& limit) {
    if (key.size() > 4 && size_text::LowerCase(key).starts_with("gpu-")) {
      limit.uuid = key;
      return true;
    }
    std::uint64_t number = 0;
    int digits = 0;
    const bool is_number = size_text::TakeDigits(key, number, digits) && key.empty();
    if (is_number && number < 1024) limit.number = static_cast<int>(number);
    return limit.number.has_value();
  }

  std::vector<ExternalLimit> limits_;  // in the order of the sources
  std::vector<ExternalProblem> problems_;
};

struct DeviceBudget {
  std::optional<std::uint64_t> bytes;  // nullopt: the whole device
  std::string setting;                 // that it comes from; empty: the launcher's, or none
};

inline DeviceBudget BudgetOf(const DeviceName& device, std::optional<std::uint64_t> own_bytes,
                             const ExternalLimits& limits) {
  DeviceBudget budget{own_bytes, ""};
  const ExternalLimit* const first = own_bytes ? nullptr : limits.FirstFor(device);
  if (first != nullptr) budget = {BudgetBelow(first->bytes), first->setting};
  const ExternalLimit* const drivers = limits.DriversFor(device);
  if (drivers != nullptr && BudgetBelow(drivers->bytes) < budget.bytes.value_or(UINT64_MAX))
    budget = {BudgetBelow(drivers->bytes), drivers->setting};
  return budget;
}

}  // namespace spillway::base
