#include "simulator/dnn/common/tensor.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

namespace spillway::simulator::dnn {
namespace {

std::vector<Scratch::Block>& Pool() {
  static std::vector<Scratch::Block> pool;
  return pool;
}

Scratch::Block TakeBlock(std::int64_t count) {
  auto& pool = Pool();
  auto best = pool.end();
  for (auto block = pool.begin(); block != pool.end(); ++block) {
    if (block->capacity >= count && (best == pool.end() || block->capacity < best->capacity))
      best = block;
  }
  if (best != pool.end()) {
    const Scratch::Block block = *best;
    pool.erase(best);
    return block;
  }
  if (!pool.empty()) {  // all too small: replace the largest
    const auto largest =
        std::max_element(pool.begin(), pool.end(),
                         [](const auto& a, const auto& b) { return a.capacity < b.capacity; });
    std::free(largest->data);
    pool.erase(largest);
  }
  constexpr std::int64_t kGrainFloats = 1024;
  const std::int64_t capacity = (count + kGrainFloats - 1) / kGrainFloats * kGrainFloats;
  auto* data = static_cast<float*>(std::aligned_alloc(4096, capacity * sizeof(float)));
  if (data == nullptr) throw std::bad_alloc();
  return {data, capacity};
}

TensorView Collapsed(const TensorView& view) {
  TensorView result = {view.type, 0, {}, {}};
  for (int d = 0; d < view.rank; ++d) {
    if (view.dims[d] == 1) continue;
    const int last = result.rank - 1;
    if (last >= 0 && result.strides[last] == view.strides[d] * view.dims[d]) {
      result.dims[last] *= view.dims[d];
      result.strides[last] = view.strides[d];
    } else {
      result.dims[result.rank] = view.dims[d];
      result.strides[result.rank++] = view.strides[d];
    }
  }
  if (result.rank == 0) return {view.type, 1, {1}, {1}};
  return result;
}

template <typename Row>
void ForEachRow(const TensorView& view, Row row) {
  const std::int64_t inner = view.dims[view.rank - 1];
  const std::int64_t rows = inner == 0 ? 0 : view.Count() / inner;
  for (std::int64_t r = 0; r < rows; ++r) {
    std::int64_t rest = r;
    std::int64_t offset = 0;
    for (int d = view.rank - 2; d >= 0; --d) {
      offset += rest % view.dims[d] * view.strides[d];
      rest /= view.dims[d];
    }
    row(offset, r * inner);
  }
}

const void* At(const TensorView& view, const void* base, std::int64_t offset) {
  return static_cast<const char*>(base) + offset * ElementBytes(view.type);
}

}  // namespace

std::int64_t ElementBytes(ElementType type) { return type == ElementType::kFloat ? 4 : 2; }

std::int64_t TensorView::Count() const { return Inner(0); }

std::int64_t TensorView::Inner(int from) const {
  std::int64_t count = 1;
  for (int d = from; d < rank; ++d) count *= dims[d];
  return count;
}

std::int64_t TensorView::ExtentBytes() const {
  std::int64_t last = 0;
  for (int d = 0; d < rank; ++d) last += (dims[d] - 1) * strides[d];
  return (last + 1) * ElementBytes(type);
}

bool TensorView::IsDenseFloat() const {
  std::int64_t expected = 1;
  for (int d = rank - 1; d >= 0; --d) {
    if (dims[d] != 1 && strides[d] != expected) return false;
    expected *= dims[d];
  }
  return type == ElementType::kFloat;
}

bool SameShape(const TensorView& a, const TensorView& b) {
  if (a.rank != b.rank) return false;
  for (int d = 0; d < a.rank; ++d) {
    if (a.dims[d] != b.dims[d]) return false;
  }
  return true;
}

TensorView DenseView(ElementType type, int rank, const std::int64_t* dims) {
  TensorView view = {type, rank, {}, {}};
  std::int64_t stride = 1;
  for (int d = rank - 1; d >= 0; --d) {
    view.dims[d] = dims[d];
    view.strides[d] = stride;
    stride *= dims[d];
  }
  return view;
}

float HalfToFloat(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000u) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1f;
  const std::uint32_t mantissa = bits & 0x3ffu;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | mantissa << 13);
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
  return sign != 0 ? -magnitude : magnitude;
}

std::uint16_t FloatToHalf(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000u);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return sign | 0x7fff;
  if (magnitude >= 0x477ff000u) return sign | 0x7c00;  // rounds to infinity
  if (magnitude < 0x38800000u) {  // subnormal: the addition rounds to nearest even
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return sign | static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(shifted) - 0x3f000000u);
  }
  const std::uint32_t rounded = magnitude + 0xfffu + (magnitude >> 13 & 1u);
  return sign | static_cast<std::uint16_t>((rounded >> 13) - (112u << 10));
}

float Bfloat16ToFloat(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

std::uint16_t FloatToBfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fff;
  return static_cast<std::uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

Scratch::Scratch(std::int64_t count) : block_(count > 0 ? TakeBlock(count) : Block{nullptr, 0}) {}

Scratch::Scratch(Scratch&& other) noexcept
    : block_(std::exchange(other.block_, Block{nullptr, 0})) {}

Scratch::~Scratch() {
  if (block_.data != nullptr) Pool().push_back(block_);
}

void ConvertToFloat(ElementType type, const void* from, std::int64_t from_stride,
                    std::int64_t count, float* to) {
  const auto* floats = static_cast<const float*>(from);
  const auto* words = static_cast<const std::uint16_t*>(from);
  if (type == ElementType::kFloat && from_stride == 1) {
    std::memcpy(to, floats, count * sizeof(float));
  } else if (type == ElementType::kFloat) {
    for (std::int64_t i = 0; i < count; ++i) to[i] = floats[i * from_stride];
  } else if (type == ElementType::kHalf) {
    for (std::int64_t i = 0; i < count; ++i) to[i] = HalfToFloat(words[i * from_stride]);
  } else {
    for (std::int64_t i = 0; i < count; ++i) to[i] = Bfloat16ToFloat(words[i * from_stride]);
  }
}

void ConvertFromFloat(ElementType type, const float* from, std::int64_t count, void* to,
                      std::int64_t to_stride) {
  auto* floats = static_cast<float*>(to);
  auto* words = static_cast<std::uint16_t*>(to);
  if (type == ElementType::kFloat) {
    for (std::int64_t i = 0; i < count; ++i) floats[i * to_stride] = from[i];
  } else if (type == ElementType::kHalf) {
    for (std::int64_t i = 0; i < count; ++i) words[i * to_stride] = FloatToHalf(from[i]);
  } else {
    for (std::int64_t i = 0; i < count; ++i) words[i * to_stride] = FloatToBfloat16(from[i]);
  }
}

DenseInput::DenseInput(const TensorView& view, const void* device)
    : scratch_(device == nullptr || view.IsDenseFloat() ? 0 : view.Count()),
      data_(scratch_.data()) {
  if (data_ == nullptr) {
    data_ = static_cast<const float*>(device);
    return;
  }
  const TensorView rows = Collapsed(view);
  const int last = rows.rank - 1;
  ForEachRow(rows, [&](std::int64_t offset, std::int64_t dense) {
    ConvertToFloat(rows.type, At(rows, device, offset), rows.strides[last], rows.dims[last],
                   scratch_.data() + dense);
  });
}

DenseOutput::DenseOutput(const TensorView& view, void* device, float alpha, float beta)
    : view_(Collapsed(view)),
      device_(device),
      alpha_(alpha),
      beta_(beta),
      scratch_(InPlace() ? 0 : view_.Count()) {
  data_ = InPlace() ? static_cast<float*>(device) : scratch_.data();
}

void DenseOutput::Commit() {
  if (InPlace()) return;
  const int last = view_.rank - 1;
  const std::int64_t length = view_.dims[last];
  const std::int64_t stride = view_.strides[last];
  const Scratch old_row(beta_ != 0 ? length : 0);
  ForEachRow(view_, [&](std::int64_t offset, std::int64_t dense) {
    void* row = const_cast<void*>(At(view_, device_, offset));
    float* result = data_ + dense;
    if (beta_ != 0) {
      ConvertToFloat(view_.type, row, stride, length, old_row.data());
      for (std::int64_t i = 0; i < length; ++i)
        result[i] = alpha_ * result[i] + beta_ * old_row.data()[i];
    } else if (alpha_ != 1) {
      for (std::int64_t i = 0; i < length; ++i) result[i] *= alpha_;
    }
    ConvertFromFloat(view_.type, result, length, row, stride);
  });
}

}  // namespace spillway::simulator::dnn
