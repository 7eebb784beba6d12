#include "interposer/entry/pytorch_structs.h"

#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/byte_view.h"

namespace spillway::entry {
namespace {

using base::ByteView;

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

// As PyTorch's IntDivider computes its factor and shift.
bool IsDivider(std::uint32_t divisor, std::uint32_t factor, std::uint32_t shift) {
  if (divisor == 0 || divisor > INT32_MAX) return false;
  const auto bits = static_cast<std::uint32_t>(std::bit_width(divisor - 1));
  const std::uint64_t above = (std::uint64_t{1} << bits) - divisor;
  return shift == bits && factor == (above << 32) / divisor + 1;
}

std::uint32_t DivisorAt(ByteView data, std::size_t calculator, std::uint32_t dimension) {
  return data.Read<std::uint32_t>(calculator + kNumberBytes + dimension * kDividerBytes);
}

bool IsCalculator(ByteView data, std::size_t offset) {
  const auto dimensions = data.Read<std::uint32_t>(offset);
  if (dimensions > kMostDimensions) return false;
  for (std::uint32_t i = 0; i < dimensions; ++i) {
    const std::size_t divider = offset + kNumberBytes + i * kDividerBytes;
    const auto number = [&](std::size_t at) {
      return data.Read<std::uint32_t>(divider + at * kNumberBytes);
    };
    if (!IsDivider(number(0), number(1), number(2))) return false;
  }
  return true;
}

// Parts in order.
class PartList {
 public:
  void Numbers(std::size_t offset, std::size_t bytes) { Add(offset, bytes, Part::Kind::kNumbers); }
  void Stale(std::size_t offset, std::size_t bytes) { Add(offset, bytes, Part::Kind::kStale); }
  // Of a table the first `used` entries are set.
  void Table(std::size_t offset, std::size_t used, std::size_t entries, std::size_t entry_bytes) {
    Numbers(offset, used * entry_bytes);
    Stale(offset + used * entry_bytes, (entries - used) * entry_bytes);
  }
  void Calculator(ByteView data, std::size_t offset, std::size_t tensors) {
    const std::size_t dimensions = data.Read<std::uint32_t>(offset);
    Numbers(offset, kNumberBytes);
    Table(offset + kNumberBytes, dimensions, kMostDimensions, kDividerBytes);
    Table(offset + CalculatorBytes(0), dimensions, kMostDimensions, tensors * kNumberBytes);
  }
  void Add(std::size_t offset, std::size_t bytes, Part::Kind kind) {
    if (bytes > 0)
      parts_.push_back(
          {static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(bytes), kind});
  }
  const Parts& parts() const { return parts_; }

 private:
  Parts parts_;
};

// A ReduceConfig has one flag, of a byte, before its last number. The flags of a Tail likewise.
void AddConfig(std::size_t offset, PartList* parts) {
  constexpr std::size_t kFlag = offsetof(Config, is_vectorised);
  parts->Numbers(offset, kFlag + 1);
  parts->Stale(offset + kFlag + 1, kNumberBytes - 1);
  parts->Numbers(offset + kFlag + kNumberBytes, kNumberBytes);
}

void AddTail(const Tail& tail, std::size_t offset, PartList* parts) {
  constexpr std::size_t kFlags = offsetof(Tail, accumulates), kFlagsBytes = 2;
  if (tail.outputs == 1) parts->Stale(offset + offsetof(Tail, to[1]), sizeof tail.to[1]);
  parts->Numbers(offset + offsetof(Tail, first_index), sizeof tail.first_index + kFlagsBytes);
  parts->Stale(offset + kFlags + kFlagsBytes, offsetof(Tail, outputs) - kFlags - kFlagsBytes);
  parts->Numbers(offset + offsetof(Tail, outputs), sizeof tail.outputs);
}

std::optional<Parts> ReadReductionAt(ByteView data, std::size_t calculators, std::size_t end) {
  const auto tail = data.Read<Tail>(end);
  const std::size_t config = calculators - kConfigBytes, output = calculators + kInputBytes;
  if (!IsPlausible(tail) || !IsPlausible(data.Read<Config>(config)) ||
      !IsCalculator(data, calculators) || !IsCalculator(data, output))
    return std::nullopt;
  PartList parts;
  AddConfig(config, &parts);
  parts.Calculator(data, calculators, 1);
  parts.Calculator(data, output, 2);
  parts.Stale(output + kOutputBytes, end - output - kOutputBytes);
  AddTail(tail, end, &parts);
  return parts.parts();
}

// What stands behind the calculators is aligned to 8.
std::optional<Parts> ReadReduction(ByteView data) {
  constexpr std::size_t kCalculatorsBytes = kInputBytes + kOutputBytes;
  constexpr std::size_t kLeastBytes = kConfigBytes + kCalculatorsBytes + sizeof(Tail);
  for (const std::size_t between : {std::size_t{0}, kNumberBytes}) {
    if (data.size() < kLeastBytes + between) continue;
    const std::size_t end = data.size() - sizeof(Tail);
    if (auto parts = ReadReductionAt(data, end - between - kCalculatorsBytes, end)) return parts;
  }
  return std::nullopt;
}

// Behind the addresses: for each tensor where it begins, its size in the dimension, and its
// elements, of `Index`; whether it is contiguous; the shapes of one tensor or of each.
template <class Index>
std::optional<Parts> ReadTensors(ByteView data, std::size_t most, std::size_t used) {
  constexpr std::size_t kShapeBytes = 8 * sizeof(Index);
  const std::size_t begins = most * sizeof(CUdeviceptr), sizes = begins + most * sizeof(Index);
  const std::size_t flags = begins + 3 * most * sizeof(Index), shapes = flags + most;
  const bool has_each = data.size() == shapes + most * kShapeBytes;
  if (!has_each && data.size() != shapes + kShapeBytes) return std::nullopt;
  const auto number = [&](std::size_t table, std::size_t i) {
    return data.Read<Index>(table + i * sizeof(Index));
  };
  for (std::size_t i = 0; i + 1 < used; ++i) {
    if (number(begins, i) + number(sizes, i) != number(begins, i + 1)) return std::nullopt;
  }
  if (number(sizes, used - 1) == 0) return std::nullopt;
  PartList parts;
  parts.Stale(used * sizeof(CUdeviceptr), (most - used) * sizeof(CUdeviceptr));
  for (std::size_t table = begins; table < flags; table += most * sizeof(Index))
    parts.Table(table, used, most, sizeof(Index));
  parts.Table(flags, used, most, 1);
  parts.Table(shapes, has_each ? used : 1, has_each ? most : 1, kShapeBytes);
  return parts.parts();
}

std::optional<Parts> ReadConcatenation(ByteView data, std::size_t used) {
  for (const std::size_t most : {16u, 32u, 64u, 128u, 256u}) {
    if (used == 0 || used > most) continue;
    if (auto parts = ReadTensors<std::uint32_t>(data, most, used)) return parts;
    if (auto parts = ReadTensors<std::uint64_t>(data, most, used)) return parts;
  }
  return std::nullopt;
}

// The product of the sizes.
bool HasElements(ByteView data, std::uint32_t elements) {
  const auto dimensions = data.Read<std::uint32_t>(0);
  std::uint64_t product = 1;
  for (std::uint32_t i = 0; i < dimensions && product <= elements; ++i)
    product *= DivisorAt(data, 0, i);
  return dimensions > 0 && product == elements;
}

// As malloc gives them.
bool IsOnHeap(CUdeviceptr word) {
  constexpr CUdeviceptr kLeast = CUdeviceptr{1} << 32, kEnd = CUdeviceptr{1} << 48;
  return word % 16 == 0 && word >= kLeast && word < kEnd;
}

std::optional<Parts> ReadElementwise(ByteView data, std::size_t tensors, std::uint32_t elements) {
  constexpr std::size_t kWord = sizeof(CUdeviceptr);
  const std::size_t calculator_bytes = CalculatorBytes(tensors);
  const std::size_t addresses = (calculator_bytes + kWord - 1) / kWord * kWord;
  const std::size_t function = addresses + tensors * kWord;
  if (data.size() <= function || data.size() % kWord != 0 || !IsCalculator(data, 0) ||
      !HasElements(data, elements))
    return std::nullopt;
  for (std::size_t at = addresses; at < function; at += kWord) {
    if (data.Read<CUdeviceptr>(at) == 0) return std::nullopt;
  }
  PartList parts;
  parts.Calculator(data, 0, tensors);
  parts.Stale(calculator_bytes, addresses - calculator_bytes);
  const std::size_t last = data.size() - kWord;
  if (last > function && IsOnHeap(data.Read<CUdeviceptr>(last)))
    parts.Add(last, kWord, Part::Kind::kHostPointer);
  return parts.parts();
}

}  // namespace

std::optional<Parts> ReadStruct(KnownStruct known, const void* data, std::size_t size_bytes,
                                std::uint32_t count) {
  switch (known.kind) {
    case ByValue::kReduction:
      return ReadReduction({data, size_bytes});
    case ByValue::kConcatenation:
      return ReadConcatenation({data, size_bytes}, count);
    case ByValue::kElementwise:
      return ReadElementwise({data, size_bytes}, known.tensors, count);
    case ByValue::kNone:
      break;
  }
  return std::nullopt;
}

}  // namespace spillway::entry
