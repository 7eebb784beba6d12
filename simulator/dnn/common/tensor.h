// Tensors as operations see them: any strides and three element types outside, dense floats inside.
//
// Invariants
//  1. A dense fp32 tensor is used in place; any other goes through dense fp32 scratch on the host.
//  2. DenseOutput stores y = alpha * result + beta * y at Commit; beta = 0 never reads y.
//  3. Scratch blocks return to a pool; a body can fault only before it takes one.
#pragma once

#include <cstdint>
#include <vector>

namespace spillway::simulator::dnn {

inline constexpr int kMaxRank = 5;

enum class ElementType : std::int32_t { kFloat, kHalf, kBfloat16, kUnsupported };

std::int64_t ElementBytes(ElementType type);

struct TensorView {
  ElementType type;
  std::int32_t rank;
  std::int64_t dims[kMaxRank];     // in NC(D)HW order
  std::int64_t strides[kMaxRank];  // in elements

  std::int64_t Count() const;
  std::int64_t ExtentBytes() const;  // from the first to one past the last
  std::int64_t Inner(int from) const;
  bool IsDenseFloat() const;
  bool operator==(const TensorView&) const = default;
};

bool SameShape(const TensorView& a, const TensorView& b);

TensorView DenseView(ElementType type, int rank, const std::int64_t* dims);

float HalfToFloat(std::uint16_t bits);
std::uint16_t FloatToHalf(float value);
float Bfloat16ToFloat(std::uint16_t bits);
std::uint16_t FloatToBfloat16(float value);

// Pooled, because fresh pages cost more than the arithmetic.
class Scratch {
 public:
  explicit Scratch(std::int64_t count);
  ~Scratch();
  Scratch(Scratch&& other) noexcept;
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  float* data() const { return block_.data; }

  struct Block {
    float* data;
    std::int64_t capacity;
  };

 private:
  Block block_;
};

void ConvertToFloat(ElementType type, const void* from, std::int64_t from_stride,
                    std::int64_t count, float* to);
void ConvertFromFloat(ElementType type, const float* from, std::int64_t count, void* to,
                      std::int64_t to_stride);

class DenseInput {
 public:
  DenseInput(const TensorView& view, const void* device);
  const float* data() const { return data_; }

 private:
  Scratch scratch_;
  const float* data_;
};

class DenseOutput {
 public:
  DenseOutput(const TensorView& view, void* device, float alpha, float beta);
  // Before Commit it may be the destination itself (alpha = 1, beta = 0).
  float* data() const { return data_; }
  void Commit();

 private:
  bool InPlace() const { return view_.IsDenseFloat() && alpha_ == 1 && beta_ == 0; }
  TensorView view_;
  void* device_;
  float alpha_;
  float beta_;
  Scratch scratch_;
  float* data_;
};

}  // namespace spillway::simulator::dnn
