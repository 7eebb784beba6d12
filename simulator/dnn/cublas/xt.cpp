// The first selected device does all the work.
#include <cublasXt.h>

#include <algorithm>
#include <new>

#include "simulator/dnn/cublas/handle.h"

struct cublasXtContext {
  CUdevice device;
  int tile;  // rows and columns of a tile
  cublasXtPinnedMemMode_t pinning;
};

namespace spillway::simulator::dnn {
namespace {

constexpr int kTile = 2048;  // as documented

// The device's primary context is current while it lives.
class ContextScope {
 public:
  explicit ContextScope(CUdevice device) {
    CUcontext primary = nullptr;
    Driver()->CtxGetCurrent(&before_);
    is_current_ = Driver()->DevicePrimaryCtxRetain(&primary, device) == CUDA_SUCCESS &&
                  Driver()->CtxSetCurrent(primary) == CUDA_SUCCESS;
  }
  ~ContextScope() { Driver()->CtxSetCurrent(before_); }
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;
  bool is_current() const { return is_current_; }

 private:
  CUcontext before_ = nullptr;
  bool is_current_ = false;
};

// Wherever it lies; a tile is copied to and from the device.
template <typename Real>
class TiledMatrix {
 public:
  TiledMatrix(const Real* data, std::size_t leading, int tile)
      : data_(reinterpret_cast<CUdeviceptr>(data)), leading_(leading), tile_(tile) {
    if (Driver()->MemAlloc(&memory_, sizeof(Real) * tile * tile) != CUDA_SUCCESS) memory_ = 0;
  }
  ~TiledMatrix() {
    if (memory_ != 0) Driver()->MemFree(memory_);
  }
  TiledMatrix(const TiledMatrix&) = delete;
  TiledMatrix& operator=(const TiledMatrix&) = delete;

  Real* tile() const { return reinterpret_cast<Real*>(memory_); }
  bool Load(std::size_t row, std::size_t column, std::size_t rows, std::size_t columns) {
    return Copy(memory_, tile_, At(row, column), leading_, rows, columns);
  }
  bool Store(std::size_t row, std::size_t column, std::size_t rows, std::size_t columns) {
    return Copy(At(row, column), leading_, memory_, tile_, rows, columns);
  }

 private:
  CUdeviceptr At(std::size_t row, std::size_t column) const {
    return data_ + (column * leading_ + row) * sizeof(Real);
  }
  static bool Copy(CUdeviceptr to, std::size_t to_leading, CUdeviceptr from,
                   std::size_t from_leading, std::size_t rows, std::size_t columns) {
    CUDA_MEMCPY2D copy = {};
    copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
    copy.srcDevice = from;
    copy.srcPitch = from_leading * sizeof(Real);
    copy.dstDevice = to;
    copy.dstPitch = to_leading * sizeof(Real);
    copy.WidthInBytes = rows * sizeof(Real);
    copy.Height = columns;
    return rows == 0 || columns == 0 || Driver()->Memcpy2DAsync(&copy, nullptr) == CUDA_SUCCESS;
  }

  const CUdeviceptr data_;
  const std::size_t leading_;
  const int tile_;
  CUdeviceptr memory_ = 0;
};

cublasStatus_t Gemm(cublasHandle_t blas, cublasOperation_t ta, cublasOperation_t tb, int m, int n,
                    int k, const float* alpha, const float* a, const float* b, int leading,
                    const float* beta, float* c) {
  return cublasSgemm_v2(blas, ta, tb, m, n, k, alpha, a, leading, b, leading, beta, c, leading);
}
cublasStatus_t Gemm(cublasHandle_t blas, cublasOperation_t ta, cublasOperation_t tb, int m, int n,
                    int k, const double* alpha, const double* a, const double* b, int leading,
                    const double* beta, double* c) {
  return cublasDgemm_v2(blas, ta, tb, m, n, k, alpha, a, leading, b, leading, beta, c, leading);
}

template <typename Real>
struct TiledProduct {
  cublasOperation_t ta, tb;
  std::size_t m, n, k;
  const Real *alpha, *beta;
  TiledMatrix<Real>&a, &b, &c;
  std::size_t tile;

  bool LoadOperands(std::size_t row, std::size_t column, std::size_t depth, std::size_t rows,
                    std::size_t columns, std::size_t depths) {
    const bool has_a =
        ta == CUBLAS_OP_N ? a.Load(row, depth, rows, depths) : a.Load(depth, row, depths, rows);
    return has_a && (tb == CUBLAS_OP_N ? b.Load(depth, column, depths, columns)
                                       : b.Load(column, depth, columns, depths));
  }
  cublasStatus_t TileAt(cublasHandle_t blas, std::size_t row, std::size_t column) {
    const std::size_t rows = std::min(tile, m - row), columns = std::min(tile, n - column);
    const Real one = 1;
    bool copied = *beta == 0 || c.Load(row, column, rows, columns);
    std::size_t depth = 0;
    do {
      const std::size_t depths = std::min(tile, k - depth);
      copied = copied && LoadOperands(row, column, depth, rows, columns, depths);
      if (!copied) return CUBLAS_STATUS_EXECUTION_FAILED;
      const cublasStatus_t status = Gemm(
          blas, ta, tb, static_cast<int>(rows), static_cast<int>(columns), static_cast<int>(depths),
          alpha, a.tile(), b.tile(), static_cast<int>(tile), depth == 0 ? beta : &one, c.tile());
      if (status != CUBLAS_STATUS_SUCCESS) return status;
      depth += tile;
    } while (depth < k);
    return c.Store(row, column, rows, columns) ? CUBLAS_STATUS_SUCCESS
                                               : CUBLAS_STATUS_EXECUTION_FAILED;
  }
  cublasStatus_t Run(cublasHandle_t blas) {
    for (std::size_t column = 0; column < n; column += tile) {
      for (std::size_t row = 0; row < m; row += tile) {
        const cublasStatus_t status = TileAt(blas, row, column);
        if (status != CUBLAS_STATUS_SUCCESS) return status;
      }
    }
    return CUBLAS_STATUS_SUCCESS;
  }
};

template <typename Real>
cublasStatus_t XtGemm(cublasXtHandle_t handle, cublasOperation_t ta, cublasOperation_t tb,
                      std::size_t m, std::size_t n, std::size_t k, const Real* alpha, const Real* a,
                      std::size_t lda, const Real* b, std::size_t ldb, const Real* beta, Real* c,
                      std::size_t ldc) {
  SPILLWAY_BLAS_REQUIRE(handle != nullptr, CUBLAS_STATUS_NOT_INITIALIZED);
  SPILLWAY_BLAS_REQUIRE(lda >= (ta == CUBLAS_OP_N ? m : k) && ldb >= (tb == CUBLAS_OP_N ? k : n) &&
                            ldc >= m && alpha != nullptr && beta != nullptr,
                        CUBLAS_STATUS_INVALID_VALUE);
  const ContextScope context(handle->device);
  cublasHandle_t blas = nullptr;
  SPILLWAY_BLAS_REQUIRE(context.is_current() && cublasCreate_v2(&blas) == CUBLAS_STATUS_SUCCESS,
                        CUBLAS_STATUS_NOT_INITIALIZED);
  TiledMatrix<Real> tiled_a(a, lda, handle->tile), tiled_b(b, ldb, handle->tile),
      tiled_c(c, ldc, handle->tile);
  const bool has_room = tiled_a.tile() && tiled_b.tile() && tiled_c.tile();
  cublasStatus_t status = CUBLAS_STATUS_ALLOC_FAILED;
  if (has_room) {
    TiledProduct<Real> product{ta,
                               tb,
                               m,
                               n,
                               k,
                               alpha,
                               beta,
                               tiled_a,
                               tiled_b,
                               tiled_c,
                               static_cast<std::size_t>(handle->tile)};
    status = product.Run(blas);
  }
  const bool is_over = Driver()->StreamSynchronize(nullptr) == CUDA_SUCCESS;
  cublasDestroy_v2(blas);
  return status == CUBLAS_STATUS_SUCCESS && !is_over ? CUBLAS_STATUS_EXECUTION_FAILED : status;
}

}  // namespace
}  // namespace spillway::simulator::dnn

using namespace spillway::simulator::dnn;

extern "C" {

cublasStatus_t cublasXtCreate(cublasXtHandle_t* handle) {
  SPILLWAY_BLAS_REQUIRE(handle != nullptr, CUBLAS_STATUS_INVALID_VALUE);
  SPILLWAY_BLAS_REQUIRE(EnsureContext(), CUBLAS_STATUS_NOT_INITIALIZED);
  *handle = new (std::nothrow) cublasXtContext{0, kTile, CUBLASXT_PINNING_DISABLED};
  return *handle != nullptr ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}
cublasStatus_t cublasXtDestroy(cublasXtHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasXtDeviceSelect(cublasXtHandle_t handle, int count, int devices[]) {
  SPILLWAY_BLAS_REQUIRE(handle != nullptr, CUBLAS_STATUS_NOT_INITIALIZED);
  SPILLWAY_BLAS_REQUIRE(count > 0 && devices != nullptr, CUBLAS_STATUS_INVALID_VALUE);
  handle->device = devices[0];
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasXtSetBlockDim(cublasXtHandle_t handle, int tile) {
  SPILLWAY_BLAS_REQUIRE(handle != nullptr, CUBLAS_STATUS_NOT_INITIALIZED);
  SPILLWAY_BLAS_REQUIRE(tile > 0, CUBLAS_STATUS_INVALID_VALUE);
  handle->tile = tile;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasXtGetBlockDim(cublasXtHandle_t handle, int* tile) {
  SPILLWAY_BLAS_REQUIRE(handle != nullptr, CUBLAS_STATUS_NOT_INITIALIZED);
  SPILLWAY_BLAS_REQUIRE(tile != nullptr, CUBLAS_STATUS_INVALID_VALUE);
  *tile = handle->tile;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasXtSetPinningMemMode(cublasXtHandle_t handle, cublasXtPinnedMemMode_t mode) {
  SPILLWAY_BLAS_REQUIRE(handle != nullptr, CUBLAS_STATUS_NOT_INITIALIZED);
  handle->pinning = mode;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasXtGetPinningMemMode(cublasXtHandle_t handle, cublasXtPinnedMemMode_t* mode) {
  SPILLWAY_BLAS_REQUIRE(handle != nullptr, CUBLAS_STATUS_NOT_INITIALIZED);
  SPILLWAY_BLAS_REQUIRE(mode != nullptr, CUBLAS_STATUS_INVALID_VALUE);
  *mode = handle->pinning;
  return CUBLAS_STATUS_SUCCESS;
}

#define SPILLWAY_BLAS_XT(T, Real)                                                               \
  cublasStatus_t cublasXt##T##gemm(cublasXtHandle_t handle, cublasOperation_t ta,               \
                                   cublasOperation_t tb, size_t m, size_t n, size_t k,          \
                                   const Real* alpha, const Real* a, size_t lda, const Real* b, \
                                   size_t ldb, const Real* beta, Real* c, size_t ldc) {         \
    return XtGemm(handle, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);                \
  }
SPILLWAY_BLAS_XT(S, float)
SPILLWAY_BLAS_XT(D, double)
#undef SPILLWAY_BLAS_XT

}  // extern "C"
