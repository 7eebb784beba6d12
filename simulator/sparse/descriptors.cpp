#include <cstring>
#include <new>

#include "simulator/sparse/handle.h"

namespace spillway::simulator::sparse {
namespace {

template <typename Made, typename Object>
cusparseStatus_t Make(Made** made, const Object& contents) {
  if (made == nullptr) return CUSPARSE_STATUS_INVALID_VALUE;
  *made = new (std::nothrow) Object(contents);
  return *made != nullptr ? CUSPARSE_STATUS_SUCCESS : CUSPARSE_STATUS_ALLOC_FAILED;
}

template <typename Value>
void Tell(Value* to, Value value) {
  if (to != nullptr) *to = value;
}

template <typename Matrix, typename Use>
cusparseStatus_t WithAttribute(Matrix matrix, cusparseSpMatAttribute_t attribute,
                               std::size_t size_bytes, Use use) {
  SPILLWAY_SPARSE_REQUIRE(matrix != nullptr, CUSPARSE_STATUS_INVALID_VALUE);
  SPILLWAY_SPARSE_REQUIRE(size_bytes == sizeof(cusparseFillMode_t), CUSPARSE_STATUS_INVALID_VALUE);
  if (attribute == CUSPARSE_SPMAT_FILL_MODE) {
    use(&matrix->fill);
  } else if (attribute == CUSPARSE_SPMAT_DIAG_TYPE) {
    use(&matrix->diagonal);
  } else {
    return CUSPARSE_STATUS_INVALID_VALUE;
  }
  return CUSPARSE_STATUS_SUCCESS;
}

}  // namespace
}  // namespace spillway::simulator::sparse

using namespace spillway::simulator::sparse;

extern "C" {

#define SPILLWAY_SPARSE_VECTORS(Const, Void, Dense, Sparse)                                   \
  cusparseStatus_t cusparseCreate##Const##DnVec(Dense* made, int64_t size, Void* values,      \
                                                cudaDataType type) {                          \
    SPILLWAY_SPARSE_REQUIRE(size >= 0, CUSPARSE_STATUS_INVALID_VALUE);                        \
    return Make(made, cusparseDnVecDescr{size, const_cast<void*>(values), type});             \
  }                                                                                           \
  cusparseStatus_t cusparseCreate##Const##SpVec(                                              \
      Sparse* made, int64_t size, int64_t count, Void* indices, Void* values,                 \
      cusparseIndexType_t index_type, cusparseIndexBase_t base, cudaDataType type) {          \
    SPILLWAY_SPARSE_REQUIRE(size >= 0 && count >= 0 && count <= size,                         \
                            CUSPARSE_STATUS_INVALID_VALUE);                                   \
    return Make(made, cusparseSpVecDescr{size, count, const_cast<void*>(indices),             \
                                         const_cast<void*>(values), index_type, base, type}); \
  }
SPILLWAY_SPARSE_VECTORS(, void, cusparseDnVecDescr_t, cusparseSpVecDescr_t)
SPILLWAY_SPARSE_VECTORS(Const, const void, cusparseConstDnVecDescr_t, cusparseConstSpVecDescr_t)
#undef SPILLWAY_SPARSE_VECTORS

#define SPILLWAY_SPARSE_MATRICES(Const, Void, Dense, Sparse)                                       \
  cusparseStatus_t cusparseCreate##Const##DnMat(Dense* made, int64_t rows, int64_t columns,        \
                                                int64_t leading, Void* values, cudaDataType type,  \
                                                cusparseOrder_t order) {                           \
    SPILLWAY_SPARSE_REQUIRE(                                                                       \
        rows >= 0 && columns >= 0 && leading >= (order == CUSPARSE_ORDER_COL ? rows : columns),    \
        CUSPARSE_STATUS_INVALID_VALUE);                                                            \
    return Make(made, cusparseDnMatDescr{rows, columns, leading, const_cast<void*>(values), type,  \
                                         order, 1, 0});                                            \
  }                                                                                                \
  cusparseStatus_t cusparseCreate##Const##Csr(                                                     \
      Sparse* made, int64_t rows, int64_t columns, int64_t count, Void* offsets, Void* indices,    \
      Void* values, cusparseIndexType_t offset_type, cusparseIndexType_t index_type,               \
      cusparseIndexBase_t base, cudaDataType type) {                                               \
    SPILLWAY_SPARSE_REQUIRE(rows >= 0 && columns >= 0 && count >= 0,                               \
                            CUSPARSE_STATUS_INVALID_VALUE);                                        \
    return Make(made, cusparseSpMatDescr{rows, columns, count, const_cast<void*>(offsets),         \
                                         const_cast<void*>(indices), const_cast<void*>(values),    \
                                         offset_type, index_type, base, type, CUSPARSE_FORMAT_CSR, \
                                         CUSPARSE_FILL_MODE_LOWER, CUSPARSE_DIAG_TYPE_NON_UNIT});  \
  }                                                                                                \
  cusparseStatus_t cusparseCreate##Const##Coo(Sparse* made, int64_t rows, int64_t columns,         \
                                              int64_t count, Void* row_indices, Void* indices,     \
                                              Void* values, cusparseIndexType_t index_type,        \
                                              cusparseIndexBase_t base, cudaDataType type) {       \
    SPILLWAY_SPARSE_REQUIRE(rows >= 0 && columns >= 0 && count >= 0,                               \
                            CUSPARSE_STATUS_INVALID_VALUE);                                        \
    return Make(made, cusparseSpMatDescr{rows, columns, count, const_cast<void*>(row_indices),     \
                                         const_cast<void*>(indices), const_cast<void*>(values),    \
                                         index_type, index_type, base, type, CUSPARSE_FORMAT_COO,  \
                                         CUSPARSE_FILL_MODE_LOWER, CUSPARSE_DIAG_TYPE_NON_UNIT});  \
  }
SPILLWAY_SPARSE_MATRICES(, void, cusparseDnMatDescr_t, cusparseSpMatDescr_t)
SPILLWAY_SPARSE_MATRICES(Const, const void, cusparseConstDnMatDescr_t, cusparseConstSpMatDescr_t)
#undef SPILLWAY_SPARSE_MATRICES

#define SPILLWAY_SPARSE_DESTROY(Name)                                                \
  cusparseStatus_t cusparseDestroy##Name(cusparseConst##Name##Descr_t description) { \
    delete description;                                                              \
    return CUSPARSE_STATUS_SUCCESS;                                                  \
  }
SPILLWAY_SPARSE_DESTROY(DnVec)
SPILLWAY_SPARSE_DESTROY(SpVec)
SPILLWAY_SPARSE_DESTROY(DnMat)
SPILLWAY_SPARSE_DESTROY(SpMat)
#undef SPILLWAY_SPARSE_DESTROY

#define SPILLWAY_SPARSE_VALUES(Name)                                                               \
  cusparseStatus_t cusparse##Name##SetValues(cusparse##Name##Descr_t description, void* values) {  \
    SPILLWAY_SPARSE_REQUIRE(description != nullptr, CUSPARSE_STATUS_INVALID_VALUE);                \
    description->values = values;                                                                  \
    return CUSPARSE_STATUS_SUCCESS;                                                                \
  }                                                                                                \
  cusparseStatus_t cusparse##Name##GetValues(cusparse##Name##Descr_t description, void** values) { \
    SPILLWAY_SPARSE_REQUIRE(description != nullptr, CUSPARSE_STATUS_INVALID_VALUE);                \
    Tell(values, description->values);                                                             \
    return CUSPARSE_STATUS_SUCCESS;                                                                \
  }
SPILLWAY_SPARSE_VALUES(DnVec)
SPILLWAY_SPARSE_VALUES(SpVec)
SPILLWAY_SPARSE_VALUES(DnMat)
SPILLWAY_SPARSE_VALUES(SpMat)
#undef SPILLWAY_SPARSE_VALUES

cusparseStatus_t cusparseDnVecGet(cusparseDnVecDescr_t vector, int64_t* size, void** values,
                                  cudaDataType* type) {
  SPILLWAY_SPARSE_REQUIRE(vector != nullptr, CUSPARSE_STATUS_INVALID_VALUE);
  Tell(size, vector->size);
  Tell(values, vector->values);
  Tell(type, vector->type);
  return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseSpMatGetSize(cusparseConstSpMatDescr_t matrix, int64_t* rows,
                                      int64_t* columns, int64_t* count) {
  SPILLWAY_SPARSE_REQUIRE(matrix != nullptr, CUSPARSE_STATUS_INVALID_VALUE);
  Tell(rows, matrix->rows);
  Tell(columns, matrix->columns);
  Tell(count, matrix->count);
  return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseSpMatGetFormat(cusparseConstSpMatDescr_t matrix,
                                        cusparseFormat_t* format) {
  SPILLWAY_SPARSE_REQUIRE(matrix != nullptr, CUSPARSE_STATUS_INVALID_VALUE);
  Tell(format, matrix->format);
  return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseSpMatGetIndexBase(cusparseConstSpMatDescr_t matrix,
                                           cusparseIndexBase_t* base) {
  SPILLWAY_SPARSE_REQUIRE(matrix != nullptr, CUSPARSE_STATUS_INVALID_VALUE);
  Tell(base, matrix->base);
  return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseCsrSetPointers(cusparseSpMatDescr_t matrix, void* offsets, void* indices,
                                        void* values) {
  SPILLWAY_SPARSE_REQUIRE(matrix != nullptr, CUSPARSE_STATUS_INVALID_VALUE);
  matrix->offsets = offsets;
  matrix->indices = indices;
  matrix->values = values;
  return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseSpMatSetAttribute(cusparseSpMatDescr_t matrix,
                                           cusparseSpMatAttribute_t attribute, void* data,
                                           size_t size_bytes) {
  return WithAttribute(matrix, attribute, size_bytes,
                       [&](auto* field) { std::memcpy(field, data, sizeof *field); });
}
cusparseStatus_t cusparseSpMatGetAttribute(cusparseConstSpMatDescr_t matrix,
                                           cusparseSpMatAttribute_t attribute, void* data,
                                           size_t size_bytes) {
  return WithAttribute(matrix, attribute, size_bytes,
                       [&](const auto* field) { std::memcpy(data, field, sizeof *field); });
}

}  // extern "C"
