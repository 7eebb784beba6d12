#include <cufftXt.h>

#include <cmath>
#include <vector>

#include "simulator/fft/plan.h"
#include "simulator/fft/transform.h"

namespace spillway::simulator::fft {
namespace {

// The last axis fastest.
template <typename Visit>
void ForEachPoint(const std::int64_t* lengths, Visit visit) {
  std::int64_t at[kMostRank];
  for (at[0] = 0; at[0] < lengths[0]; ++at[0]) {
    for (at[1] = 0; at[1] < lengths[1]; ++at[1]) {
      for (at[2] = 0; at[2] < lengths[2]; ++at[2]) visit(at);
    }
  }
}

template <typename Real>
struct TransformOperation {
  static constexpr char kName[] = "cufft_transform";
  static constexpr int kOperands = 3;  // input, output, work area
  Shape shape;
  Layout input, output;
  std::int32_t reads_reals, writes_reals;
  std::int32_t sign;
  std::uint64_t work_bytes;

  std::int64_t Axis() const { return shape.rank - 1; }  // the halved one
  std::int64_t HalfLength() const { return shape.lengths[Axis()] / 2 + 1; }

  void Run(void* const* operands) const {
    constexpr std::uint64_t kStepBytes = 512;
    for (std::uint64_t i = 0; i < work_bytes; i += kStepBytes)
      static_cast<char*>(operands[2])[i] = 0x5A;
    std::vector<Complex> points(shape.Points());
    for (std::int64_t item = 0; item < shape.batch; ++item) {
      Load(static_cast<const Real*>(operands[0]), item, points.data());
      for (int axis = 0; axis < shape.rank; ++axis) TransformAxis(points.data(), axis);
      Store(points.data(), item, static_cast<Real*>(operands[1]));
    }
  }

  std::int64_t Place(const Layout& layout, std::int64_t item, const std::int64_t* at) const {
    std::int64_t place = item * layout.batch_stride;
    for (int axis = 0; axis < shape.rank; ++axis) place += at[axis] * layout.strides[axis];
    return place;
  }
  std::int64_t Dense(const std::int64_t* at) const {
    return (at[0] * shape.lengths[1] + at[1]) * shape.lengths[2] + at[2];
  }

  void Load(const Real* from, std::int64_t item, Complex* points) const {
    ForEachPoint(shape.lengths, [&](const std::int64_t* at) {
      if (reads_reals) {
        points[Dense(at)] = static_cast<double>(from[Place(input, item, at)]);
      } else if (writes_reals && at[Axis()] >= HalfLength()) {
        points[Dense(at)] = std::conj(LoadMirrored(from, item, at));
      } else {
        points[Dense(at)] = LoadComplex(from, Place(input, item, at));
      }
    });
  }
  static Complex LoadComplex(const Real* from, std::int64_t place) {
    return {static_cast<double>(from[2 * place]), static_cast<double>(from[2 * place + 1])};
  }
  // The stored half of a spectrum of reals has the other half's conjugates.
  Complex LoadMirrored(const Real* from, std::int64_t item, const std::int64_t* at) const {
    std::int64_t mirrored[kMostRank] = {};
    for (int axis = 0; axis < shape.rank; ++axis)
      mirrored[axis] = at[axis] == 0 ? 0 : shape.lengths[axis] - at[axis];
    return LoadComplex(from, Place(input, item, mirrored));
  }

  void Store(const Complex* points, std::int64_t item, Real* to) const {
    std::int64_t stored[kMostRank] = {shape.lengths[0], shape.lengths[1], shape.lengths[2]};
    if (reads_reals) stored[Axis()] = HalfLength();
    ForEachPoint(stored, [&](const std::int64_t* at) {
      const Complex value = points[Dense(at)];
      const std::int64_t place = Place(output, item, at);
      if (writes_reals) {
        to[place] = static_cast<Real>(value.real());
      } else {
        to[2 * place] = static_cast<Real>(value.real());
        to[2 * place + 1] = static_cast<Real>(value.imag());
      }
    });
  }

  void TransformAxis(Complex* points, int axis) const {
    std::int64_t starts[kMostRank] = {shape.lengths[0], shape.lengths[1], shape.lengths[2]};
    starts[axis] = 1;
    std::int64_t step = 1;
    for (int inner = kMostRank - 1; inner > axis; --inner) step *= shape.lengths[inner];
    LineTransform transform(shape.lengths[axis], sign);
    std::vector<Complex> line(transform.length());
    ForEachPoint(starts, [&](const std::int64_t* at) {
      Complex* const first = points + Dense(at);
      for (std::int64_t i = 0; i < transform.length(); ++i) line[i] = first[i * step];
      transform.Run(line.data());
      for (std::int64_t i = 0; i < transform.length(); ++i) first[i * step] = line[i];
    });
  }
};

template <typename Real>
dnn::Operand InputOperand(const TransformOperation<Real>& operation, const void* input,
                          const void* output) {
  const bool half = operation.writes_reals;
  const std::uint64_t elements = ExtentElements(operation.shape, operation.input, half);
  const std::uint64_t bytes = elements * sizeof(Real) * (operation.reads_reals ? 1 : 2);
  if (input == output) return dnn::Updates(const_cast<void*>(input), bytes);
  return dnn::Reads(input, bytes);
}

template <typename Real>
dnn::Operand OutputOperand(const TransformOperation<Real>& operation, void* output, bool in_place) {
  const bool half = operation.reads_reals;
  const std::uint64_t elements = ExtentElements(operation.shape, operation.output, half);
  const std::uint64_t bytes = elements * sizeof(Real) * (operation.writes_reals ? 1 : 2);
  return in_place ? dnn::Updates(output, bytes) : dnn::Writes(output, bytes);
}

template <typename Real>
cufftResult Launch(const Plan& plan, const void* input, void* output, int sign) {
  const bool in_place = input == output;
  const bool from_reals = ReadsReals(plan.type);
  const bool to_reals = WritesReals(plan.type);
  const Shape& shape = plan.shape;
  const TransformOperation<Real> operation = {
      shape,
      plan.is_basic ? DenseLayout(shape, from_reals, to_reals, in_place) : plan.input,
      plan.is_basic ? DenseLayout(shape, to_reals, from_reals, in_place) : plan.output,
      from_reals,
      to_reals,
      sign,
      plan.work_area != nullptr ? plan.work_bytes : 0};
  const auto points = static_cast<double>(shape.Points());
  const double flops = 5 * points * std::log2(points + 1) * static_cast<double>(shape.batch);
  const CUresult result = dnn::Enqueue(
      reinterpret_cast<CUstream>(plan.stream), operation,
      {InputOperand(operation, input, output), OutputOperand(operation, output, in_place),
       dnn::Clobbers(plan.work_area, operation.work_bytes)},
      flops);
  return result == CUDA_SUCCESS ? CUFFT_SUCCESS : CUFFT_EXEC_FAILED;
}

cufftResult Execute(cufftHandle handle, cufftType type, const void* input, void* output,
                    int direction) {
  const Plan* const plan = Find(handle);
  if (plan == nullptr || !plan->is_made) return CUFFT_INVALID_PLAN;
  if (plan->type != type) return CUFFT_INVALID_TYPE;
  if (input == nullptr || output == nullptr) return CUFFT_INVALID_VALUE;
  if (direction != CUFFT_FORWARD && direction != CUFFT_INVERSE) return CUFFT_INVALID_VALUE;
  if (!plan->allocates && plan->work_area == nullptr) return CUFFT_NO_WORKSPACE;
  return IsDouble(type) ? Launch<double>(*plan, input, output, direction)
                        : Launch<float>(*plan, input, output, direction);
}

}  // namespace
}  // namespace spillway::simulator::fft

using namespace spillway::simulator::fft;

extern "C" {

cufftResult cufftExecC2C(cufftHandle plan, cufftComplex* input, cufftComplex* output,
                         int direction) {
  return Execute(plan, CUFFT_C2C, input, output, direction);
}
cufftResult cufftExecR2C(cufftHandle plan, cufftReal* input, cufftComplex* output) {
  return Execute(plan, CUFFT_R2C, input, output, CUFFT_FORWARD);
}
cufftResult cufftExecC2R(cufftHandle plan, cufftComplex* input, cufftReal* output) {
  return Execute(plan, CUFFT_C2R, input, output, CUFFT_INVERSE);
}
cufftResult cufftExecZ2Z(cufftHandle plan, cufftDoubleComplex* input, cufftDoubleComplex* output,
                         int direction) {
  return Execute(plan, CUFFT_Z2Z, input, output, direction);
}
cufftResult cufftExecD2Z(cufftHandle plan, cufftDoubleReal* input, cufftDoubleComplex* output) {
  return Execute(plan, CUFFT_D2Z, input, output, CUFFT_FORWARD);
}
cufftResult cufftExecZ2D(cufftHandle plan, cufftDoubleComplex* input, cufftDoubleReal* output) {
  return Execute(plan, CUFFT_Z2D, input, output, CUFFT_INVERSE);
}
// The direction of transforms with reals follows from their type.
cufftResult cufftXtExec(cufftHandle handle, void* input, void* output, int direction) {
  const Plan* const plan = Find(handle);
  if (plan == nullptr) return CUFFT_INVALID_PLAN;
  if (ReadsReals(plan->type)) direction = CUFFT_FORWARD;
  if (WritesReals(plan->type)) direction = CUFFT_INVERSE;
  return Execute(handle, plan->type, input, output, direction);
}

}  // extern "C"
