// Kernels know pinned and registered memory from before the program's first allocation: a launch, a
// graph or a copy brought its address into a device variable. cudaFree is the only way in which the
// host waits for them.
//
// Only the first program of a process begins before any allocation: each runs in a process of its
// own (seed_runs.py).
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "tests/fuzz/differential/digest.h"
#include "tests/fuzz/differential/features/all.h"
#include "tests/fuzz/differential/features/large_buffers.h"
#include "tests/fuzz/differential/features/reading.h"
#include "tests/fuzz/differential/random.h"
#include "tests/fuzz/differential/running.h"
#include "tests/support/driver_check.h"

namespace spillway::fuzz {
namespace {

constexpr char kKeepKernel[] = "_ZN8spillway4fuzz9KeepEarlyE";
constexpr char kUseKernel[] = "_ZN8spillway4fuzz8UseEarlyE";
constexpr char kVariable[] = "_ZN8spillway4fuzz4keptE";
constexpr std::uint64_t kSlots = 512;
constexpr std::uint64_t kQuickFlops = 2'000'000'000, kSlowFlops = 60'000'000'000;
constexpr std::uint64_t kPageBytes = 4096, kLargestPages = 64, kHaloWords = 512;

std::uint64_t kept[kSlots];  // the device variable: each object has a slot

struct KeepArguments {
  std::uint64_t address = 0;
  std::uint64_t slot = 0;
};
struct UseArguments {
  std::uint64_t slot = 0;
  std::uint64_t distance = 0;
  std::uint64_t bytes = 0;  // of what is kept there
  std::uint64_t other = 0;  // device memory; 0: none
  std::uint64_t other_bytes = 0;
  std::uint64_t reads = 0;  // what is kept, and writes the other; else the other way round
  std::uint64_t seed = 0;
  std::uint64_t flops = 0;
};

template <typename Arguments>
Arguments Load(void* const* arguments) {
  Arguments loaded;
  std::memcpy(&loaded, arguments[0], sizeof loaded);
  return loaded;
}

void Keep(const simulator::LaunchShape&, void* const* arguments) {
  const auto keep = Load<KeepArguments>(arguments);
  kept[keep.slot] = keep.address;
}
simulator::KernelCost KeepCost(const simulator::LaunchShape&, void* const*) { return {0, 0}; }

void Scatter(std::uint64_t to, std::uint64_t bytes, std::uint64_t digest) {
  auto* const out = reinterpret_cast<std::uint8_t*>(to);
  for (std::uint64_t i = 0; i < bytes; ++i) {
    out[i] = static_cast<std::uint8_t>(Scramble(digest + i / 8) >> (i % 8 * 8));
  }
}

void Use(const simulator::LaunchShape&, void* const* arguments) {
  const auto use = Load<UseArguments>(arguments);
  std::uint64_t from = use.other, from_bytes = use.other_bytes, to = kept[use.slot] + use.distance,
                to_bytes = use.bytes;
  if (use.reads != 0) {
    std::swap(from, to);
    std::swap(from_bytes, to_bytes);
  }
  const std::uint64_t digest = FoldWord(kDigestStart, use.seed);
  Scatter(to, to_bytes, FoldBytes(digest, reinterpret_cast<const std::uint8_t*>(from), from_bytes));
}
simulator::KernelCost UseCost(const simulator::LaunchShape&, void* const* arguments) {
  return {Load<UseArguments>(arguments).flops, 0};
}

constexpr simulator::KernelParameter kKeepParameters[] = {{0, sizeof(KeepArguments)}};
constexpr simulator::KernelParameter kUseParameters[] = {{0, sizeof(UseArguments)}};
constexpr simulator::KernelEntry kEntries[] = {{kKeepKernel, Keep, KeepCost, 1, kKeepParameters},
                                               {kUseKernel, Use, UseCost, 1, kUseParameters}};
constexpr simulator::GlobalEntry kVariables[] = {{kVariable, kept, sizeof kept}};

void KeepByLaunch(CUfunction kernel, void** parameters) {
  SPILLWAY_DRIVER_CALL(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
  SPILLWAY_DRIVER_CALL(cuCtxSynchronize());
}

void KeepByGraph(CUfunction kernel, void** parameters) {
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  CUgraphExec executable = nullptr;
  CUDA_KERNEL_NODE_PARAMS params{};
  params.func = kernel;
  params.gridDimX = params.gridDimY = params.gridDimZ = 1;
  params.blockDimX = params.blockDimY = params.blockDimZ = 1;
  params.kernelParams = parameters;
  SPILLWAY_DRIVER_CALL(cuGraphCreate(&graph, 0));
  SPILLWAY_DRIVER_CALL(cuGraphAddKernelNode(&node, graph, nullptr, 0, &params));
  SPILLWAY_DRIVER_CALL(cuGraphInstantiate(&executable, graph, 0));
  SPILLWAY_DRIVER_CALL(cuGraphLaunch(executable, nullptr));
  SPILLWAY_DRIVER_CALL(cuCtxSynchronize());
  SPILLWAY_DRIVER_CALL(cuGraphExecDestroy(executable));
  SPILLWAY_DRIVER_CALL(cuGraphDestroy(graph));
}

void KeepByCopy(const KeepArguments& keep, const Running& running) {
  CUdeviceptr variable = 0;
  SPILLWAY_DRIVER_CALL(cuModuleGetGlobal(&variable, nullptr, running.device.Module(), kVariable));
  SPILLWAY_DRIVER_CALL(
      cuMemcpyHtoD(variable + keep.slot * sizeof keep.address, &keep.address, sizeof keep.address));
}

struct Kept {
  std::uint64_t slot = 0;
  std::uint64_t distance = 0;  // from it to the memory
};

std::uint64_t AddressFor(const View& view, const Slot& slot, std::uint64_t dice) {
  if (dice % 3 == 0) return slot.address + view.offset_bytes;
  return dice % 3 == 1 ? slot.address + slot.bytes
                       : slot.address - 8 * (1 + (dice >> 8) % kHaloWords);
}

std::shared_ptr<void> Show(const Operation& operation, const Running& running) {
  const View& view = operation.names[0];
  const Slot& slot = running.table.slots[view.buffer];
  KeepArguments keep{AddressFor(view, slot, operation.salt >> 16),
                     static_cast<std::uint64_t>(operation.object) % kSlots};
  void* parameters[] = {&keep};
  const CUfunction kernel = running.device.KernelNamed(kKeepKernel);
  const std::uint64_t way = (operation.salt >> 8) % 3;
  if (way == 0) KeepByLaunch(kernel, parameters);
  if (way == 1) KeepByGraph(kernel, parameters);
  if (way == 2) KeepByCopy(keep, running);
  return std::make_shared<Kept>(Kept{keep.slot, slot.address + view.offset_bytes - keep.address});
}

class EarlyFeature : public Feature {
 public:
  const char* Name() const override { return "early"; }
  unsigned PerMille() const override { return 250; }
  bool IsDrawn() const override { return false; }

  // Some programs use it at once: other kernels may be given the memory, and all of them are
  // awaited.
  void Open(Proposer& proposer) const override {
    for (std::uint64_t i = proposer.Dice().Between(1, 2); i > 0; --i) ProposeObject(proposer);
    for (std::uint64_t i = proposer.Dice().Below(4); i > 0; --i) Propose(proposer);
  }

  void Propose(Proposer& proposer) const override {
    const int object = proposer.PickObject();
    if (object == kNone) return;
    for (std::uint64_t i = proposer.Dice().Between(1, 3); i > 0; --i) ProposeWork(proposer, object);
    const View kept_view = proposer.Now().ObjectAt(object).maker.names[0];
    proposer.Add({.kind = Kind::kFreeBarrier});
    if (proposer.Dice().Percent(70)) proposer.Add({.kind = Kind::kHostFold, .in = {kept_view}});
    if (proposer.Dice().Percent(30)) proposer.Add({.kind = Kind::kHostFill, .out = kept_view});
  }

  void Run(const Operation& operation, const Running& running) const override {
    std::shared_ptr<void>& object = running.table.objects[operation.object];
    if (operation.object_use == ObjectUse::kMake) {
      object = Show(operation, running);
    } else if (operation.kind == Kind::kFeatureWork) {
      Launch(operation, *static_cast<const Kept*>(object.get()), running);
    }
  }

  std::span<const simulator::KernelEntry> Kernels() const override { return kEntries; }
  std::span<const simulator::GlobalEntry> Variables() const override { return kVariables; }

 private:
  static void ProposeObject(Proposer& proposer) {
    const AllocForm form =
        proposer.Dice().Percent(50) ? AllocForm::kPinned : AllocForm::kRegistered;
    Operation alloc{.kind = Kind::kAlloc, .form = static_cast<std::uint8_t>(form)};
    alloc.buffer = proposer.NewBuffer();
    alloc.bytes = proposer.Dice().Between(1, kLargestPages) * kPageBytes;
    alloc.cuts_bytes = {0, alloc.bytes / 2};
    if (!proposer.Add(alloc)) return;
    const std::optional<View> view =
        proposer.Choose().PickReadable(alloc.buffer, kLargestWindowBytes);
    if (!view) return;
    proposer.Add({.kind = Kind::kFeatureCall,
                  .object = proposer.NewObject(),
                  .object_use = ObjectUse::kMake,
                  .names = {*view}});
  }

  // Writes what is kept from device memory, or the other way round.
  static void ProposeWork(Proposer& proposer, int object) {
    const View kept_view = proposer.Now().ObjectAt(object).maker.names[0];
    const int other = proposer.Choose().PickBuffer(IsOnDevice);
    if (other != kNone && proposer.Dice().Percent(30)) {
      const std::optional<View> out = proposer.Choose().PickWritable(other, kLargestWindowBytes);
      if (out) AddReading(proposer, object, kept_view, *out);
      return;
    }
    Operation kernel{
        .kind = Kind::kFeatureWork, .on_stream = true, .stream = proposer.Choose().PickStream()};
    kernel.out = kept_view;
    if (other != kNone) {
      if (const auto in = proposer.Choose().PickReadable(other, kLargestWindowBytes))
        kernel.in = {*in};
    }
    kernel.slow = proposer.Dice().Percent(60);
    kernel.object = object;
    kernel.object_use = ObjectUse::kWrite;
    proposer.Add(kernel);
  }

  static void Launch(const Operation& operation, const Kept& what, const Running& running) {
    const bool reads = operation.object_use == ObjectUse::kRead;
    UseArguments use;
    use.slot = what.slot;
    use.distance = what.distance;
    use.bytes = reads ? operation.in[0].bytes : operation.out.bytes;
    use.reads = reads ? 1 : 0;
    if (reads || !operation.in.empty()) {
      const View& other = reads ? operation.out : operation.in[0];
      use.other = running.table.slots[other.buffer].address + other.offset_bytes;
      use.other_bytes = other.bytes;
    }
    use.seed = operation.salt;
    use.flops = operation.slow ? kSlowFlops : kQuickFlops;
    void* parameters[] = {&use};
    LaunchOne(operation, running, kUseKernel, parameters);
  }
};

}  // namespace

const Feature& Early() {
  static const EarlyFeature early;
  return early;
}

}  // namespace spillway::fuzz
