// Kernels get an address beside the memory that they use, or one in an unusual form: the end of an
// array, a place before its beginning, an address in a packed struct, in two halves, or found in
// memory. `beside` has tables that copies and the host made; `strays` those that a kernel has
// written.
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "tests/fuzz/differential/digest.h"
#include "tests/fuzz/differential/features/all.h"
#include "tests/fuzz/differential/features/reading.h"
#include "tests/fuzz/differential/random.h"
#include "tests/fuzz/differential/running.h"
#include "tests/support/driver_check.h"

namespace spillway::fuzz {
namespace {

constexpr char kAddressKernel[] = "_ZN8spillway4fuzz14ReachByAddressE";
constexpr char kPackedKernel[] = "_ZN8spillway4fuzz13ReachByPackedE";
constexpr char kHalvesKernel[] = "_ZN8spillway4fuzz13ReachByHalvesE";
constexpr char kTableKernel[] = "_ZN8spillway4fuzz12ReachByTableE";
constexpr char kPutKernel[] = "_ZN8spillway4fuzz8PutStrayE";
constexpr std::uint64_t kSlowFlops = 20'000'000'000;
constexpr std::uint64_t kWordBytes = sizeof(std::uint64_t);
constexpr std::uint64_t kPageBytes = 4096;
constexpr std::uint64_t kLargestBytes = 8 * kMiB;  // of the memory that is used
constexpr std::uint64_t kHaloWords = 512;
constexpr std::uint64_t kChunkWords = kChunkBytes / kWordBytes;

struct Reach {
  std::uint64_t distance = 0;
  std::uint64_t table_distance = 0;  // from what is given to the word that holds the address
  std::uint64_t bytes = 0;
  std::uint64_t out = 0;  // 0: the memory itself is written
  std::uint64_t out_bytes = 0;
  std::uint64_t seed = 0;
  std::uint64_t flops = 0;
};

struct [[gnu::packed]] Packed {
  char kind;
  std::uint64_t address;
  short rest;
};

void Scatter(std::uint64_t to, std::uint64_t bytes, std::uint64_t digest) {
  auto* const out = reinterpret_cast<std::uint8_t*>(to);
  for (std::uint64_t i = 0; i < bytes; ++i) {
    out[i] = static_cast<std::uint8_t>(Scramble(digest + i / 8) >> (i % 8 * 8));
  }
}

// The output depends on the old bytes: a lost write shows.
void Go(std::uint64_t address, const Reach& reach) {
  const std::uint64_t place = address + reach.distance;
  const std::uint64_t digest = FoldBytes(FoldWord(kDigestStart, reach.seed),
                                         reinterpret_cast<const std::uint8_t*>(place), reach.bytes);
  if (reach.out == 0) return Scatter(place, reach.bytes, digest);
  Scatter(reach.out, reach.out_bytes, digest);
}

template <typename Argument>
Argument Load(const void* argument) {
  Argument loaded;
  std::memcpy(&loaded, argument, sizeof loaded);
  return loaded;
}

void ByAddress(const simulator::LaunchShape&, void* const* arguments) {
  Go(Load<std::uint64_t>(arguments[0]), Load<Reach>(arguments[1]));
}
void ByPacked(const simulator::LaunchShape&, void* const* arguments) {
  Go(Load<Packed>(arguments[0]).address, Load<Reach>(arguments[1]));
}
void ByHalves(const simulator::LaunchShape&, void* const* arguments) {
  const std::uint64_t upper = Load<std::uint32_t>(arguments[1]);
  Go(upper << 32 | Load<std::uint32_t>(arguments[0]), Load<Reach>(arguments[2]));
}
void ByTable(const simulator::LaunchShape&, void* const* arguments) {
  const auto reach = Load<Reach>(arguments[1]);
  const std::uint64_t place = Load<std::uint64_t>(arguments[0]) + reach.table_distance;
  Go(*reinterpret_cast<const std::uint64_t*>(place), reach);
}
void Put(const simulator::LaunchShape&, void* const* arguments) {
  *Load<std::uint64_t*>(arguments[0]) = Load<std::uint64_t>(arguments[1]);
}

simulator::KernelCost Cost(const simulator::LaunchShape&, void* const* arguments) {
  return {Load<Reach>(arguments[1]).flops, 0};
}
simulator::KernelCost HalvesCost(const simulator::LaunchShape&, void* const* arguments) {
  return {Load<Reach>(arguments[2]).flops, 0};
}
simulator::KernelCost PutCost(const simulator::LaunchShape&, void* const*) { return {0, 0}; }

constexpr simulator::KernelParameter kAddressLayout[] = {{0, 8}, {8, sizeof(Reach)}};
constexpr simulator::KernelParameter kPackedLayout[] = {{0, sizeof(Packed)}, {16, sizeof(Reach)}};
constexpr simulator::KernelParameter kHalvesLayout[] = {{0, 4}, {4, 4}, {8, sizeof(Reach)}};
constexpr simulator::KernelParameter kPutLayout[] = {{0, 8}, {8, 8}};
constexpr simulator::KernelEntry kReachEntries[] = {
    {kTableKernel, ByTable, Cost, 2, kAddressLayout},
    {kAddressKernel, ByAddress, Cost, 2, kAddressLayout},
    {kPackedKernel, ByPacked, Cost, 2, kPackedLayout},
    {kHalvesKernel, ByHalves, HalvesCost, 3, kHalvesLayout}};
constexpr simulator::KernelEntry kPutEntry[] = {{kPutKernel, Put, PutCost, 2, kPutLayout}};

// Up to two megabytes away, which is as near as Spillway puts another allocation.
std::uint64_t AddressBeside(const Slot& slot, std::uint64_t exact, std::uint64_t dice) {
  const std::uint64_t words = dice >> 8;
  switch (dice % 5) {
    case 0:
      return exact;
    case 1:
      return slot.address + slot.bytes;
    case 2:
      return slot.address - kWordBytes * (1 + words % kHaloWords);
    case 3:
      return slot.address - kWordBytes * (1 + words % kChunkWords);
    default:
      return slot.address + RoundUp(slot.bytes, kChunkBytes) + kWordBytes * (words % kChunkWords);
  }
}

// An address and its distance to the view.
struct Way {
  std::uint64_t address = 0;
  std::uint64_t distance = 0;
};
Way WayTo(const View& view, const Running& running, std::uint64_t dice) {
  const Slot& slot = running.table.slots[view.buffer];
  const std::uint64_t exact = slot.address + view.offset_bytes;
  const std::uint64_t address = AddressBeside(slot, exact, dice);
  return {address, exact - address};
}

struct Lead {
  CUcontext context = nullptr;
  Way way;
  CUdeviceptr memory = 0;
  void* pinned = nullptr;

  std::uint64_t At() const {
    return pinned != nullptr ? reinterpret_cast<std::uint64_t>(pinned) : memory;
  }
  // Its address, or a place beside the page. A small allocation has neighbours, so it gets no such
  // place.
  std::uint64_t Given(std::uint64_t dice) const {
    if (pinned == nullptr || dice % 3 == 0) return At();
    return dice % 3 == 1 ? At() + kPageBytes : At() - kWordBytes * (1 + (dice >> 8) % kHaloWords);
  }
  ~Lead() {
    cuCtxSetCurrent(context);
    if (memory != 0) cuMemFree(memory);
    if (pinned != nullptr) cuMemFreeHost(pinned);
  }
};

void PutByKernel(Lead& lead, const Running& running) {
  SPILLWAY_DRIVER_CALL(cuMemAlloc(&lead.memory, kPageBytes));
  void* parameters[] = {&lead.memory, &lead.way.address};
  SPILLWAY_DRIVER_CALL(cuLaunchKernel(running.device.KernelNamed(kPutKernel), 1, 1, 1, 1, 1, 1, 0,
                                      nullptr, parameters, nullptr));
  SPILLWAY_DRIVER_CALL(cuCtxSynchronize());
}

void PutByHost(Lead& lead) {
  SPILLWAY_DRIVER_CALL(cuMemHostAlloc(&lead.pinned, kPageBytes, CU_MEMHOSTALLOC_DEVICEMAP));
  *static_cast<std::uint64_t*>(lead.pinned) = lead.way.address;
}

void PutByCopy(Lead& lead, bool twice) {
  CUdeviceptr source = 0;
  SPILLWAY_DRIVER_CALL(cuMemAlloc(&lead.memory, kPageBytes));
  SPILLWAY_DRIVER_CALL(cuMemcpyHtoD(lead.memory, &lead.way.address, kWordBytes));
  if (!twice) return;
  SPILLWAY_DRIVER_CALL(cuMemAlloc(&source, kPageBytes));
  std::swap(lead.memory, source);
  SPILLWAY_DRIVER_CALL(cuMemcpyDtoD(lead.memory, source, kWordBytes));
  SPILLWAY_DRIVER_CALL(cuMemFree(source));
}

class Parameters {
 public:
  template <typename Parameter>
  void Add(std::size_t offset, const Parameter& parameter) {
    size_bytes_ = offset + sizeof parameter;
    std::memcpy(buffer_ + offset, &parameter, sizeof parameter);
    each_[count_++] = buffer_ + offset;
  }
  // One by one, or all in one buffer.
  void Launch(const char* kernel, const Operation& operation, const Running& running) {
    void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer_, CU_LAUNCH_PARAM_BUFFER_SIZE,
                     &size_bytes_, CU_LAUNCH_PARAM_END};
    const bool is_buffer = (operation.salt & 32) != 0;
    SPILLWAY_DRIVER_CALL(cuLaunchKernel(running.device.KernelNamed(kernel), 1, 1, 1, 1, 1, 1, 0,
                                        running.table.StreamOf(operation),
                                        is_buffer ? nullptr : each_, is_buffer ? extra : nullptr));
  }

 private:
  alignas(8) std::byte buffer_[2 * kWordBytes + sizeof(Reach)] = {};
  void* each_[3] = {};
  std::size_t count_ = 0;
  std::size_t size_bytes_ = 0;
};

class BesideFeature : public Feature {
 public:
  explicit BesideFeature(bool by_kernels) : by_kernels_(by_kernels) {}
  const char* Name() const override { return by_kernels_ ? "strays" : "beside"; }
  unsigned PerMille() const override { return 200; }
  bool IsDrawn() const override { return false; }

  void Propose(Proposer& proposer) const override {
    const std::uint64_t choice = proposer.Dice().Below(100);
    const int object = proposer.PickObject();
    if (object == kNone || choice < 20) return ProposeObject(proposer);
    if (choice < 25) {
      proposer.Add({.kind = Kind::kFeatureCall, .object = object, .object_use = ObjectUse::kEnd});
    } else {
      choice < 60 ? ProposeReading(proposer, object, kLargestWindowBytes)
                  : ProposeWrite(proposer, object);
    }
  }

  void Run(const Operation& operation, const Running& running) const override {
    if (operation.object_use == ObjectUse::kMake) {
      running.table.objects[operation.object] = MakeLead(operation, running);
    } else if (operation.kind == Kind::kFeatureWork) {
      Launch(operation, running);
    }
  }

  std::span<const simulator::KernelEntry> Kernels() const override {
    if (by_kernels_) return kPutEntry;
    return kReachEntries;
  }

 private:
  // Over a smaller range: an address beside it may bring another one, too.
  static void ProposeObject(Proposer& proposer) {
    const int buffer = proposer.Choose().PickBuffer([](const Buffer& b) {
      return !b.InHostMemory() && b.bytes > kMiB && b.bytes <= kLargestBytes;
    });
    if (buffer == kNone) return;
    const std::optional<View> view = proposer.Choose().PickReadable(buffer, kLargestWindowBytes);
    if (!view) return;
    proposer.Add({.kind = Kind::kFeatureCall,
                  .object = proposer.NewObject(),
                  .object_use = ObjectUse::kMake,
                  .names = {*view}});
  }

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

  std::shared_ptr<Lead> MakeLead(const Operation& operation, const Running& running) const {
    auto lead = std::make_shared<Lead>();
    lead->context = running.context;
    lead->way = WayTo(operation.names[0], running, operation.salt >> 16);
    const std::uint64_t holder = (operation.salt >> 8) % 3;
    if (by_kernels_) {
      PutByKernel(*lead, running);
    } else {
      holder == 0 ? PutByHost(*lead) : PutByCopy(*lead, holder == 1);
    }
    return lead;
  }

  static Reach ReachOf(const Operation& operation, const Running& running) {
    Reach reach;
    reach.bytes = operation.in[0].bytes;
    if (operation.object_use == ObjectUse::kRead) {
      reach.out = running.table.slots[operation.out.buffer].address + operation.out.offset_bytes;
      reach.out_bytes = operation.out.bytes;
    }
    reach.seed = operation.salt;
    reach.flops = operation.slow ? kSlowFlops : 0;
    return reach;
  }

  void Launch(const Operation& operation, const Running& running) const {
    const auto& lead = *static_cast<const Lead*>(running.table.objects[operation.object].get());
    Reach reach = ReachOf(operation, running);
    const Way way = WayTo(operation.in[0], running, operation.salt >> 16);
    reach.distance = way.distance;
    Parameters parameters;
    const std::uint64_t choice = by_kernels_ ? 0 : (operation.salt >> 8) % 4;
    if (choice == 0) {
      const std::uint64_t given = lead.Given(operation.salt >> 16);
      reach.distance = lead.way.distance;
      reach.table_distance = lead.At() - given;
      parameters.Add(0, given);
    } else if (choice == 1) {
      parameters.Add(0, way.address);
    } else if (choice == 2) {
      parameters.Add(0, Packed{1, way.address, 2});
    } else {
      parameters.Add(0, static_cast<std::uint32_t>(way.address));
      parameters.Add(4, static_cast<std::uint32_t>(way.address >> 32));
    }
    parameters.Add(choice == 2 ? 16 : 8, reach);
    parameters.Launch(kReachEntries[choice].name, operation, running);
  }

  const bool by_kernels_;
};

}  // namespace

const Feature& Beside() {
  static const BesideFeature beside(false);
  return beside;
}

const Feature& Strays() {
  static const BesideFeature strays(true);
  return strays;
}

}  // namespace spillway::fuzz
