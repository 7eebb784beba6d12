// The contents of cublasLt's opaque descriptors. A program may place one on its stack, so all of it
// is in the opaque bytes.
//
// Invariants
//  1. A field holds exactly the bytes of its attribute, so that reading returns what was written.
//  2. An attribute that only tunes a real library has no effect. For one that would change the
//     result and is not simulated, cublasLtMatmul answers NOT_SUPPORTED.
#pragma once

#include <cublasLt.h>

#include <cstdint>
#include <type_traits>

namespace spillway::simulator::dnn {

struct Layout {
  std::uint32_t type;
  std::int32_t order;
  std::uint64_t rows;
  std::uint64_t columns;
  std::int64_t leading;
  std::int32_t batch_count;
  std::uint32_t batch_mode;
  std::int64_t batch_stride;
  std::int64_t plane_offset;
};

struct MatmulSettings {
  std::int32_t compute;
  std::int32_t scale_type;
  std::int32_t pointer_mode;
  std::int32_t transpose_a, transpose_b, transpose_c;
  std::int32_t fill_mode;
  std::uint32_t epilogue;
  void* bias;
  std::int64_t bias_stride;
  void* aux;
  std::int64_t aux_leading;
  std::int64_t aux_stride;
  std::int64_t alpha_stride;
  std::int32_t multiprocessor_target;
  std::int32_t bias_type;  // -1: that of D
  std::int32_t aux_type;   // likewise
  std::int8_t fast_accumulation;
  const void* scales[4];  // of A, B, C, D: for types of 8 bits and fewer
};

struct Preference {
  std::uint32_t search_mode;
  std::uint32_t reduction_mask;
  std::uint64_t workspace_bytes;
  std::uint32_t alignments[4];
  float waves;
  std::uint32_t unused;
  std::uint64_t implementation_mask;
};

template <typename Kept, typename Opaque>
Kept& KeptIn(Opaque* opaque) {
  static_assert(sizeof(Kept) <= sizeof(Opaque) && std::is_trivially_copyable_v<Kept>);
  return *reinterpret_cast<Kept*>(opaque->data);
}

inline Layout& Of(cublasLtMatrixLayout_t layout) { return KeptIn<Layout>(layout); }
inline MatmulSettings& Of(cublasLtMatmulDesc_t settings) {
  return KeptIn<MatmulSettings>(settings);
}
inline Preference& Of(cublasLtMatmulPreference_t preference) {
  return KeptIn<Preference>(preference);
}

}  // namespace spillway::simulator::dnn
