// Memory that the program makes and maps itself (cuMemCreate): in one piece, or in several next to
// each other, of which a kernel is given one address. At times it is mapped anew at its addresses,
// with the same handles or with others, as programs do that sleep.
#include <vector>

#include "tests/fuzz/differential/features/all.h"
#include "tests/fuzz/differential/features/large_buffers.h"
#include "tests/fuzz/differential/running.h"
#include "tests/support/driver_check.h"

namespace spillway::fuzz {
namespace {

constexpr std::uint64_t kGranuleBytes = 2 * kMiB;
constexpr std::uint64_t kMostGranules = 5;

class MappedMemory {
 public:
  MappedMemory(std::uint64_t bytes, std::uint64_t salt)
      : bytes_(bytes),
        kind_(salt % 2 ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : CU_MEM_HANDLE_TYPE_NONE) {
    const std::uint64_t pieces = salt / 2 % 3 ? 1 : 2;
    const std::uint64_t first_bytes =
        pieces == 1 ? bytes : std::max(bytes / kGranuleBytes / 2, std::uint64_t{1}) * kGranuleBytes;
    SPILLWAY_DRIVER_CALL(cuMemAddressReserve(&base_, bytes, 0, 0, 0));
    for (std::uint64_t at = 0; at < bytes; at += pieces_.back()) {
      pieces_.push_back(at == 0 ? first_bytes : bytes - first_bytes);
      handles_.push_back(Made(pieces_.back()));
    }
    Map();
  }
  MappedMemory(const MappedMemory&) = delete;
  MappedMemory& operator=(const MappedMemory&) = delete;
  ~MappedMemory() {
    cuMemUnmap(base_, bytes_);
    for (CUmemGenericAllocationHandle handle : handles_) cuMemRelease(handle);
    cuMemAddressFree(base_, bytes_);
  }

  CUdeviceptr base() const { return base_; }

  void MapAgain() {
    SPILLWAY_DRIVER_CALL(cuMemUnmap(base_, bytes_));
    Map();
  }
  void Sleep() {
    std::vector<std::uint8_t> saved(bytes_);
    SPILLWAY_DRIVER_CALL(cuMemcpyDtoH(saved.data(), base_, bytes_));
    SPILLWAY_DRIVER_CALL(cuMemUnmap(base_, bytes_));
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
      SPILLWAY_DRIVER_CALL(cuMemRelease(handles_[i]));
      handles_[i] = Made(pieces_[i]);
    }
    Map();
    SPILLWAY_DRIVER_CALL(cuMemcpyHtoD(base_, saved.data(), bytes_));
  }

 private:
  CUmemGenericAllocationHandle Made(std::uint64_t bytes) const {
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.requestedHandleTypes = kind_;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    CUmemGenericAllocationHandle handle = 0;
    SPILLWAY_DRIVER_CALL(cuMemCreate(&handle, bytes, &properties, 0));
    return handle;
  }
  void Map() const {
    std::uint64_t at = 0;
    for (std::size_t i = 0; i < pieces_.size(); at += pieces_[i++])
      SPILLWAY_DRIVER_CALL(cuMemMap(base_ + at, pieces_[i], 0, handles_[i], 0));
    CUmemAccessDesc access{};
    access.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    SPILLWAY_DRIVER_CALL(cuMemSetAccess(base_, bytes_, &access, 1));
  }

  const std::uint64_t bytes_;
  const CUmemAllocationHandleType kind_;
  CUdeviceptr base_ = 0;
  std::vector<std::uint64_t> pieces_;  // bytes of each
  std::vector<CUmemGenericAllocationHandle> handles_;
};

class MappingsFeature : public Feature {
 public:
  const char* Name() const override { return "mappings"; }
  unsigned PerMille() const override { return 120; }
  bool IsDrawn() const override { return false; }

  void Propose(Proposer& proposer) const override {
    const int buffer = proposer.Choose().PickBuffer([](const Buffer& b) { return IsOwn(b); });
    const std::uint64_t choice = proposer.Dice().Below(100);
    if (buffer == kNone || choice < 30) return ProposeMemory(proposer);
    if (choice < 60 && proposer.Now().At(buffer).IsWholeInitialised())
      proposer.Add({.kind = Kind::kFeatureCall, .out = Whole(proposer, buffer)});
    else
      ProposeUse(proposer, buffer, 50);
  }

  void Run(const Operation& operation, const Running& running) const override {
    if (operation.kind == Kind::kFree) return;
    if (operation.kind == Kind::kAlloc) {
      Slot& slot = running.table.slots[operation.buffer];
      const auto memory = std::make_shared<MappedMemory>(operation.bytes, operation.salt);
      slot.address = memory->base();
      slot.keeper = memory;
      return;
    }
    const Slot& slot = running.table.slots[operation.out.buffer];
    auto& memory = *static_cast<MappedMemory*>(slot.keeper.get());
    operation.salt % 2 ? memory.MapAgain() : memory.Sleep();
  }

 private:
  static bool IsOwn(const Buffer& buffer) { return buffer.feature == FeatureNamed("mappings"); }

  static void ProposeMemory(Proposer& proposer) {
    Operation alloc{.kind = Kind::kAlloc, .form = static_cast<std::uint8_t>(AllocForm::kFeature)};
    alloc.buffer = proposer.NewBuffer();
    alloc.bytes = proposer.Dice().Between(1, kMostGranules) * kGranuleBytes;
    alloc.cuts_bytes = proposer.Choose().Cuts(alloc.bytes);
    const int buffer = alloc.buffer;
    if (!proposer.Add(alloc)) return;
    Operation fill{.kind = Kind::kFill, .stream = kDefaultStream};
    if (proposer.Choose().PlaceFill(fill, buffer)) proposer.Add(fill);
  }
};

}  // namespace

const Feature& Mappings() {
  static const MappingsFeature mappings;
  return mappings;
}

}  // namespace spillway::fuzz
