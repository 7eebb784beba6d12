// Pointers where no call shows them: in a device variable, or in pinned, registered or managed
// memory that kernels read in place. In `tables` a copy or the host has put them there, when the
// object is made or before each launch; in `hidden` a kernel has.
#include <sys/mman.h>

#include <memory>

#include "tests/fuzz/differential/digest.h"
#include "tests/fuzz/differential/features/all.h"
#include "tests/fuzz/differential/features/reading.h"
#include "tests/fuzz/differential/random.h"
#include "tests/fuzz/differential/running.h"
#include "tests/support/driver_check.h"

namespace spillway::fuzz {
namespace {

constexpr char kFollowKernel[] = "_ZN8spillway4fuzz12FollowHiddenE";
constexpr char kSetKernel[] = "_ZN8spillway4fuzz9SetHiddenE";
constexpr char kVariable[] = "_ZN8spillway4fuzz6hiddenE";
constexpr std::uint64_t kSlowFlops = 20'000'000'000;
constexpr std::uint64_t kWordBytes = sizeof(std::uint64_t);
constexpr std::uint64_t kSlots = 512;
constexpr std::uint64_t kPageBytes = 4096;
constexpr std::uint64_t kLargeBytes = 2 * kMiB;

std::uint64_t hidden[kSlots];  // the device variable: each object has a slot

struct FollowArguments {
  std::uint64_t table = 0;  // 0: the slot leads to the memory
  std::uint64_t slot = 0;
  std::uint64_t bytes = 0;  // of the memory
  std::uint64_t out = 0;    // 0: the memory itself is written
  std::uint64_t out_bytes = 0;
  std::uint64_t seed = 0;
  std::uint64_t flops = 0;
};
struct SetArguments {
  std::uint64_t table = 0;
  std::uint64_t slot = 0;
  std::uint64_t address = 0;
};

std::uint64_t& Place(std::uint64_t table, std::uint64_t slot) {
  return table != 0 ? *reinterpret_cast<std::uint64_t*>(table) : hidden[slot];
}

void Scatter(std::uint64_t to, std::uint64_t bytes, std::uint64_t digest) {
  auto* const out = reinterpret_cast<std::uint8_t*>(to);
  for (std::uint64_t i = 0; i < bytes; ++i) {
    out[i] = static_cast<std::uint8_t>(Scramble(digest + i / 8) >> (i % 8 * 8));
  }
}

// The output depends on the old bytes: a lost write shows.
void Follow(const simulator::LaunchShape&, void* const* arguments) {
  const auto& follow = *static_cast<const FollowArguments*>(arguments[0]);
  const std::uint64_t place = Place(follow.table, follow.slot);
  const std::uint64_t digest =
      FoldBytes(FoldWord(kDigestStart, follow.seed), reinterpret_cast<const std::uint8_t*>(place),
                follow.bytes);
  if (follow.out == 0) return Scatter(place, follow.bytes, digest);
  Scatter(follow.out, follow.out_bytes, digest);
}

simulator::KernelCost FollowCost(const simulator::LaunchShape&, void* const* arguments) {
  return {static_cast<const FollowArguments*>(arguments[0])->flops, 0};
}

void Set(const simulator::LaunchShape&, void* const* arguments) {
  const auto& set = *static_cast<const SetArguments*>(arguments[0]);
  Place(set.table, set.slot) = set.address;
}

simulator::KernelCost SetCost(const simulator::LaunchShape&, void* const*) { return {0, 0}; }

constexpr simulator::KernelParameter kFollowParameters[] = {{0, sizeof(FollowArguments)}};
constexpr simulator::KernelParameter kSetParameters[] = {{0, sizeof(SetArguments)}};
constexpr simulator::KernelEntry kFollow[] = {
    {kFollowKernel, Follow, FollowCost, 1, kFollowParameters}};
constexpr simulator::KernelEntry kSet[] = {{kSetKernel, Set, SetCost, 1, kSetParameters}};
constexpr simulator::GlobalEntry kVariables[] = {{kVariable, hidden, sizeof hidden}};

enum class Holder : std::uint8_t { kVariable, kPinned, kManaged, kRegistered };
enum class Writer : std::uint8_t { kHost, kHostEachTime, kCopy, kKernel };

struct Hiding {
  CUcontext context = nullptr;
  Holder holder = Holder::kVariable;
  Writer writer = Writer::kKernel;
  void* memory = nullptr;
  std::uint64_t memory_bytes = 0;
  std::uint64_t table = 0;
  std::uint64_t slot = 0;
  std::uint64_t target = 0;

  ~Hiding() {
    cuCtxSetCurrent(context);
    if (holder == Holder::kPinned) cuMemFreeHost(memory);
    if (holder == Holder::kManaged) cuMemFree(reinterpret_cast<CUdeviceptr>(memory));
    if (holder != Holder::kRegistered) return;
    cuMemHostUnregister(memory);
    munmap(memory, memory_bytes);
  }
};

void TakeMemory(Hiding& hiding) {
  switch (hiding.holder) {
    case Holder::kVariable:
      return;
    case Holder::kPinned:
      SPILLWAY_DRIVER_CALL(
          cuMemHostAlloc(&hiding.memory, hiding.memory_bytes, CU_MEMHOSTALLOC_DEVICEMAP));
      return;
    case Holder::kManaged: {
      CUdeviceptr address = 0;
      SPILLWAY_DRIVER_CALL(cuMemAllocManaged(&address, hiding.memory_bytes, CU_MEM_ATTACH_GLOBAL));
      hiding.memory = reinterpret_cast<void*>(address);
      return;
    }
    case Holder::kRegistered:
      hiding.memory = mmap(nullptr, hiding.memory_bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      SPILLWAY_DRIVER_CALL(
          cuMemHostRegister(hiding.memory, hiding.memory_bytes, CU_MEMHOSTREGISTER_DEVICEMAP));
  }
}

class HiddenFeature : public Feature {
 public:
  explicit HiddenFeature(bool by_kernels) : by_kernels_(by_kernels) {}
  const char* Name() const override { return by_kernels_ ? "hidden" : "tables"; }
  unsigned PerMille() const override { return 160; }
  bool IsDrawn() const override { return false; }

  void Propose(Proposer& proposer) const override {
    const std::uint64_t choice = proposer.Dice().Below(100);
    const int object = proposer.PickObject();
    if (object == kNone || choice < 20)
      return ProposeObjectOver(proposer, kLargestWindowBytes,
                               [](const View& view) { return view.IsDense(); });
    if (choice < 25) {
      proposer.Add({.kind = Kind::kFeatureCall, .object = object, .object_use = ObjectUse::kEnd});
    } else {
      choice < 55 ? ProposeReading(proposer, object, kLargestWindowBytes)
                  : ProposeWrite(proposer, object);
    }
  }

  void Run(const Operation& operation, const Running& running) const override {
    if (operation.object_use == ObjectUse::kMake) {
      running.table.objects[operation.object] = Hide(operation, running);
    } else if (operation.kind == Kind::kFeatureWork) {
      Launch(operation, running);
    }
  }

  std::span<const simulator::KernelEntry> Kernels() const override {
    if (by_kernels_) return kSet;
    return kFollow;
  }
  std::span<const simulator::GlobalEntry> Variables() const override {
    if (by_kernels_) return {};
    return kVariables;
  }

 private:
  static void ProposeWrite(Proposer& proposer, int object) {
    Operation kernel{
        .kind = Kind::kFeatureWork, .on_stream = true, .stream = proposer.Choose().PickStream()};
    kernel.out = proposer.Now().ObjectAt(object).maker.names[0];
    kernel.in = {kernel.out};
    kernel.slow = proposer.Dice().Percent(40);
    kernel.object = object;
    kernel.object_use = ObjectUse::kWrite;
    proposer.Add(kernel);
  }

  static void Copy(const Hiding& hiding, const Running& running) {
    if (hiding.table == 0) {
      CUdeviceptr variable = 0;
      SPILLWAY_DRIVER_CALL(
          cuModuleGetGlobal(&variable, nullptr, running.device.Module(), kVariable));
      SPILLWAY_DRIVER_CALL(
          cuMemcpyHtoD(variable + hiding.slot * kWordBytes, &hiding.target, kWordBytes));
      return;
    }
    CUdeviceptr cell = 0;
    SPILLWAY_DRIVER_CALL(cuMemAlloc(&cell, kWordBytes));
    SPILLWAY_DRIVER_CALL(cuMemcpyHtoD(cell, &hiding.target, kWordBytes));
    SPILLWAY_DRIVER_CALL(cuMemcpyDtoH(reinterpret_cast<void*>(hiding.table), cell, kWordBytes));
    SPILLWAY_DRIVER_CALL(cuMemFree(cell));
  }

  static void Write(const Hiding& hiding, const Running& running) {
    if (hiding.writer == Writer::kCopy) return Copy(hiding, running);
    if (hiding.writer != Writer::kKernel) {
      *reinterpret_cast<std::uint64_t*>(hiding.table) = hiding.target;
      return;
    }
    SetArguments set{hiding.table, hiding.slot, hiding.target};
    void* parameters[] = {&set};
    SPILLWAY_DRIVER_CALL(cuLaunchKernel(running.device.KernelNamed(kSetKernel), 1, 1, 1, 1, 1, 1, 0,
                                        nullptr, parameters, nullptr));
    SPILLWAY_DRIVER_CALL(cuCtxSynchronize());
  }

  Writer WriterOf(Holder holder, std::uint64_t salt) const {
    if (by_kernels_) return Writer::kKernel;
    if (holder == Holder::kVariable)
      return Writer::kCopy;  // programs do not write device variables themselves
    return static_cast<Writer>(salt % 3);
  }

  std::shared_ptr<Hiding> Hide(const Operation& operation, const Running& running) const {
    auto hiding = std::make_shared<Hiding>();
    hiding->context = running.context;
    hiding->holder = static_cast<Holder>((operation.salt >> 8) % 4);
    hiding->writer = WriterOf(hiding->holder, operation.salt >> 10);
    const bool is_large = (operation.salt >> 14) % 16 == 0;
    hiding->memory_bytes = is_large ? kLargeBytes : kPageBytes;
    hiding->slot = static_cast<std::uint64_t>(operation.object) % kSlots;
    const View& view = operation.names[0];
    hiding->target = running.table.slots[view.buffer].address + view.offset_bytes;
    TakeMemory(*hiding);
    const std::uint64_t offset =
        (operation.salt >> 18) % (hiding->memory_bytes / kWordBytes) * kWordBytes;
    if (hiding->memory != nullptr)
      hiding->table = reinterpret_cast<std::uint64_t>(hiding->memory) + offset;
    Write(*hiding, running);
    return hiding;
  }

  static void Launch(const Operation& operation, const Running& running) {
    const auto& hiding = *static_cast<const Hiding*>(running.table.objects[operation.object].get());
    if (hiding.writer == Writer::kHostEachTime) Write(hiding, running);
    const bool reads = operation.object_use == ObjectUse::kRead;
    FollowArguments follow;
    follow.table = hiding.table;
    follow.slot = hiding.slot;
    follow.bytes = operation.in[0].bytes;
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

const Feature& Hidden() {
  static const HiddenFeature hidden_by_kernels(true);
  return hidden_by_kernels;
}

const Feature& Tables() {
  static const HiddenFeature tables(false);
  return tables;
}

}  // namespace spillway::fuzz
