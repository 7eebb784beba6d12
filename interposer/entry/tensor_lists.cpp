#include "interposer/entry/tensor_lists.h"

#include <iterator>
#include <string_view>

#include "interposer/driver/chunk_pool.h"

namespace spillway::entry {
namespace {

using interposer::RoundUp;

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

struct Layout {
  std::size_t depth, entries, elements, steps, blocks_to_tensors, blocks_to_chunks;
  std::size_t blocks, index_bytes, size_bytes;
};

std::size_t EntriesOf(const Space& space, const TensorLists& lists) {
  const std::size_t i = lists.depth - 1u;
  if (lists.kind != TensorLists::Kind::kScalars) return space.entries[i];
  const bool is_wide =
      lists.scalar_bytes == kWideScalarBytes && i < std::size(space.entries_with_wide_scalars);
  return is_wide ? space.entries_with_wide_scalars[i] : space.entries_with_scalars[i];
}

Layout LayoutOf(const Space& space, const TensorLists& lists) {
  const bool has_steps = lists.kind == TensorLists::Kind::kFused;
  const std::size_t start_bytes = lists.kind == TensorLists::Kind::kScalars ? 0 : sizeof(int);
  Layout it{};
  it.depth = lists.depth;
  it.entries = EntriesOf(space, lists);
  it.blocks = space.blocks;
  it.index_bytes = space.index_bytes;
  it.elements = it.depth * it.entries * kWord;
  const std::size_t behind_elements = it.elements + it.entries * kWord;
  it.steps = has_steps ? behind_elements : 0;
  it.blocks_to_tensors =
      behind_elements + it.entries * (lists.scalar_bytes + (has_steps ? kWord : 0));
  it.blocks_to_chunks =
      RoundUp(it.blocks_to_tensors + it.blocks * it.index_bytes, sizeof(std::int32_t));
  const std::size_t end = it.blocks_to_chunks + it.blocks * sizeof(std::int32_t) + start_bytes;
  it.size_bytes = RoundUp(end, lists.scalar_bytes == kWideScalarBytes ? kWideScalarBytes : kWord);
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

std::string_view Behind(std::string_view name, std::string_view part) {
  const std::size_t at = name.find(part);
  return at == std::string_view::npos ? std::string_view() : name.substr(at + part.size());
}

// Takes a mangled type off the text's front. 0: not one that PyTorch's scalars have.
std::uint8_t TakeScalarBytes(std::string_view* text) {
  struct Type {
    std::string_view mangled;
    std::uint8_t bytes;
  };
  constexpr Type kTypes[] = {{"f", 4},
                             {"d", 8},
                             {"i", 4},
                             {"l", 8},
                             {"s", 2},
                             {"a", 1},
                             {"h", 1},
                             {"b", 1},
                             {"N3c107complexIfEE", 8},
                             {"N3c107complexIdEE", kWideScalarBytes},
                             {"N3c104HalfE", 2},
                             {"N3c108BFloat16E", 2}};
  for (const Type& type : kTypes) {
    if (!text->starts_with(type.mangled)) continue;
    text->remove_prefix(type.mangled.size());
    return type.bytes;
  }
  return 0;
}

// "Li3E": the template argument 3. 0: something else, or more lists than PyTorch has.
std::uint8_t DepthIn(std::string_view text) {
  if (!text.starts_with("Li") || text.size() < 4 || text[3] != 'E') return 0;
  const int depth = text[2] - '0';
  return depth >= 1 && depth <= static_cast<int>(kMostDepth) ? static_cast<std::uint8_t>(depth) : 0;
}

}  // namespace

TensorLists TensorListsOf(const char* kernel) {
  using Kind = TensorLists::Kind;
  struct Struct {
    std::string_view mangled;
    Kind kind;
  };
  constexpr Struct kStructs[] = {{"32FusedOptimizerTensorListMetadataI", Kind::kFused},
                                 {"28TensorListScalarListMetadataI", Kind::kScalars},
                                 {"18TensorListMetadataI", Kind::kPlain}};
  const std::string_view parameters = Behind(kernel, "25multi_tensor_apply_kernelI");
  for (const Struct& each : kStructs) {
    std::string_view arguments = Behind(parameters, each.mangled);
    if (arguments.empty()) continue;
    TensorLists lists{each.kind, 0, 0};
    if (each.kind == Kind::kScalars) lists.scalar_bytes = TakeScalarBytes(&arguments);
    lists.depth = DepthIn(arguments);
    const bool is_known =
        lists.depth > 0 && (each.kind != Kind::kScalars || lists.scalar_bytes > 0);
    return is_known ? lists : TensorLists();
  }
  return {};
}

std::optional<UsedTensorLists> ReadTensorLists(const TensorLists& lists, const void* data,
                                               std::size_t size_bytes, unsigned blocks) {
  if (lists.kind == TensorLists::Kind::kNone) return {};
  for (const Space& space : kSpaces) {
    if (const auto used = Confirmed(LayoutOf(space, lists), data, size_bytes, blocks)) return used;
  }
  return {};
}

}  // namespace spillway::entry
