#include "interposer/entry/tensor_lists.h"

#include <string_view>

namespace spillway::entry {
namespace {

constexpr std::int64_t kChunkElements = 65536;
constexpr std::size_t kMostDepth = 5;
constexpr std::size_t kWord = sizeof(CUdeviceptr);

// What differs between CUDA 13 and earlier: the space for parameters.
struct Space {
  std::size_t entries[kMostDepth], entries_with_scalars[kMostDepth];
  std::size_t entries_with_wide_scalars[2];  // complex<double>
  std::size_t blocks, index_bytes;
};
constexpr Space kSpaces[] = {
    {{770, 448, 336, 252, 210}, {672, 448, 336, 252, 210}, {504, 420}, 2240, 2},
    {{110, 64, 48, 36, 30}, {96, 64, 48, 36, 30}, {72, 60}, 320, 1},
};
constexpr std::size_t kWideScalarBytes = 16;
constexpr std::size_t kScalarBytes[] = {1, 2, 4, 8, kWideScalarBytes};

constexpr std::size_t RoundUp(std::size_t bytes, std::size_t to) {
  return (bytes + to - 1) / to * to;
}

// Offsets are in bytes.
struct Layout {
  std::size_t depth, entries, elements, steps, blocks_to_tensors, blocks_to_chunks;
  std::size_t blocks, index_bytes, size_bytes;
};

struct Kind {
  std::size_t scalar_bytes = 0;  // 0: no scalars
  bool has_steps = false;
  bool has_start = true;  // an int at the end
};

constexpr Layout LayoutOf(const Space& space, std::size_t depth, std::size_t entries, Kind kind) {
  Layout it{};
  it.depth = depth;
  it.entries = entries;
  it.blocks = space.blocks;
  it.index_bytes = space.index_bytes;
  it.elements = depth * entries * kWord;
  const std::size_t behind_elements = it.elements + entries * kWord;
  it.steps = kind.has_steps ? behind_elements : 0;
  it.blocks_to_tensors =
      behind_elements + entries * kind.scalar_bytes + (kind.has_steps ? entries * kWord : 0);
  it.blocks_to_chunks =
      RoundUp(it.blocks_to_tensors + it.blocks * it.index_bytes, sizeof(std::int32_t));
  const std::size_t end =
      it.blocks_to_chunks + it.blocks * sizeof(std::int32_t) + (kind.has_start ? 4 : 0);
  it.size_bytes = RoundUp(end, kind.scalar_bytes == kWideScalarBytes ? kWideScalarBytes : kWord);
  return it;
}

template <class T>
T At(const void* data, std::size_t offset) {
  T value;
  std::memcpy(&value, static_cast<const char*>(data) + offset, sizeof value);
  return value;
}

std::size_t TensorOf(const Layout& layout, const void* data, unsigned block) {
  const std::size_t offset = layout.blocks_to_tensors + block * layout.index_bytes;
  return layout.index_bytes == 1 ? At<std::uint8_t>(data, offset) : At<std::uint16_t>(data, offset);
}

std::int32_t ChunkOf(const Layout& layout, const void* data, unsigned block) {
  return At<std::int32_t>(data, layout.blocks_to_chunks + block * sizeof(std::int32_t));
}

std::int64_t ChunksOf(const Layout& layout, const void* data, std::size_t tensor) {
  const auto elements = At<std::int64_t>(data, layout.elements + tensor * kWord);
  return elements / kChunkElements + (elements % kChunkElements != 0);
}

// The number of tensors that the blocks take; 0: the content contradicts the layout. The first
// tensor may have begun in an earlier launch, and the last may end in a later one.
std::size_t TensorsTaken(const Layout& layout, const void* data, unsigned blocks) {
  std::size_t tensor = 0;
  std::int64_t next_chunk = blocks > 0 ? ChunkOf(layout, data, 0) : -1;
  if (blocks == 0 || blocks > layout.blocks || next_chunk < 0) return 0;
  for (unsigned block = 0; block < blocks; ++block, ++next_chunk) {
    const bool is_over = next_chunk == ChunksOf(layout, data, tensor);
    if (is_over) next_chunk = 0;
    tensor += is_over;
    if (tensor >= layout.entries || next_chunk >= ChunksOf(layout, data, tensor)) return 0;
    if (TensorOf(layout, data, block) != tensor || ChunkOf(layout, data, block) != next_chunk)
      return 0;
  }
  return tensor + 1;
}

std::optional<UsedTensorLists> Confirmed(const Layout& layout, const void* data,
                                         std::size_t size_bytes, unsigned blocks) {
  const std::size_t used = layout.size_bytes == size_bytes ? TensorsTaken(layout, data, blocks) : 0;
  if (used == 0) return {};
  return UsedTensorLists{layout.depth, layout.entries, used, layout.steps};
}

std::size_t EntriesWithScalars(const Space& space, std::size_t depth, std::size_t scalar_bytes) {
  const bool is_wide = scalar_bytes == kWideScalarBytes && depth <= 2;
  return is_wide ? space.entries_with_wide_scalars[depth - 1]
                 : space.entries_with_scalars[depth - 1];
}

std::optional<UsedTensorLists> ReadWithScalars(const Space& space, std::size_t depth,
                                               const void* data, std::size_t size_bytes,
                                               unsigned blocks) {
  for (const std::size_t scalar_bytes : kScalarBytes) {
    const Layout layout =
        LayoutOf(space, depth, EntriesWithScalars(space, depth, scalar_bytes),
                 {.scalar_bytes = scalar_bytes, .has_steps = false, .has_start = false});
    if (const auto used = Confirmed(layout, data, size_bytes, blocks)) return used;
  }
  return {};
}

std::optional<UsedTensorLists> ReadAt(const Space& space, std::size_t depth, TensorLists kind,
                                      const void* data, std::size_t size_bytes, unsigned blocks) {
  if (kind == TensorLists::kScalars) return ReadWithScalars(space, depth, data, size_bytes, blocks);
  const Kind with{.scalar_bytes = 0, .has_steps = kind == TensorLists::kFused, .has_start = true};
  return Confirmed(LayoutOf(space, depth, space.entries[depth - 1], with), data, size_bytes,
                   blocks);
}

}  // namespace

TensorLists TensorListsOf(const char* kernel) {
  const std::string_view name = kernel;
  const auto has = [name](std::string_view part) {
    return name.find(part) != std::string_view::npos;
  };
  if (!has("multi_tensor_apply_kernel")) return TensorLists::kNone;
  if (has("32FusedOptimizerTensorListMetadata")) return TensorLists::kFused;
  if (has("28TensorListScalarListMetadata")) return TensorLists::kScalars;
  return has("18TensorListMetadata") ? TensorLists::kPlain : TensorLists::kNone;
}

std::optional<UsedTensorLists> ReadTensorLists(TensorLists kind, const void* data,
                                               std::size_t size_bytes, unsigned blocks) {
  for (const Space& space : kSpaces) {
    for (std::size_t depth = 1; depth <= kMostDepth; ++depth) {
      if (const auto used = ReadAt(space, depth, kind, data, size_bytes, blocks)) return used;
    }
  }
  return {};
}

}  // namespace spillway::entry
