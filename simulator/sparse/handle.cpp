#include "simulator/sparse/handle.h"

#include <new>

namespace spillway::simulator::sparse {
namespace {

template <typename Object>
cusparseStatus_t Make(Object** made, const Object& contents) {
  if (made == nullptr) return CUSPARSE_STATUS_INVALID_VALUE;
  *made = new (std::nothrow) Object(contents);
  return *made != nullptr ? CUSPARSE_STATUS_SUCCESS : CUSPARSE_STATUS_ALLOC_FAILED;
}

const char* NameOf(cusparseStatus_t status) {
#define SPILLWAY_SPARSE_NAME(name) \
  case name:                       \
    return #name
  switch (status) {
    SPILLWAY_SPARSE_NAME(CUSPARSE_STATUS_SUCCESS);
    SPILLWAY_SPARSE_NAME(CUSPARSE_STATUS_NOT_INITIALIZED);
    SPILLWAY_SPARSE_NAME(CUSPARSE_STATUS_ALLOC_FAILED);
    SPILLWAY_SPARSE_NAME(CUSPARSE_STATUS_INVALID_VALUE);
    SPILLWAY_SPARSE_NAME(CUSPARSE_STATUS_ARCH_MISMATCH);
    SPILLWAY_SPARSE_NAME(CUSPARSE_STATUS_MAPPING_ERROR);
    SPILLWAY_SPARSE_NAME(CUSPARSE_STATUS_EXECUTION_FAILED);
    SPILLWAY_SPARSE_NAME(CUSPARSE_STATUS_INTERNAL_ERROR);
    SPILLWAY_SPARSE_NAME(CUSPARSE_STATUS_MATRIX_TYPE_NOT_SUPPORTED);
    SPILLWAY_SPARSE_NAME(CUSPARSE_STATUS_ZERO_PIVOT);
    SPILLWAY_SPARSE_NAME(CUSPARSE_STATUS_NOT_SUPPORTED);
    SPILLWAY_SPARSE_NAME(CUSPARSE_STATUS_INSUFFICIENT_RESOURCES);
  }
#undef SPILLWAY_SPARSE_NAME
  return "CUSPARSE_STATUS_UNKNOWN";
}

}  // namespace
}  // namespace spillway::simulator::sparse

using namespace spillway::simulator::sparse;

extern "C" {

cusparseStatus_t cusparseCreate(cusparseHandle_t* handle) {
  SPILLWAY_SPARSE_REQUIRE(EnsureContext(), CUSPARSE_STATUS_NOT_INITIALIZED);
  return Make(handle, cusparseContext{nullptr, CUSPARSE_POINTER_MODE_HOST});
}
cusparseStatus_t cusparseDestroy(cusparseHandle_t handle) {
  delete handle;
  return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseGetVersion(cusparseHandle_t, int* version) {
  SPILLWAY_SPARSE_REQUIRE(version != nullptr, CUSPARSE_STATUS_INVALID_VALUE);
  *version = CUSPARSE_VERSION;
  return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseGetProperty(libraryPropertyType type, int* value) {
  const int parts[] = {CUSPARSE_VER_MAJOR, CUSPARSE_VER_MINOR, CUSPARSE_VER_PATCH};
  SPILLWAY_SPARSE_REQUIRE(value != nullptr && type >= MAJOR_VERSION && type <= PATCH_LEVEL,
                          CUSPARSE_STATUS_INVALID_VALUE);
  *value = parts[type];
  return CUSPARSE_STATUS_SUCCESS;
}
const char* cusparseGetErrorName(cusparseStatus_t status) { return NameOf(status); }
const char* cusparseGetErrorString(cusparseStatus_t status) { return NameOf(status); }

#define SPILLWAY_SPARSE_MODE(Set, Get, Handle, type, field)                      \
  cusparseStatus_t Set(Handle handle, type value) {                              \
    SPILLWAY_SPARSE_REQUIRE(handle != nullptr, CUSPARSE_STATUS_NOT_INITIALIZED); \
    handle->field = value;                                                       \
    return CUSPARSE_STATUS_SUCCESS;                                              \
  }                                                                              \
  cusparseStatus_t Get(cusparseHandle_t handle, type* value) {                   \
    SPILLWAY_SPARSE_REQUIRE(handle != nullptr, CUSPARSE_STATUS_NOT_INITIALIZED); \
    SPILLWAY_SPARSE_REQUIRE(value != nullptr, CUSPARSE_STATUS_INVALID_VALUE);    \
    *value = handle->field;                                                      \
    return CUSPARSE_STATUS_SUCCESS;                                              \
  }
SPILLWAY_SPARSE_MODE(cusparseSetStream, cusparseGetStream, cusparseHandle_t, cudaStream_t, stream)
SPILLWAY_SPARSE_MODE(cusparseSetPointerMode, cusparseGetPointerMode, cusparseHandle_t,
                     cusparsePointerMode_t, pointer_mode)
#undef SPILLWAY_SPARSE_MODE

cusparseStatus_t cusparseCreateMatDescr(cusparseMatDescr_t* description) {
  return Make(description, cusparseMatDescr{CUSPARSE_MATRIX_TYPE_GENERAL, CUSPARSE_FILL_MODE_LOWER,
                                            CUSPARSE_DIAG_TYPE_NON_UNIT, CUSPARSE_INDEX_BASE_ZERO});
}
cusparseStatus_t cusparseDestroyMatDescr(cusparseMatDescr_t description) {
  delete description;
  return CUSPARSE_STATUS_SUCCESS;
}
#define SPILLWAY_SPARSE_FIELD(Name, Value, field)                                      \
  cusparseStatus_t cusparseSetMat##Name(cusparseMatDescr_t description, Value value) { \
    SPILLWAY_SPARSE_REQUIRE(description != nullptr, CUSPARSE_STATUS_INVALID_VALUE);    \
    description->field = value;                                                        \
    return CUSPARSE_STATUS_SUCCESS;                                                    \
  }                                                                                    \
  Value cusparseGetMat##Name(const cusparseMatDescr_t description) { return description->field; }
SPILLWAY_SPARSE_FIELD(Type, cusparseMatrixType_t, type)
SPILLWAY_SPARSE_FIELD(FillMode, cusparseFillMode_t, fill)
SPILLWAY_SPARSE_FIELD(DiagType, cusparseDiagType_t, diagonal)
SPILLWAY_SPARSE_FIELD(IndexBase, cusparseIndexBase_t, base)
#undef SPILLWAY_SPARSE_FIELD

}  // extern "C"
