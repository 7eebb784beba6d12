// Kernels reach memory by an address in a device table that one parameter leads to. `pointers` has
// tables that copies made; `structures` has tables that kernels wrote.
#include <memory>
#include <optional>

#include "tests/fuzz/differential/digest.h"
#include "tests/fuzz/differential/features/all.h"
#include "tests/fuzz/differential/features/reading.h"
#include "tests/fuzz/differential/random.h"
#include "tests/fuzz/differential/running.h"
#include "tests/support/driver_check.h"

namespace spillway::fuzz {
namespace {

constexpr char kFollowKernel[] = "_ZN8spillway4fuzz13FollowPointerE";
constexpr char kWriteKernel[] = "_ZN8spillway4fuzz12WritePointerE";
constexpr std::uint64_t kSlowFlops = 20'000'000'000;

struct FollowArguments {
  std::uint64_t table = 0;  // its word leads to the next table, or at last to the memory
  std::uint64_t steps = 0;
  std::uint64_t bytes = 0;  // of the memory, from where the pointer leads to
  std::uint64_t out = 0;    // 0: the memory itself is written
  std::uint64_t out_bytes = 0;
  std::uint64_t seed = 0;
  std::uint64_t flops = 0;
};

void Scatter(std::uint64_t to, std::uint64_t bytes, std::uint64_t digest) {
  auto* const out = reinterpret_cast<std::uint8_t*>(to);
  for (std::uint64_t i = 0; i < bytes; ++i) {
    out[i] = static_cast<std::uint8_t>(Scramble(digest + i / 8) >> (i % 8 * 8));
  }
}

void Follow(const simulator::LaunchShape&, void* const* arguments) {
  const auto& follow = *static_cast<const FollowArguments*>(arguments[0]);
  std::uint64_t place = follow.table;
  for (std::uint64_t i = 0; i < follow.steps; ++i)
    place = *reinterpret_cast<const std::uint64_t*>(place);
  const std::uint64_t digest = FoldWord(kDigestStart, follow.seed);
  if (follow.out == 0) return Scatter(place, follow.bytes, digest);
  Scatter(follow.out, follow.out_bytes,
          FoldBytes(digest, reinterpret_cast<const std::uint8_t*>(place), follow.bytes));
}

simulator::KernelCost FollowCost(const simulator::LaunchShape&, void* const* arguments) {
  return {static_cast<const FollowArguments*>(arguments[0])->flops, 0};
}

void WritePointer(const simulator::LaunchShape&, void* const* arguments) {
  const auto* const words = static_cast<const std::uint64_t*>(arguments[0]);
  *reinterpret_cast<std::uint64_t*>(words[0]) = words[1];
}

simulator::KernelCost WriteCost(const simulator::LaunchShape&, void* const*) { return {0, 0}; }

constexpr simulator::KernelParameter kFollowParameters[] = {{0, sizeof(FollowArguments)}};
constexpr simulator::KernelParameter kWriteParameters[] = {{0, 2 * sizeof(std::uint64_t)}};
constexpr simulator::KernelEntry kFollow[] = {
    {kFollowKernel, Follow, FollowCost, 1, kFollowParameters}};
constexpr simulator::KernelEntry kWrite[] = {
    {kWriteKernel, WritePointer, WriteCost, 1, kWriteParameters}};

// One word each: the second may lead to the first, or have been its source.
struct Tables {
  CUcontext context = nullptr;
  CUdeviceptr first = 0, second = 0;
  CUdeviceptr entry = 0;
  std::uint64_t steps = 1;

  ~Tables() {
    cuCtxSetCurrent(context);
    cuMemFree(first);
    cuMemFree(second);
  }
};

constexpr std::uint64_t kWordBytes = sizeof(std::uint64_t);

void Upload(CUdeviceptr table, std::uint64_t word) {
  SPILLWAY_DRIVER_CALL(cuMemcpyHtoD(table, &word, kWordBytes));
}

class PointersFeature : public Feature {
 public:
  explicit PointersFeature(bool by_kernels) : by_kernels_(by_kernels) {}
  const char* Name() const override { return by_kernels_ ? "structures" : "pointers"; }
  unsigned PerMille() const override { return 120; }

  void Propose(Proposer& proposer) const override {
    const std::uint64_t choice = proposer.Dice().Below(100);
    const int object = proposer.PickObject();
    if (object == kNone || choice < 25)
      return ProposeObjectOver(proposer, kLargestWindowBytes,
                               [](const View& view) { return view.IsDense(); });
    if (choice < 30) {
      proposer.Add({.kind = Kind::kFeatureCall, .object = object, .object_use = ObjectUse::kEnd});
    } else {
      choice < 70 ? ProposeReading(proposer, object, kLargestWindowBytes)
                  : ProposeWrite(proposer, object);
    }
  }

  void Run(const Operation& operation, const Running& running) const override {
    if (operation.object_use == ObjectUse::kMake) {
      running.table.objects[operation.object] = MakeTables(operation, running);
    } else if (operation.kind == Kind::kFeatureWork) {
      Launch(operation, running);
    }
  }

  std::span<const simulator::KernelEntry> Kernels() const override {
    if (by_kernels_) return kWrite;
    return kFollow;
  }

 private:
  static void ProposeWrite(Proposer& proposer, int object) {
    Operation kernel{
        .kind = Kind::kFeatureWork, .on_stream = true, .stream = proposer.Choose().PickStream()};
    kernel.out = proposer.Now().ObjectAt(object).maker.names[0];
    kernel.slow = proposer.Dice().Percent(40);
    kernel.object = object;
    kernel.object_use = ObjectUse::kWrite;
    proposer.Add(kernel);
  }

  void Put(const Running& running, CUdeviceptr table, std::uint64_t word) const {
    if (!by_kernels_) return Upload(table, word);
    std::uint64_t words[] = {table, word};
    void* parameters[] = {words};
    SPILLWAY_DRIVER_CALL(cuLaunchKernel(running.device.KernelNamed(kWriteKernel), 1, 1, 1, 1, 1, 1,
                                        0, nullptr, parameters, nullptr));
    SPILLWAY_DRIVER_CALL(cuCtxSynchronize());
  }

  std::shared_ptr<Tables> MakeTables(const Operation& operation, const Running& running) const {
    const View& view = operation.names[0];
    auto tables = std::make_shared<Tables>();
    tables->context = running.context;
    SPILLWAY_DRIVER_CALL(cuMemAlloc(&tables->first, kWordBytes));
    SPILLWAY_DRIVER_CALL(
        cuMemAlloc(&tables->second, (operation.salt & 1024) != 0 ? kMiB : kWordBytes));
    Put(running, tables->first, running.table.slots[view.buffer].address + view.offset_bytes);
    tables->entry = tables->first;
    if ((operation.salt & 256) != 0) {
      Put(running, tables->second, tables->first);
      tables->entry = tables->second;
      tables->steps = 2;
    } else if ((operation.salt & 512) != 0) {
      SPILLWAY_DRIVER_CALL(cuMemcpyDtoD(tables->second, tables->first, kWordBytes));
      SPILLWAY_DRIVER_CALL(cuMemsetD8(tables->first, 0, kWordBytes));
      SPILLWAY_DRIVER_CALL(cuCtxSynchronize());
      tables->entry = tables->second;
    }
    return tables;
  }

  static void Launch(const Operation& operation, const Running& running) {
    const auto& tables = *static_cast<const Tables*>(running.table.objects[operation.object].get());
    const bool reads = operation.object_use == ObjectUse::kRead;
    FollowArguments follow;
    follow.table = tables.entry;
    follow.steps = tables.steps;
    follow.bytes = reads ? operation.in[0].bytes : operation.out.bytes;
    if (reads) {
      follow.out = running.table.slots[operation.out.buffer].address + operation.out.offset_bytes;
      follow.out_bytes = operation.out.bytes;
    }
    follow.seed = operation.salt;
    follow.flops = operation.slow ? kSlowFlops : 0;
    void* parameters[] = {&follow};
    LaunchOne(operation, running, kFollowKernel, parameters);
  }

  const bool by_kernels_;
};

}  // namespace

const Feature& Pointers() {
  static const PointersFeature pointers(false);
  return pointers;
}

const Feature& Structures() {
  static const PointersFeature structures(true);
  return structures;
}

}  // namespace spillway::fuzz
