#include "interposer/entry/pytorch_structs.h"

#include <cstdint>
#include <string_view>

#include "base/byte_view.h"

namespace spillway::entry {
namespace {

using base::ByteView;

constexpr std::string_view kNative = "_ZN2at6native";
constexpr std::string_view kReduce = "_ZN2at6native13reduce_kernelI";
constexpr std::string_view kConcatenate = "CatArrayBatchedCopy";  // and its variants

// In bytes. OffsetCalculator<N, uint32_t>: the number of dimensions, a divider of three words for
// each, and a stride of N words for each.
constexpr std::size_t kNumberBytes = 4;
constexpr std::size_t kMostDimensions = 25;
constexpr std::size_t kDividerBytes = 3 * kNumberBytes;
constexpr std::size_t CalculatorBytes(std::size_t tensors) {
  return kNumberBytes + kMostDimensions * (kDividerBytes + tensors * kNumberBytes);
}
constexpr std::size_t kInputBytes = CalculatorBytes(1), kOutputBytes = CalculatorBytes(2);
constexpr std::size_t kConfigBytes = 16 * kNumberBytes;  // ReduceConfig

// Of a ReduceOp, behind the calculators.
struct Tail {
  CUdeviceptr from, to[2], accumulated, of_blocks, semaphores;
  std::int64_t first_index;
  std::uint8_t accumulates, is_final;
  std::int32_t outputs;
};
static_assert(sizeof(Tail) == 64);

struct Config {
  std::int32_t element_bytes, inputs, outputs, steps_and_blocks[3], input_factors[3],
      output_factors[2];
  std::int32_t block_width, block_height, threads, is_vectorised, output_elements;
};
static_assert(sizeof(Config) == kConfigBytes);

bool IsPlausible(const Tail& tail) {
  return tail.from != 0 && tail.to[0] != 0 && tail.accumulates <= 1 && tail.is_final <= 1 &&
         (tail.outputs == 1 || tail.outputs == 2);
}

bool IsPlausible(const Config& config) {
  constexpr std::int32_t kMostElementBytes = 64, kMostThreads = 1024;
  return config.element_bytes > 0 && config.element_bytes <= kMostElementBytes &&
         config.inputs > 0 && config.outputs > 0 && config.block_width > 0 &&
         config.block_height > 0 && config.threads > 0 && config.threads <= kMostThreads &&
         config.block_width <= config.threads && config.block_height <= config.threads;
}

// A divider: its divisor, a factor, and a shift of at most 32 bits.
bool IsCalculator(ByteView data, std::size_t offset) {
  const auto dimensions = data.Read<std::uint32_t>(offset);
  if (dimensions > kMostDimensions) return false;
  for (std::uint32_t i = 0; i < dimensions; ++i) {
    const std::size_t divider = offset + kNumberBytes + i * kDividerBytes;
    if (data.Read<std::uint32_t>(divider) == 0 ||
        data.Read<std::uint32_t>(divider + 2 * kNumberBytes) > 32)
      return false;
  }
  return true;
}

std::optional<UsedWords> ReadReductionAt(ByteView data, std::size_t calculators, std::size_t end) {
  const auto tail = data.Read<Tail>(end);
  const std::size_t head_bytes = calculators - kConfigBytes;
  if (!IsPlausible(tail) || !IsPlausible(data.Read<Config>(head_bytes)) ||
      !IsCalculator(data, calculators) || !IsCalculator(data, calculators + kInputBytes))
    return std::nullopt;
  UsedWords used{head_bytes, {}};
  for (const CUdeviceptr address :
       {tail.from, tail.to[0], tail.accumulated, tail.of_blocks, tail.semaphores})
    used.addresses.push_back(address);
  if (tail.outputs == 2) used.addresses.push_back(tail.to[1]);
  return used;
}

// What stands behind the calculators is aligned to 8.
std::optional<UsedWords> ReadReduction(ByteView data) {
  constexpr std::size_t kCalculatorsBytes = kInputBytes + kOutputBytes;
  constexpr std::size_t kLeastBytes = kConfigBytes + kCalculatorsBytes + sizeof(Tail);
  for (const std::size_t between : {std::size_t{0}, kNumberBytes}) {
    if (data.size() < kLeastBytes + between) continue;
    const std::size_t end = data.size() - sizeof(Tail);
    if (auto used = ReadReductionAt(data, end - between - kCalculatorsBytes, end)) return used;
  }
  return std::nullopt;
}

// Behind the addresses: for each tensor where it begins, its size in the dimension, and its
// elements, of `Index`; whether it is contiguous; the shapes of one tensor or of each.
template <class Index>
bool HoldsTensors(ByteView data, std::size_t most, unsigned used) {
  constexpr std::size_t kShapeBytes = 8 * sizeof(Index);
  const std::size_t begins = most * sizeof(CUdeviceptr), sizes = begins + most * sizeof(Index);
  const std::size_t shapes = begins + 3 * most * sizeof(Index) + most;
  if (data.size() != shapes + kShapeBytes && data.size() != shapes + most * kShapeBytes)
    return false;
  const auto number = [&](std::size_t table, unsigned i) {
    return data.Read<Index>(table + i * sizeof(Index));
  };
  for (unsigned i = 0; i + 1 < used; ++i) {
    if (number(begins, i) + number(sizes, i) != number(begins, i + 1)) return false;
  }
  return number(sizes, used - 1) > 0;
}

std::optional<UsedWords> ReadConcatenation(ByteView data, unsigned used) {
  for (const std::size_t most : {16u, 32u, 64u, 128u, 256u}) {
    if (used == 0 || used > most) continue;
    if (HoldsTensors<std::uint32_t>(data, most, used) ||
        HoldsTensors<std::uint64_t>(data, most, used))
      return UsedWords{used * sizeof(CUdeviceptr), {}};
  }
  return std::nullopt;
}

}  // namespace

ByValue StructOf(const char* kernel) {
  const std::string_view name = kernel;
  if (name.starts_with(kReduce)) return ByValue::kReduction;
  const bool concatenates =
      name.starts_with(kNative) && name.find(kConcatenate) != std::string_view::npos;
  return concatenates ? ByValue::kConcatenation : ByValue::kNone;
}

std::optional<UsedWords> ReadStruct(ByValue kind, const void* data, std::size_t size_bytes,
                                    unsigned grid_y) {
  switch (kind) {
    case ByValue::kReduction:
      return ReadReduction({data, size_bytes});
    case ByValue::kConcatenation:
      return ReadConcatenation({data, size_bytes}, grid_y);
    case ByValue::kNone:
      break;
  }
  return std::nullopt;
}

}  // namespace spillway::entry
