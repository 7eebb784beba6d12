// csrilu02: without fill-in. The columns of each row are sorted, as the call requires.
#include <new>

#include "simulator/sparse/matrix.h"

struct csrilu02Info {
  int* zero_pivot;  // pinned: the first row with a zero on the diagonal, from the index base; or -1
};

namespace spillway::simulator::sparse::ilu {
namespace {

constexpr std::int32_t kNone = -1;

std::uint64_t BufferBytes(int rows) { return (rows > 0 ? rows : 1) * sizeof(std::int32_t); }

struct Shape {
  std::int32_t rows, count, base;
  std::uint64_t OffsetBytes() const { return (rows + 1) * sizeof(std::int32_t); }
  std::uint64_t IndexBytes() const { return count * sizeof(std::int32_t); }
};

// Row by row: positions of the diagonals go into the buffer.
struct AnalyseOperation {
  static constexpr char kName[] = "cusparse_ilu_analysis";
  static constexpr int kOperands = 4;  // offsets, indices, buffer, zero pivot
  Shape shape;

  void Run(void* const* operands) const {
    const auto* offsets = static_cast<const std::int32_t*>(operands[0]);
    const auto* columns = static_cast<const std::int32_t*>(operands[1]);
    auto* diagonals = static_cast<std::int32_t*>(operands[2]);
    auto* zero_pivot = static_cast<std::int32_t*>(operands[3]);
    *zero_pivot = kNone;
    for (std::int32_t row = 0; row < shape.rows; ++row) {
      diagonals[row] = kNone;
      for (std::int32_t i = offsets[row] - shape.base; i < offsets[row + 1] - shape.base; ++i) {
        if (columns[i] - shape.base == row) diagonals[row] = i;
      }
      if (diagonals[row] == kNone && *zero_pivot == kNone) *zero_pivot = row + shape.base;
    }
  }
};

template <typename Real>
struct FactoriseOperation {
  static constexpr char kName[] = "cusparse_ilu";
  static constexpr int kOperands = 5;  // offsets, indices, values, buffer, zero pivot
  Shape shape;

  void Run(void* const* operands) const {
    const auto* offsets = static_cast<const std::int32_t*>(operands[0]);
    const auto* columns = static_cast<const std::int32_t*>(operands[1]);
    auto* values = static_cast<Real*>(operands[2]);
    const auto* diagonals = static_cast<const std::int32_t*>(operands[3]);
    auto* zero_pivot = static_cast<std::int32_t*>(operands[4]);
    for (std::int32_t row = 0; row < shape.rows; ++row) {
      const std::int32_t end = offsets[row + 1] - shape.base;
      for (std::int32_t i = offsets[row] - shape.base; i < end; ++i) {
        const std::int32_t above = columns[i] - shape.base;
        if (above >= row || diagonals[above] == kNone) continue;
        values[i] /= values[diagonals[above]];
        Eliminate(columns, values, diagonals[above], offsets[above + 1] - shape.base, i, end);
      }
      const bool is_zero = diagonals[row] == kNone || values[diagonals[row]] == 0;
      if (is_zero && *zero_pivot == kNone) *zero_pivot = row + shape.base;
    }
  }

  static void Eliminate(const std::int32_t* columns, Real* values, std::int32_t above,
                        std::int32_t above_end, std::int32_t i, std::int32_t end) {
    std::int32_t own = i + 1;
    for (std::int32_t other = above + 1; other < above_end; ++other) {
      while (own < end && columns[own] < columns[other]) ++own;
      if (own == end) return;
      if (columns[own] == columns[other]) values[own] -= values[i] * values[other];
    }
  }
};

cusparseStatus_t Check(cusparseHandle_t handle, int rows, int count,
                       const cusparseMatDescr_t description, csrilu02Info_t info) {
  SPILLWAY_SPARSE_REQUIRE(handle != nullptr, CUSPARSE_STATUS_NOT_INITIALIZED);
  SPILLWAY_SPARSE_REQUIRE(rows >= 0 && count >= 0 && description != nullptr && info != nullptr,
                          CUSPARSE_STATUS_INVALID_VALUE);
  const bool general = description->type == CUSPARSE_MATRIX_TYPE_GENERAL;
  return general ? CUSPARSE_STATUS_SUCCESS : CUSPARSE_STATUS_MATRIX_TYPE_NOT_SUPPORTED;
}

Shape ShapeOf(int rows, int count, const cusparseMatDescr_t description) {
  return {rows, count, description->base == CUSPARSE_INDEX_BASE_ONE};
}

cusparseStatus_t Analyse(cusparseHandle_t handle, int rows, int count,
                         const cusparseMatDescr_t description, const int* offsets,
                         const int* columns, csrilu02Info_t info, void* buffer) {
  const cusparseStatus_t status = Check(handle, rows, count, description, info);
  if (status != CUSPARSE_STATUS_SUCCESS || rows == 0) return status;
  const Shape shape = ShapeOf(rows, count, description);
  return FromDriver(
      Enqueue(StreamOf(handle), AnalyseOperation{shape},
              {Reads(offsets, shape.OffsetBytes()), Reads(columns, shape.IndexBytes()),
               Writes(buffer, BufferBytes(rows)), Writes(info->zero_pivot, sizeof(int))},
              count));
}

template <typename Real>
cusparseStatus_t Factorise(cusparseHandle_t handle, int rows, int count,
                           const cusparseMatDescr_t description, Real* values, const int* offsets,
                           const int* columns, csrilu02Info_t info, void* buffer) {
  const cusparseStatus_t status = Check(handle, rows, count, description, info);
  if (status != CUSPARSE_STATUS_SUCCESS || rows == 0) return status;
  SPILLWAY_SPARSE_REQUIRE(buffer != nullptr, CUSPARSE_STATUS_INVALID_VALUE);
  const Shape shape = ShapeOf(rows, count, description);
  return FromDriver(
      Enqueue(StreamOf(handle), FactoriseOperation<Real>{shape},
              {Reads(offsets, shape.OffsetBytes()), Reads(columns, shape.IndexBytes()),
               Updates(values, count * sizeof(Real)), Reads(buffer, BufferBytes(rows)),
               Updates(info->zero_pivot, sizeof(int))},
              4.0 * count));
}

}  // namespace
}  // namespace spillway::simulator::sparse::ilu

using namespace spillway::simulator::sparse;

extern "C" {

cusparseStatus_t cusparseCreateCsrilu02Info(csrilu02Info_t* info) {
  SPILLWAY_SPARSE_REQUIRE(info != nullptr, CUSPARSE_STATUS_INVALID_VALUE);
  SPILLWAY_SPARSE_REQUIRE(EnsureContext(), CUSPARSE_STATUS_NOT_INITIALIZED);
  void* slot = nullptr;
  SPILLWAY_SPARSE_REQUIRE(spillway::simulator::dnn::Driver()->MemHostAlloc(
                              &slot, sizeof(int), CU_MEMHOSTALLOC_DEVICEMAP) == CUDA_SUCCESS,
                          CUSPARSE_STATUS_ALLOC_FAILED);
  *static_cast<int*>(slot) = ilu::kNone;
  *info = new (std::nothrow) csrilu02Info{static_cast<int*>(slot)};
  return *info != nullptr ? CUSPARSE_STATUS_SUCCESS : CUSPARSE_STATUS_ALLOC_FAILED;
}
cusparseStatus_t cusparseDestroyCsrilu02Info(csrilu02Info_t info) {
  if (info != nullptr) spillway::simulator::dnn::Driver()->MemFreeHost(info->zero_pivot);
  delete info;
  return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseXcsrilu02_zeroPivot(cusparseHandle_t handle, csrilu02Info_t info,
                                             int* position) {
  SPILLWAY_SPARSE_REQUIRE(handle != nullptr, CUSPARSE_STATUS_NOT_INITIALIZED);
  SPILLWAY_SPARSE_REQUIRE(info != nullptr && position != nullptr, CUSPARSE_STATUS_INVALID_VALUE);
  SPILLWAY_SPARSE_REQUIRE(
      spillway::simulator::dnn::Driver()->StreamSynchronize(StreamOf(handle)) == CUDA_SUCCESS,
      CUSPARSE_STATUS_EXECUTION_FAILED);
  *position = *info->zero_pivot;
  return *position == ilu::kNone ? CUSPARSE_STATUS_SUCCESS : CUSPARSE_STATUS_ZERO_PIVOT;
}

#define SPILLWAY_SPARSE_ILU(T, Real)                                                              \
  cusparseStatus_t cusparse##T##csrilu02_bufferSize(                                              \
      cusparseHandle_t handle, int rows, int count, const cusparseMatDescr_t description, Real*,  \
      const int*, const int*, csrilu02Info_t info, int* size_bytes) {                             \
    SPILLWAY_SPARSE_REQUIRE(size_bytes != nullptr, CUSPARSE_STATUS_INVALID_VALUE);                \
    *size_bytes = static_cast<int>(ilu::BufferBytes(rows));                                       \
    return ilu::Check(handle, rows, count, description, info);                                    \
  }                                                                                               \
  cusparseStatus_t cusparse##T##csrilu02_analysis(                                                \
      cusparseHandle_t handle, int rows, int count, const cusparseMatDescr_t description,         \
      const Real*, const int* offsets, const int* columns, csrilu02Info_t info,                   \
      cusparseSolvePolicy_t, void* buffer) {                                                      \
    return ilu::Analyse(handle, rows, count, description, offsets, columns, info, buffer);        \
  }                                                                                               \
  cusparseStatus_t cusparse##T##csrilu02(                                                         \
      cusparseHandle_t handle, int rows, int count, const cusparseMatDescr_t description,         \
      Real* values, const int* offsets, const int* columns, csrilu02Info_t info,                  \
      cusparseSolvePolicy_t, void* buffer) {                                                      \
    return ilu::Factorise<Real>(handle, rows, count, description, values, offsets, columns, info, \
                                buffer);                                                          \
  }
SPILLWAY_SPARSE_ILU(S, float)
SPILLWAY_SPARSE_ILU(D, double)
#undef SPILLWAY_SPARSE_ILU

}  // extern "C"
