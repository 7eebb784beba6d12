#include "simulator/driver/calls/launch.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "simulator/driver/engine/fault_guard.h"
#include "simulator/driver/machine/compute_mode.h"
#include "simulator/driver/machine/statistics.h"
#include "simulator/driver/memory/hidden_addresses.h"
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

Nanos TimeOf(const Profile& profile, const KernelCost& cost) {
  constexpr unsigned __int128 kNanosPerSecond = 1'000'000'000;
  const auto arithmetic = cost.flops * kNanosPerSecond / profile.fp32_flops_per_second;
  const auto memory = cost.device_bytes * kNanosPerSecond / profile.memory_bytes_per_second;
  return static_cast<Nanos>(std::max(arithmetic, memory) + profile.launch_overhead_ns);
}

// The multiprocessors needed to have all blocks resident at once; may exceed those of the device.
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

void RunTags(void* context) {
  const auto* call = static_cast<std::pair<const char*, const KernelUseList*>*>(context);
  WriteTags(call->first, *call->second);
}

KernelUseList UsesOf(const KernelLaunch& launch) {
  KernelUseList list{};
  void* const* const arguments = launch.arguments->pointers();
  if (launch.declared != nullptr)
    launch.declared->Describe({*launch.entry, launch.shape, arguments}, &list);
  else
    launch.uses(launch.shape, arguments, &list);
  return list;
}

void WriteTagsInsteadOfRunning(const Profile& profile, const KernelLaunch& launch,
                               Operation& operation) {
  const KernelUseList list = UsesOf(launch);
  if (launch.declared != nullptr) {
    const std::uint64_t flops =
        launch.declared->Flops({*launch.entry, launch.shape, launch.arguments->pointers()});
    operation.duration_ns = TimeOf(profile, {flops, BytesMoved(list)});
  }
  operation.effect = [name = launch.entry->name, list] {
    std::pair<const char*, const KernelUseList*> call{name, &list};
    RunGuarded(RunTags, &call);
  };
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
  if (TheComputeMode() == ComputeMode::kTags) {
    launch.uses = (*found)->uses;
    if (launch.uses == nullptr) launch.declared = call.sim.declared_uses.Find(entry.name);
  }
  return launch;
}

Operation MakeLaunch(const Simulator& sim, const KernelLaunch& launch) {
  Operation operation;
  operation.name = "kernel";
  operation.subject = launch.entry->name;
  operation.resource = Resource::kCompute;
  operation.confined = true;
  operation.duration_ns =
      TimeOf(sim.profile, CostOf(*launch.entry, launch.shape, launch.arguments->pointers()));
  operation.multiprocessors = static_cast<int>(launch.multiprocessors);
  operation.words = launch.arguments->Words();
  AddTextureAddresses(sim.textures, operation.words);
  operation.effect = [arguments = launch.arguments, shape = launch.shape,
                      body = launch.entry->body] {
    BodyCall body_call{body, &shape, arguments->pointers()};
    RunGuarded(Run, &body_call);
  };
  if (launch.uses != nullptr || launch.declared != nullptr)
    WriteTagsInsteadOfRunning(sim.profile, launch, operation);
  ++TheStatistics().kernels;
  return operation;
}

}  // namespace spillway::simulator
