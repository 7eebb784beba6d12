#include "simulator/dnn/cublaslt/descriptors.h"

#include <cstddef>
#include <cstring>
#include <limits>
#include <new>

namespace spillway::simulator::dnn {
namespace {

struct Field {
  int attribute;
  std::size_t offset_bytes;
  std::size_t size_bytes;
};

#define SPILLWAY_LT_FIELD(attribute, Kept, member) \
  { attribute, offsetof(Kept, member), sizeof(Kept::member) }
#define SPILLWAY_LT_ELEMENT(attribute, Kept, member, index) \
  { attribute, offsetof(Kept, member) + (index) * sizeof(Kept::member[0]), sizeof(Kept::member[0]) }

constexpr Field kLayoutFields[] = {
    SPILLWAY_LT_FIELD(CUBLASLT_MATRIX_LAYOUT_TYPE, Layout, type),
    SPILLWAY_LT_FIELD(CUBLASLT_MATRIX_LAYOUT_ORDER, Layout, order),
    SPILLWAY_LT_FIELD(CUBLASLT_MATRIX_LAYOUT_ROWS, Layout, rows),
    SPILLWAY_LT_FIELD(CUBLASLT_MATRIX_LAYOUT_COLS, Layout, columns),
    SPILLWAY_LT_FIELD(CUBLASLT_MATRIX_LAYOUT_LD, Layout, leading),
    SPILLWAY_LT_FIELD(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, Layout, batch_count),
    SPILLWAY_LT_FIELD(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, Layout, batch_stride),
    SPILLWAY_LT_FIELD(CUBLASLT_MATRIX_LAYOUT_PLANE_OFFSET, Layout, plane_offset),
    SPILLWAY_LT_FIELD(CUBLASLT_MATRIX_LAYOUT_BATCH_MODE, Layout, batch_mode)};

constexpr Field kMatmulFields[] = {
    SPILLWAY_LT_FIELD(CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, MatmulSettings, compute),
    SPILLWAY_LT_FIELD(CUBLASLT_MATMUL_DESC_SCALE_TYPE, MatmulSettings, scale_type),
    SPILLWAY_LT_FIELD(CUBLASLT_MATMUL_DESC_POINTER_MODE, MatmulSettings, pointer_mode),
    SPILLWAY_LT_FIELD(CUBLASLT_MATMUL_DESC_TRANSA, MatmulSettings, transpose_a),
    SPILLWAY_LT_FIELD(CUBLASLT_MATMUL_DESC_TRANSB, MatmulSettings, transpose_b),
    SPILLWAY_LT_FIELD(CUBLASLT_MATMUL_DESC_TRANSC, MatmulSettings, transpose_c),
    SPILLWAY_LT_FIELD(CUBLASLT_MATMUL_DESC_FILL_MODE, MatmulSettings, fill_mode),
    SPILLWAY_LT_FIELD(CUBLASLT_MATMUL_DESC_EPILOGUE, MatmulSettings, epilogue),
    SPILLWAY_LT_FIELD(CUBLASLT_MATMUL_DESC_BIAS_POINTER, MatmulSettings, bias),
    SPILLWAY_LT_FIELD(CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, MatmulSettings, bias_stride),
    SPILLWAY_LT_FIELD(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, MatmulSettings, aux),
    SPILLWAY_LT_FIELD(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, MatmulSettings, aux_leading),
    SPILLWAY_LT_FIELD(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, MatmulSettings, aux_stride),
    SPILLWAY_LT_FIELD(CUBLASLT_MATMUL_DESC_ALPHA_VECTOR_BATCH_STRIDE, MatmulSettings, alpha_stride),
    SPILLWAY_LT_FIELD(CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, MatmulSettings, multiprocessor_target),
    SPILLWAY_LT_FIELD(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, MatmulSettings, bias_type),
    SPILLWAY_LT_FIELD(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, MatmulSettings, aux_type),
    SPILLWAY_LT_FIELD(CUBLASLT_MATMUL_DESC_FAST_ACCUM, MatmulSettings, fast_accumulation),
    SPILLWAY_LT_ELEMENT(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, MatmulSettings, scales, 0),
    SPILLWAY_LT_ELEMENT(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, MatmulSettings, scales, 1),
    SPILLWAY_LT_ELEMENT(CUBLASLT_MATMUL_DESC_C_SCALE_POINTER, MatmulSettings, scales, 2),
    SPILLWAY_LT_ELEMENT(CUBLASLT_MATMUL_DESC_D_SCALE_POINTER, MatmulSettings, scales, 3)};

constexpr Field kPreferenceFields[] = {
    SPILLWAY_LT_FIELD(CUBLASLT_MATMUL_PREF_SEARCH_MODE, Preference, search_mode),
    SPILLWAY_LT_FIELD(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, Preference, workspace_bytes),
    SPILLWAY_LT_FIELD(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, Preference, reduction_mask),
    SPILLWAY_LT_ELEMENT(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, Preference, alignments, 0),
    SPILLWAY_LT_ELEMENT(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, Preference, alignments, 1),
    SPILLWAY_LT_ELEMENT(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, Preference, alignments, 2),
    SPILLWAY_LT_ELEMENT(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, Preference, alignments, 3),
    SPILLWAY_LT_FIELD(CUBLASLT_MATMUL_PREF_MAX_WAVES_COUNT, Preference, waves),
    SPILLWAY_LT_FIELD(CUBLASLT_MATMUL_PREF_IMPL_MASK, Preference, implementation_mask)};
#undef SPILLWAY_LT_FIELD
#undef SPILLWAY_LT_ELEMENT

template <std::size_t kCount>
const Field* Find(const Field (&fields)[kCount], int attribute) {
  for (const Field& field : fields) {
    if (field.attribute == attribute) return &field;
  }
  return nullptr;
}

template <std::size_t kCount>
cublasStatus_t Set(const Field (&fields)[kCount], void* opaque, int attribute, const void* from,
                   std::size_t size_bytes) {
  if (opaque == nullptr || from == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  const Field* const field = Find(fields, attribute);
  if (field == nullptr) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (size_bytes != field->size_bytes) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(static_cast<char*>(opaque) + field->offset_bytes, from, size_bytes);
  return CUBLAS_STATUS_SUCCESS;
}

// As documented, a null buffer of no bytes asks for the size alone.
template <std::size_t kCount>
cublasStatus_t Get(const Field (&fields)[kCount], const void* opaque, int attribute, void* to,
                   std::size_t size_bytes, std::size_t* written) {
  if (opaque == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  const Field* const field = Find(fields, attribute);
  if (field == nullptr) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (written != nullptr) *written = field->size_bytes;
  if (size_bytes == 0 && written != nullptr) return CUBLAS_STATUS_SUCCESS;
  if (to == nullptr || size_bytes != field->size_bytes) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(to, static_cast<const char*>(opaque) + field->offset_bytes, size_bytes);
  return CUBLAS_STATUS_SUCCESS;
}

template <typename Opaque>
cublasStatus_t Create(Opaque** made) {
  if (made == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *made = new (std::nothrow) Opaque{};
  return *made != nullptr ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}

template <typename Opaque>
cublasStatus_t Clear(Opaque* opaque, std::size_t size_bytes) {
  if (opaque == nullptr || size_bytes < sizeof(Opaque)) return CUBLAS_STATUS_INVALID_VALUE;
  *opaque = {};
  return CUBLAS_STATUS_SUCCESS;
}

template <typename Opaque>
cublasStatus_t Destroy(Opaque* opaque) {
  delete opaque;
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace
}  // namespace spillway::simulator::dnn

using namespace spillway::simulator::dnn;

extern "C" {

cublasStatus_t cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t layout, size_t size_bytes,
                                                 cudaDataType type, uint64_t rows, uint64_t columns,
                                                 int64_t leading) {
  const cublasStatus_t cleared = Clear(layout, size_bytes);
  if (cleared != CUBLAS_STATUS_SUCCESS) return cleared;
  Of(layout) = {
      static_cast<std::uint32_t>(type), CUBLASLT_ORDER_COL, rows, columns, leading, 1, 0, 0, 0};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type,
                                          uint64_t rows, uint64_t columns, int64_t leading) {
  const cublasStatus_t made = Create(layout);
  if (made != CUBLAS_STATUS_SUCCESS) return made;
  return cublasLtMatrixLayoutInit_internal(*layout, sizeof **layout, type, rows, columns, leading);
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  return Destroy(layout);
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                const void* from, size_t size_bytes) {
  return Set(kLayoutFields, layout, attribute, from, size_bytes);
}
cublasStatus_t cublasLtMatrixLayoutGetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute, void* to,
                                                size_t size_bytes, size_t* written) {
  return Get(kLayoutFields, layout, attribute, to, size_bytes, written);
}

cublasStatus_t cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t settings, size_t size_bytes,
                                               cublasComputeType_t compute,
                                               cudaDataType_t scale_type) {
  const cublasStatus_t cleared = Clear(settings, size_bytes);
  if (cleared != CUBLAS_STATUS_SUCCESS) return cleared;
  MatmulSettings& kept = Of(settings);
  kept.compute = compute;
  kept.scale_type = scale_type;
  kept.fill_mode = CUBLAS_FILL_MODE_FULL;
  kept.epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  kept.bias_type = -1;
  kept.aux_type = -1;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* settings, cublasComputeType_t compute,
                                        cudaDataType_t scale_type) {
  const cublasStatus_t made = Create(settings);
  if (made != CUBLAS_STATUS_SUCCESS) return made;
  return cublasLtMatmulDescInit_internal(*settings, sizeof **settings, compute, scale_type);
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t settings) {
  return Destroy(settings);
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t settings,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void* from, size_t size_bytes) {
  return Set(kMatmulFields, settings, attribute, from, size_bytes);
}
cublasStatus_t cublasLtMatmulDescGetAttribute(cublasLtMatmulDesc_t settings,
                                              cublasLtMatmulDescAttributes_t attribute, void* to,
                                              size_t size_bytes, size_t* written) {
  return Get(kMatmulFields, settings, attribute, to, size_bytes, written);
}

cublasStatus_t cublasLtMatmulPreferenceInit_internal(cublasLtMatmulPreference_t preference,
                                                     size_t size_bytes) {
  const cublasStatus_t cleared = Clear(preference, size_bytes);
  if (cleared != CUBLAS_STATUS_SUCCESS) return cleared;
  Preference& kept = Of(preference);
  kept.search_mode = CUBLASLT_SEARCH_BEST_FIT;
  kept.reduction_mask = CUBLASLT_REDUCTION_SCHEME_MASK;
  for (std::uint32_t& alignment : kept.alignments) alignment = 256;
  kept.implementation_mask = std::numeric_limits<std::uint64_t>::max();
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  const cublasStatus_t made = Create(preference);
  if (made != CUBLAS_STATUS_SUCCESS) return made;
  return cublasLtMatmulPreferenceInit_internal(*preference, sizeof **preference);
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  return Destroy(preference);
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* from, size_t size_bytes) {
  return Set(kPreferenceFields, preference, attribute, from, size_bytes);
}
cublasStatus_t cublasLtMatmulPreferenceGetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    void* to, size_t size_bytes, size_t* written) {
  return Get(kPreferenceFields, preference, attribute, to, size_bytes, written);
}

}  // extern "C"
