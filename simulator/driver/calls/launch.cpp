#include "simulator/driver/calls/launch.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "simulator/driver/calls/host_traffic.h"
#include "simulator/driver/calls/program_view.h"
#include "simulator/driver/device/assumed_uses.h"
#include "simulator/driver/engine/fault_guard.h"
#include "simulator/driver/machine/compute_mode.h"
#include "simulator/driver/machine/statistics.h"
#include "simulator/driver/memory/hidden_addresses.h"
#include "simulator/driver/memory/sparse_bytes.h"
#include "simulator/driver/memory/tags.h"

namespace spillway::simulator {
namespace {

constexpr std::size_t kParameterAlignment =
    128;  // a tensor map's: the largest alignment that a parameter can ask for

void FillFromExtra(Arguments& arguments, void* const* extra) {
  const void* buffer = nullptr;
  std::size_t size_bytes = 0;
  for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
    if (extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER)
      buffer = extra[1];
    else if (extra[0] == CU_LAUNCH_PARAM_BUFFER_SIZE)
      size_bytes = *static_cast<const std::size_t*>(extra[1]);
    else
      throw Failure{CUDA_ERROR_INVALID_VALUE};
  }
  Require(buffer != nullptr || size_bytes == 0);
  if (size_bytes != 0) arguments.CopyPacked(buffer, size_bytes);
}

std::uint64_t Product(const std::uint32_t (&sizes)[3]) {
  return std::uint64_t{sizes[0]} * sizes[1] * sizes[2];
}

void CheckShape(const LaunchShape& shape, const Kernel& kernel) {
  for (int i = 0; i < 3; ++i)
    Require(shape.grid[i] != 0 && shape.block[i] != 0 && shape.block[i] <= 1024);
  Require(Product(shape.block) <= 1024 && shape.block[2] <= 64);
  Require(shape.grid[0] <= 2147483647u && shape.grid[1] <= 65535 && shape.grid[2] <= 65535);
  Require(shape.dynamic_shared_bytes <= kernel.max_dynamic_shared_bytes);
}

KernelCost CostOf(const KernelEntry& entry, const LaunchShape& shape, void* const* arguments) {
  if (entry.cost != nullptr) return entry.cost(shape, arguments);
  const std::uint64_t threads = Product(shape.grid) * Product(shape.block);
  return KernelCost{16 * threads, 16 * threads};
}

// Arithmetic, device memory and the link work side by side; the slowest decides.
Nanos TimeOf(const Profile& profile, const KernelCost& cost, const HostTraffic& traffic) {
  constexpr unsigned __int128 kNanosPerSecond = 1'000'000'000;
  const std::uint64_t device_bytes =
      cost.device_bytes - std::min(cost.device_bytes, traffic.bytes());
  const auto arithmetic = cost.flops * kNanosPerSecond / profile.fp32_flops_per_second;
  const auto memory = device_bytes * kNanosPerSecond / profile.memory_bytes_per_second;
  const auto link = static_cast<unsigned __int128>(LinkTime(profile, traffic));
  return static_cast<Nanos>(std::max({arithmetic, memory, link}) + profile.launch_overhead_ns);
}

// To have all blocks resident at once; may exceed those of the device.
std::uint64_t MultiprocessorsNeeded(const Profile& profile, const LaunchShape& shape) {
  const int resident =
      ResidentBlocks(profile, static_cast<int>(Product(shape.block)), shape.dynamic_shared_bytes);
  const auto per_multiprocessor = static_cast<std::uint64_t>(std::max(resident, 1));
  return (Product(shape.grid) + per_multiprocessor - 1) / per_multiprocessor;
}

struct BodyCall {
  KernelBody body;
  const LaunchShape* shape;
  void* const* arguments;
};

void Run(void* context) {
  const auto* call = static_cast<BodyCall*>(context);
  call->body(*call->shape, call->arguments);
}

struct TagCall {
  const char* name;
  std::uint64_t identity;
  std::vector<KernelUse> uses;
  std::vector<ByteRange> unwritten = {};
};

void Clear(void* context) {
  for (const ByteRange& range : *static_cast<const std::vector<ByteRange>*>(context))
    SparseClear(reinterpret_cast<void*>(range.base), range.size_bytes);
}

void RunTags(void* context) {
  auto* const call = static_cast<TagCall*>(context);
  Clear(&call->unwritten);
  WriteTags(call->name, call->identity, call->uses);
}

KernelEffect EffectOf(const KernelLaunch& launch) {
  void* const* const arguments = launch.arguments->pointers();
  const DeclaredKernel::Launch facts{*launch.entry, launch.shape, arguments, launch.named};
  if (launch.uses == nullptr)
    return launch.declared != nullptr ? launch.declared->Describe(facts) : AssumeUses(facts);
  KernelUseList list{};
  launch.uses(launch.shape, arguments, &list);
  return {list.identity, {list.uses, list.uses + list.count}};
}

TagCall TagsOf(const KernelLaunch& launch) {
  KernelEffect effect = EffectOf(launch);
  return {launch.entry->name, effect.identity, std::move(effect.uses)};
}

KernelCost CostOf(const KernelLaunch& launch, const std::vector<KernelUse>& uses) {
  void* const* const arguments = launch.arguments->pointers();
  if (launch.uses != nullptr) return CostOf(*launch.entry, launch.shape, arguments);
  const bool is_declared = launch.declared != nullptr;
  return {is_declared ? launch.declared->Flops({*launch.entry, launch.shape, arguments}) : 0,
          BytesMoved(uses)};
}

std::vector<ByteRange> TakeUnwritten(FirstUses& first_uses, const std::vector<NamedMemory>& all) {
  std::vector<ByteRange> unwritten;
  for (const NamedMemory& named : all) {
    const auto own = first_uses.TakeUnwritten(named.base, named.size_bytes, named.id);
    unwritten.insert(unwritten.end(), own.begin(), own.end());
  }
  return unwritten;
}

void NoteWrites(FirstUses& first_uses, const std::vector<KernelUse>& uses) {
  for (const KernelUse& use : uses) {
    if (use.kind != UseKind::kRead && use.pointer != nullptr)
      first_uses.NoteWritten(reinterpret_cast<std::uintptr_t>(use.pointer), use.size_bytes);
  }
}

// Other words of its parameters may look like addresses: unset bytes hold anything.
std::vector<NamedMemory> UsedMemory(const std::vector<NamedMemory>& named,
                                    const std::vector<KernelUse>& uses) {
  std::vector<NamedMemory> used;
  for (const NamedMemory& memory : named) {
    const auto is_in_it = [&](const KernelUse& use) {
      return memory.Holds(reinterpret_cast<std::uintptr_t>(use.pointer));
    };
    if (std::any_of(uses.begin(), uses.end(), is_in_it)) used.push_back(memory);
  }
  return used;
}

void WriteTagsInsteadOfRunning(FirstUses& first_uses, const KernelLaunch& launch, TagCall call,
                               Operation& operation) {
  if (launch.is_listed && launch.declared == nullptr)
    TheStatistics().CountKernelWithoutRule(launch.entry->name);
  std::vector<NamedMemory> used = UsedMemory(launch.named, call.uses);
  operation.effect = [&first_uses, call = std::move(call), named = std::move(used)]() mutable {
    if (named.empty()) NoteWrites(first_uses, call.uses);
    call.unwritten = TakeUnwritten(first_uses, named);
    RunGuarded(RunTags, &call);
  };
}

// The effect comes at the operation's end; the kernel's clock shows its begin.
void RunBody(Simulator& sim, const KernelLaunch& launch, Operation& operation) {
  operation.effect = [&sim, arguments = launch.arguments, shape = launch.shape,
                      body = launch.entry->body, named = launch.named,
                      duration_ns = operation.duration_ns]() mutable {
    if (std::vector<ByteRange> unwritten = TakeUnwritten(sim.first_uses, named); !unwritten.empty())
      RunGuarded(Clear, &unwritten);
    shape.clock_khz = static_cast<std::uint32_t>(sim.profile.core_clock_khz);
    shape.begin_ns = sim.engine.now() - duration_ns;
    BodyCall body_call{body, &shape, arguments->pointers()};
    RunGuarded(Run, &body_call);
  };
}

// Copies and sets note what they write only in the mode `tags`.
void DescribeUses(Call& call, const Kernel& kernel, KernelLaunch& launch) {
  launch.uses = kernel.uses;
  if (kernel.always_runs) return;
  if (launch.uses == nullptr) launch.declared = call.sim.declared_uses.Find(launch.entry->name);
  if (TheComputeMode() != ComputeMode::kTags) return;
  launch.is_listed = kernel.is_listed;
  launch.writes_tags = launch.uses != nullptr || launch.declared != nullptr || launch.is_listed;
  if (launch.is_listed) call.sim.runs_listed_kernels = true;
  const bool needs_allocations = launch.declared != nullptr && launch.declared->NeedsAllocations();
  if (call.sim.runs_listed_kernels || needs_allocations)
    launch.named = MemoryNamedBy(call, *launch.arguments);
}

}  // namespace

Arguments::Arguments(const KernelEntry& entry) : entry_(entry) {
  for (std::uint32_t i = 0; i < entry.parameter_count; ++i) {
    const KernelParameter& parameter = entry.parameters[i];
    bytes_ = std::max(bytes_, std::size_t{parameter.offset_bytes} + parameter.size_bytes);
  }
  bytes_ = (bytes_ + kParameterAlignment) / kParameterAlignment * kParameterAlignment;
  buffer_.reset(static_cast<char*>(std::aligned_alloc(kParameterAlignment, bytes_)));
  if (buffer_ == nullptr) throw std::bad_alloc();
  std::memset(buffer_.get(), 0, bytes_);
  for (std::uint32_t i = 0; i < entry.parameter_count; ++i) {
    pointers_.push_back(buffer_.get() + entry.parameters[i].offset_bytes);
  }
}

void Arguments::CopyEach(void* const* parameters) {
  for (std::uint32_t i = 0; i < entry_.parameter_count; ++i) {
    Require(parameters[i] != nullptr);
    std::memcpy(pointers_[i], parameters[i], entry_.parameters[i].size_bytes);
  }
}

void Arguments::CopyPacked(const void* buffer, std::size_t size_bytes) {
  std::memcpy(buffer_.get(), buffer, std::min(size_bytes, bytes_));
}

std::vector<std::uint64_t> Arguments::Words() const {
  std::vector<std::uint64_t> words(bytes_ / sizeof(std::uint64_t));
  std::memcpy(words.data(), buffer_.get(), bytes_);
  AddTensorMapAddresses(words);
  std::erase(words, 0);
  return words;
}

std::vector<std::pair<std::uint32_t, std::uint64_t>> Arguments::AlignedWords() const {
  std::vector<std::pair<std::uint32_t, std::uint64_t>> words;
  for (std::uint32_t at = 0; at + sizeof(std::uint64_t) <= bytes_; at += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, buffer_.get() + at, sizeof word);
    if (word != 0) words.emplace_back(at, word);
  }
  return words;
}

KernelLaunch DescribeLaunch(Call& call, const void* handle, const LaunchShape& shape,
                            void* const* parameters, void* const* extra, Blocks blocks) {
  const auto found = call.sim.kernels.find(static_cast<Kernel*>(const_cast<void*>(handle)));
  Require(found != call.sim.kernels.end(), CUDA_ERROR_INVALID_HANDLE);
  const KernelEntry& entry = *(*found)->entry;
  CheckShape(shape, **found);
  const auto available = static_cast<std::uint64_t>(call.sim.profile.multiprocessors);
  const std::uint64_t needed = MultiprocessorsNeeded(call.sim.profile, shape);
  Require(blocks == Blocks::kAnyNumber || needed <= available,
          CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
  Require(parameters == nullptr || extra == nullptr);
  const auto arguments = std::make_shared<Arguments>(entry);
  if (extra != nullptr) {
    FillFromExtra(*arguments, extra);
  } else if (entry.parameter_count != 0) {
    Require(parameters != nullptr);
    arguments->CopyEach(parameters);
  }
  KernelLaunch launch{*found, &entry, shape, arguments, std::min(needed, available)};
  launch.shape.cooperative = blocks == Blocks::kAllResident;
  DescribeUses(call, **found, launch);
  return launch;
}

Operation MakeLaunch(Simulator& sim, const KernelLaunch& launch) {
  Operation operation;
  operation.name = "kernel";
  operation.subject = launch.entry->name;
  operation.resource = Resource::kCompute;
  operation.confined = true;
  operation.multiprocessors = static_cast<int>(launch.multiprocessors);
  operation.words = launch.arguments->Words();
  sim.textures.ClearDestroyed(sim.engine.first_unfinished());
  AddTextureAddresses(sim.textures, operation.words);
  const bool is_described = launch.uses != nullptr || launch.declared != nullptr;
  if (is_described || launch.writes_tags) {
    TagCall tags = TagsOf(launch);
    const KernelCost cost = CostOf(launch, tags.uses);
    operation.duration_ns = TimeOf(sim.profile, cost, TrafficOf(sim, tags.uses));
    if (launch.writes_tags)
      WriteTagsInsteadOfRunning(sim.first_uses, launch, std::move(tags), operation);
  } else {
    const KernelCost cost = CostOf(*launch.entry, launch.shape, launch.arguments->pointers());
    operation.duration_ns =
        TimeOf(sim.profile, cost, TrafficOf(sim, operation.words, cost.device_bytes));
  }
  if (!launch.writes_tags) RunBody(sim, launch, operation);
  ++TheStatistics().kernels;
  return operation;
}

}  // namespace spillway::simulator
