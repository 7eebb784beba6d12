// Encoding does not access the address, so only launches with the map restore its memory.
#include "interposer/driver/driver_api.h"
#include "interposer/entry/export.h"
#include "interposer/execute/state/ordering_rules.h"
#include "interposer/ledger/tensor_maps.h"

namespace spillway::entry {
namespace {

CUresult Noted(CUresult result, const CUtensorMap* map, const void* address) {
  if (result == CUDA_SUCCESS && interposer::ordering_rules::kTensorMapsAreNoted) {
    interposer::NoteTensorMap(*map, reinterpret_cast<CUdeviceptr>(address));
  }
  return result;
}

}  // namespace
}  // namespace spillway::entry

using spillway::driver::Driver;
using spillway::entry::Noted;

SPILLWAY_EXPORT CUresult cuTensorMapEncodeTiled(
    CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
    const cuuint64_t* sizes, const cuuint64_t* strides, const cuuint32_t* box,
    const cuuint32_t* steps, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
    CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  return Noted(Driver().cuTensorMapEncodeTiled(map, type, rank, address, sizes, strides, box, steps,
                                               interleave, swizzle, promotion, fill),
               map, address);
}

SPILLWAY_EXPORT CUresult cuTensorMapEncodeIm2col(
    CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
    const cuuint64_t* sizes, const cuuint64_t* strides, const int* lower, const int* upper,
    cuuint32_t channels, cuuint32_t pixels, const cuuint32_t* steps,
    CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
    CUtensorMapFloatOOBfill fill) {
  return Noted(Driver().cuTensorMapEncodeIm2col(map, type, rank, address, sizes, strides, lower,
                                                upper, channels, pixels, steps, interleave, swizzle,
                                                promotion, fill),
               map, address);
}

SPILLWAY_EXPORT CUresult cuTensorMapEncodeIm2colWide(
    CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
    const cuuint64_t* sizes, const cuuint64_t* strides, int lower, int upper, cuuint32_t channels,
    cuuint32_t pixels, const cuuint32_t* steps, CUtensorMapInterleave interleave,
    CUtensorMapIm2ColWideMode mode, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
    CUtensorMapFloatOOBfill fill) {
  return Noted(Driver().cuTensorMapEncodeIm2colWide(map, type, rank, address, sizes, strides, lower,
                                                    upper, channels, pixels, steps, interleave,
                                                    mode, swizzle, promotion, fill),
               map, address);
}

SPILLWAY_EXPORT CUresult cuTensorMapReplaceAddress(CUtensorMap* map, void* address) {
  return Noted(Driver().cuTensorMapReplaceAddress(map, address), map, address);
}
