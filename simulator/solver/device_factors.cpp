#include "simulator/solver/factors.h"

namespace spillway::simulator::solver {
namespace {

using dnn::Driver;

template <typename Real>
struct SetOperation {
  static constexpr char kName[] = "cusolver_csr_setup";
  static constexpr int kOperands = 5;  // offsets, columns, values, places, band
  BandShape shape;
  int base;
  Real shift;

  void Run(void* const* operands) const {
    const auto* const offsets = static_cast<const int*>(operands[0]);
    auto* const band = static_cast<Real*>(operands[4]);
    const Pattern pattern{shape.n, base, offsets, offsets + 1,
                          static_cast<const int*>(operands[1])};
    Fill(shape, pattern, static_cast<const Real*>(operands[2]),
         static_cast<const int*>(operands[3]), band);
    ShiftDiagonal(shape, shift, band);
  }
};

template <typename Real>
struct FactorOperation {
  static constexpr char kName[] = "cusolver_csr_factor";
  static constexpr int kOperands = 3;  // band, pivots, indefinite row
  BandShape shape;

  void Run(void* const* operands) const {
    *static_cast<int*>(operands[2]) =
        Factorise(shape, static_cast<Real*>(operands[0]), static_cast<int*>(operands[1]));
  }
};

template <typename Real>
struct FirstZeroOperation {
  static constexpr char kName[] = "cusolver_csr_zero_pivot";
  static constexpr int kOperands = 3;  // band, indefinite row, result
  BandShape shape;
  Real tolerance;

  void Run(void* const* operands) const {
    const int indefinite = *static_cast<const int*>(operands[1]);
    *static_cast<int*>(operands[2]) =
        indefinite >= 0 ? indefinite
                        : FirstSmall(shape, static_cast<const Real*>(operands[0]), tolerance);
  }
};

template <typename Real>
struct SolveOperation {
  static constexpr char kName[] = "cusolver_csr_solve";
  static constexpr int kOperands = 5;  // band, pivots, places, b, x
  BandShape shape;

  void Run(void* const* operands) const {
    Solve(shape, static_cast<const Real*>(operands[0]), static_cast<const int*>(operands[1]),
          static_cast<const int*>(operands[2]), static_cast<const Real*>(operands[3]),
          static_cast<Real*>(operands[4]));
  }
};

template <typename Word>
Word* At(CUdeviceptr address) {
  return reinterpret_cast<Word*>(address);
}

bool ReadBack(std::vector<int>* words, const int* from, CUstream stream) {
  return Driver()->MemcpyDtoHAsync(words->data(), reinterpret_cast<CUdeviceptr>(from),
                                   words->size() * sizeof(int), stream) == CUDA_SUCCESS;
}

double FlopsOf(const BandShape& shape) { return 2.0 * shape.n * shape.lower * (shape.upper + 1); }

}  // namespace

DeviceFactors::~DeviceFactors() { Free(); }

void DeviceFactors::Free() {
  for (CUdeviceptr* memory : {&places_, &pivots_, &indefinite_, &band_}) {
    if (*memory != 0) Driver()->MemFree(*memory);
    *memory = 0;
  }
}

bool DeviceFactors::Allocate(CUdeviceptr* memory, std::size_t size_bytes) {
  return *memory != 0 || Driver()->MemAlloc(memory, size_bytes) == CUDA_SUCCESS;
}

cusolverStatus_t DeviceFactors::Analyse(cusolverSpHandle_t handle, const Matrix& matrix) {
  const cusolverStatus_t status = CheckMatrix(handle, matrix.n, matrix.count, matrix.description);
  if (status != CUSOLVER_STATUS_SUCCESS) return status;
  Free();
  const CUstream stream = StreamOf(handle);
  std::vector<int> offsets(matrix.n + 1), columns(matrix.count);
  SPILLWAY_SOLVER_REQUIRE(ReadBack(&offsets, matrix.offsets, stream) &&
                              ReadBack(&columns, matrix.columns, stream) &&
                              Driver()->StreamSynchronize(stream) == CUDA_SUCCESS,
                          CUSOLVER_STATUS_EXECUTION_FAILED);
  const Pattern pattern{matrix.n, BaseOf(matrix.description), offsets.data(), offsets.data() + 1,
                        columns.data()};
  const std::vector<int> places = PlacesIn(NarrowOrder(pattern));
  shape_ = ShapeOf(pattern, places, kind_);
  const std::size_t row_bytes = places.size() * sizeof(int);
  SPILLWAY_SOLVER_REQUIRE(Allocate(&places_, row_bytes) && Allocate(&pivots_, row_bytes) &&
                              Allocate(&indefinite_, sizeof(int)),
                          CUSOLVER_STATUS_ALLOC_FAILED);
  SPILLWAY_SOLVER_REQUIRE(
      Driver()->MemcpyHtoDAsync(places_, places.data(), row_bytes, stream) == CUDA_SUCCESS &&
          Driver()->StreamSynchronize(stream) == CUDA_SUCCESS,
      CUSOLVER_STATUS_EXECUTION_FAILED);
  return CUSOLVER_STATUS_SUCCESS;
}

template <typename Real>
cusolverStatus_t DeviceFactors::Set(cusolverSpHandle_t handle, const Matrix& matrix,
                                    const Real* values, Real shift) {
  const cusolverStatus_t status = CheckMatrix(handle, matrix.n, matrix.count, matrix.description);
  if (status != CUSOLVER_STATUS_SUCCESS) return status;
  SPILLWAY_SOLVER_REQUIRE(shape_.n == matrix.n, CUSOLVER_STATUS_INVALID_VALUE);
  SPILLWAY_SOLVER_REQUIRE(Allocate(&band_, InternalBytes<Real>()), CUSOLVER_STATUS_ALLOC_FAILED);
  return FromDriver(Enqueue(
      StreamOf(handle), SetOperation<Real>{shape_, BaseOf(matrix.description), shift},
      {Reads(matrix.offsets, (matrix.n + 1) * sizeof(int)),
       Reads(matrix.columns, matrix.count * sizeof(int)),
       Reads(values, matrix.count * sizeof(Real)), Reads(At<int>(places_), shape_.n * sizeof(int)),
       Writes(At<Real>(band_), InternalBytes<Real>())},
      matrix.count));
}

template <typename Real>
cusolverStatus_t DeviceFactors::Factor(cusolverSpHandle_t handle) {
  SPILLWAY_SOLVER_REQUIRE(handle != nullptr, CUSOLVER_STATUS_NOT_INITIALIZED);
  SPILLWAY_SOLVER_REQUIRE(band_ != 0, CUSOLVER_STATUS_INVALID_VALUE);
  return FromDriver(Enqueue(
      StreamOf(handle), FactorOperation<Real>{shape_},
      {Updates(At<Real>(band_), InternalBytes<Real>()),
       Writes(At<int>(pivots_), shape_.n * sizeof(int)), Writes(At<int>(indefinite_), sizeof(int))},
      FlopsOf(shape_)));
}

template <typename Real>
cusolverStatus_t DeviceFactors::FirstZero(cusolverSpHandle_t handle, Real tolerance,
                                          int* position) {
  SPILLWAY_SOLVER_REQUIRE(handle != nullptr, CUSOLVER_STATUS_NOT_INITIALIZED);
  SPILLWAY_SOLVER_REQUIRE(band_ != 0 && position != nullptr, CUSOLVER_STATUS_INVALID_VALUE);
  const CUresult result =
      Enqueue(StreamOf(handle), FirstZeroOperation<Real>{shape_, tolerance},
              {Reads(At<Real>(band_), InternalBytes<Real>()),
               Reads(At<int>(indefinite_), sizeof(int)), Writes(handle->result, sizeof(int))},
              shape_.n);
  SPILLWAY_SOLVER_REQUIRE(
      result == CUDA_SUCCESS && Driver()->StreamSynchronize(StreamOf(handle)) == CUDA_SUCCESS,
      CUSOLVER_STATUS_EXECUTION_FAILED);
  *position = *handle->result;
  return CUSOLVER_STATUS_SUCCESS;
}

template <typename Real>
cusolverStatus_t DeviceFactors::Solve(cusolverSpHandle_t handle, const Real* b, Real* x) {
  SPILLWAY_SOLVER_REQUIRE(handle != nullptr, CUSOLVER_STATUS_NOT_INITIALIZED);
  SPILLWAY_SOLVER_REQUIRE(band_ != 0, CUSOLVER_STATUS_INVALID_VALUE);
  const std::size_t row_bytes = shape_.n * sizeof(int), vector_bytes = shape_.n * sizeof(Real);
  return FromDriver(
      Enqueue(StreamOf(handle), SolveOperation<Real>{shape_},
              {Reads(At<Real>(band_), InternalBytes<Real>()), Reads(At<int>(pivots_), row_bytes),
               Reads(At<int>(places_), row_bytes), Reads(b, vector_bytes), Writes(x, vector_bytes)},
              4.0 * shape_.n * (shape_.lower + 1)));
}

#define SPILLWAY_FACTORS(Real)                                                                 \
  template cusolverStatus_t DeviceFactors::Set(cusolverSpHandle_t, const Matrix&, const Real*, \
                                               Real);                                          \
  template cusolverStatus_t DeviceFactors::Factor<Real>(cusolverSpHandle_t);                   \
  template cusolverStatus_t DeviceFactors::FirstZero(cusolverSpHandle_t, Real, int*);          \
  template cusolverStatus_t DeviceFactors::Solve(cusolverSpHandle_t, const Real*, Real*);
SPILLWAY_FACTORS(float)
SPILLWAY_FACTORS(double)
#undef SPILLWAY_FACTORS

}  // namespace spillway::simulator::solver
