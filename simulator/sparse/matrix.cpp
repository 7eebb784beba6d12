#include "simulator/sparse/matrix.h"

namespace spillway::simulator::sparse {

SparseShape ShapeOf(cusparseConstSpMatDescr_t matrix) {
  return {matrix->rows,
          matrix->columns,
          matrix->count,
          matrix->offset_type == CUSPARSE_INDEX_64I,
          matrix->index_type == CUSPARSE_INDEX_64I,
          matrix->base == CUSPARSE_INDEX_BASE_ONE,
          matrix->format == CUSPARSE_FORMAT_COO};
}

cusparseStatus_t CheckMatrix(cusparseConstSpMatDescr_t matrix) {
  SPILLWAY_SPARSE_REQUIRE(matrix != nullptr, CUSPARSE_STATUS_INVALID_VALUE);
  const bool simulated =
      (matrix->format == CUSPARSE_FORMAT_CSR || matrix->format == CUSPARSE_FORMAT_COO) &&
      IsFloating(matrix->type) && IndexIsSimulated(matrix->offset_type) &&
      IndexIsSimulated(matrix->index_type);
  return simulated ? CUSPARSE_STATUS_SUCCESS : CUSPARSE_STATUS_NOT_SUPPORTED;
}

}  // namespace spillway::simulator::sparse
