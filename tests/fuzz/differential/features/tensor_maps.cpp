// Kernels read tiles of memory that only an opaque map names: a parameter, or a group in device
// memory.
#include <cstring>
#include <memory>
#include <optional>

#include "simulator/kernels/device/tensor_maps.h"
#include "tests/fuzz/differential/digest.h"
#include "tests/fuzz/differential/features/all.h"
#include "tests/fuzz/differential/features/reading.h"
#include "tests/fuzz/differential/random.h"
#include "tests/fuzz/differential/running.h"
#include "tests/support/driver_check.h"

namespace spillway::fuzz {
namespace {

constexpr char kKernel[] = "_ZN8spillway4fuzz9FoldTilesE";
constexpr std::uint64_t kRowBytes = 128;
constexpr std::uint32_t kTileRows = 16;
constexpr std::uint64_t kSlowFlops = 20'000'000'000;

struct TileArguments {
  std::uint64_t maps = 0;  // a group in device memory whose last map counts; 0: the parameter
  std::uint64_t rows = 0;
  std::uint64_t out = 0;
  std::uint64_t out_bytes = 0;
  std::uint64_t seed = 0;
  std::uint64_t flops = 0;
};

constexpr std::size_t kMapsInGroup = 3;

void Fold(const simulator::LaunchShape&, void* const* arguments) {
  TileArguments tile;
  std::memcpy(&tile, arguments[1], sizeof tile);
  const void* map = arguments[0];
  if (tile.maps != 0) map = reinterpret_cast<const CUtensorMap*>(tile.maps) + (kMapsInGroup - 1);
  std::uint64_t digest = FoldWord(kDigestStart, tile.seed);
  for (std::uint64_t row = 0; row < tile.rows; row += kTileRows) {
    std::uint8_t bytes[kRowBytes * kTileRows];
    spillway_tensor_load(bytes, map, 0, row);
    digest = FoldBytes(digest, bytes, sizeof bytes);
  }
  auto* const out = reinterpret_cast<std::uint8_t*>(tile.out);
  for (std::uint64_t i = 0; i < tile.out_bytes; ++i) {
    out[i] = static_cast<std::uint8_t>(Scramble(digest + i / 8) >> (i % 8 * 8));
  }
}

simulator::KernelCost Cost(const simulator::LaunchShape&, void* const* arguments) {
  TileArguments tile;
  std::memcpy(&tile, arguments[1], sizeof tile);
  return {tile.flops, 0};
}

constexpr simulator::KernelParameter kParameters[] = {{0, sizeof(CUtensorMap)},
                                                      {sizeof(CUtensorMap), sizeof(TileArguments)}};
constexpr simulator::KernelEntry kEntries[] = {{kKernel, Fold, Cost, 2, kParameters}};

// A map of whole rows within a view, at the end of a group.
struct Map {
  CUcontext context = nullptr;
  CUtensorMap bytes;
  std::uint64_t rows = 0;
  CUdeviceptr group = 0;

  ~Map() {
    cuCtxSetCurrent(context);
    cuMemFree(group);
  }
};

std::uint64_t FirstByte(const View& view) { return RoundUp(view.offset_bytes, 16); }

std::uint64_t RowsIn(const View& view) {
  const std::uint64_t first = FirstByte(view), end = view.offset_bytes + view.bytes;
  return end > first ? (end - first) / kRowBytes : 0;
}

bool HoldsATile(const View& view) { return RowsIn(view) >= kTileRows; }

void Encode(CUtensorMap* map, std::uint64_t address, std::uint64_t rows) {
  const cuuint64_t sizes[] = {kRowBytes, rows}, strides[] = {kRowBytes};
  const cuuint32_t box[] = {kRowBytes, kTileRows}, steps[] = {1, 1};
  SPILLWAY_DRIVER_CALL(cuTensorMapEncodeTiled(
      map, CU_TENSOR_MAP_DATA_TYPE_UINT8, 2, reinterpret_cast<void*>(address), sizes, strides, box,
      steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
      CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
}

std::shared_ptr<Map> MakeMap(const Operation& operation, const Running& running) {
  const View& view = operation.names[0];
  const std::uint64_t address = running.table.slots[view.buffer].address + FirstByte(view);
  auto map = std::make_shared<Map>();
  map->context = running.context;
  map->rows = RowsIn(view);
  if ((operation.salt & 256) != 0) {
    Encode(&map->bytes, address + 16, map->rows);
    SPILLWAY_DRIVER_CALL(cuTensorMapReplaceAddress(&map->bytes, reinterpret_cast<void*>(address)));
  } else {
    Encode(&map->bytes, address, map->rows);
  }
  CUtensorMap group[kMapsInGroup];
  std::memset(group, 0, sizeof group);
  group[kMapsInGroup - 1] = map->bytes;
  SPILLWAY_DRIVER_CALL(cuMemAlloc(&map->group, sizeof group));
  SPILLWAY_DRIVER_CALL(cuMemcpyHtoD(map->group, group, sizeof group));
  return map;
}

class TensorMapsFeature : public Feature {
 public:
  const char* Name() const override { return "tensor_maps"; }
  unsigned PerMille() const override { return 120; }

  void Propose(Proposer& proposer) const override {
    const std::uint64_t choice = proposer.Dice().Below(100);
    const int object = proposer.PickObject();
    if (object == kNone || choice < 25)
      return ProposeObjectOver(proposer, kLargestWindowBytes, HoldsATile);
    if (choice < 30) {
      proposer.Add({.kind = Kind::kFeatureCall, .object = object, .object_use = ObjectUse::kEnd});
    } else {
      ProposeReading(proposer, object, kLargestWindowBytes);
    }
  }

  void Run(const Operation& operation, const Running& running) const override {
    if (operation.object_use == ObjectUse::kMake) {
      running.table.objects[operation.object] = MakeMap(operation, running);
    } else if (operation.kind == Kind::kFeatureWork) {
      Launch(operation, running);
    }
  }

  std::span<const simulator::KernelEntry> Kernels() const override { return kEntries; }

 private:
  static void Launch(const Operation& operation, const Running& running) {
    auto& map = *static_cast<Map*>(running.table.objects[operation.object].get());
    TileArguments tile;
    CUtensorMap by_value = map.bytes;
    if ((operation.salt & 512) != 0) {
      tile.maps = map.group;
      std::memset(&by_value, 0, sizeof by_value);
    }
    tile.rows = map.rows;
    tile.out = running.table.slots[operation.out.buffer].address + operation.out.offset_bytes;
    tile.out_bytes = operation.out.bytes;
    tile.seed = operation.salt;
    tile.flops = operation.slow ? kSlowFlops : 0;
    void* parameters[] = {&by_value, &tile};
    LaunchOne(operation, running, kKernel, parameters);
  }
};

}  // namespace

const Feature& TensorMaps() {
  static const TensorMapsFeature tensor_maps;
  return tensor_maps;
}

}  // namespace spillway::fuzz
