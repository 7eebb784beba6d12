#include "simulator/driver/device/tensor_map.h"
#include "simulator/driver/calls/call.h"

namespace spillway::simulator {
namespace {

// Tensor maps need compute capability 9.0, the wide form 10.0.
template <class Body>
CUresult OnDeviceSince(int major, Body body) {
  return WithContext([&](Call& call) {
    Require(call.sim.profile.compute_major >= major, CUDA_ERROR_NOT_SUPPORTED);
    body();
  });
}

}  // namespace
}  // namespace spillway::simulator

using namespace spillway::simulator;

SIM_API(cuTensorMapEncodeTiled)
(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
 const cuuint64_t* sizes, const cuuint64_t* strides, const cuuint32_t* box,
 const cuuint32_t* element_strides, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
 CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  return OnDeviceSince(9, [&] {
    EncodeTiled(map,
                {type, rank, address, sizes, strides, element_strides, interleave, swizzle,
                 promotion, fill},
                box);
  });
}

SIM_API(cuTensorMapEncodeIm2col)
(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
 const cuuint64_t* sizes, const cuuint64_t* strides, const int* lower_corner,
 const int* upper_corner, cuuint32_t channels, cuuint32_t pixels, const cuuint32_t* element_strides,
 CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
 CUtensorMapFloatOOBfill fill) {
  return OnDeviceSince(9, [&] {
    EncodeIm2col(map,
                 {type, rank, address, sizes, strides, element_strides, interleave, swizzle,
                  promotion, fill},
                 {lower_corner, upper_corner, channels, pixels});
  });
}

SIM_API(cuTensorMapEncodeIm2colWide)
(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
 const cuuint64_t* sizes, const cuuint64_t* strides, int lower_corner, int upper_corner,
 cuuint32_t channels, cuuint32_t pixels, const cuuint32_t* element_strides,
 CUtensorMapInterleave interleave, CUtensorMapIm2ColWideMode mode, CUtensorMapSwizzle swizzle,
 CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  return OnDeviceSince(10, [&] {
    EncodeIm2colWide(map,
                     {type, rank, address, sizes, strides, element_strides, interleave, swizzle,
                      promotion, fill},
                     {lower_corner, upper_corner, channels, pixels, mode});
  });
}

SIM_API(cuTensorMapReplaceAddress)(CUtensorMap* map, void* address) {
  return OnDeviceSince(9, [&] { ReplaceAddress(map, address); });
}
