// A sparse matrix as operations see it: its three arrays are operands.
#pragma once

#include "simulator/sparse/handle.h"

namespace spillway::simulator::sparse {

struct SparseShape {
  std::int64_t rows, columns, count;
  std::int32_t wide_offsets, wide_indices;
  std::int32_t base;
  std::int32_t is_coordinates;

  std::uint64_t OffsetBytes() const {
    return (is_coordinates ? count : rows + 1) * (wide_offsets ? 8 : 4);
  }
  std::uint64_t IndexBytes() const { return count * (wide_indices ? 8 : 4); }
};

SparseShape ShapeOf(cusparseConstSpMatDescr_t matrix);

// CUSPARSE_STATUS_NOT_SUPPORTED for formats, types and indices without a simulation.
cusparseStatus_t CheckMatrix(cusparseConstSpMatDescr_t matrix);

template <typename Real>
class SparseView {
 public:
  SparseView(const SparseShape& shape, const void* offsets, const void* indices, const void* values)
      : shape_(shape),
        offsets_(offsets),
        indices_(indices),
        values_(static_cast<const Real*>(values)) {}

  std::int64_t Begin(std::int64_t row) const { return At(offsets_, shape_.wide_offsets, row); }
  std::int64_t End(std::int64_t row) const { return Begin(row + 1); }
  // Of coordinates alone.
  std::int64_t Row(std::int64_t position) const { return Begin(position); }
  std::int64_t Column(std::int64_t position) const {
    return At(indices_, shape_.wide_indices, position);
  }
  Real Value(std::int64_t position) const { return values_[position]; }

  template <typename Visit>
  void ForEach(Visit visit) const {
    if (shape_.is_coordinates) {
      for (std::int64_t i = 0; i < shape_.count; ++i) visit(Row(i), Column(i), Value(i));
      return;
    }
    for (std::int64_t row = 0; row < shape_.rows; ++row) {
      for (std::int64_t i = Begin(row); i < End(row); ++i) visit(row, Column(i), Value(i));
    }
  }

 private:
  std::int64_t At(const void* array, std::int32_t wide, std::int64_t i) const {
    const std::int64_t stored = wide ? static_cast<const std::int64_t*>(array)[i]
                                     : static_cast<const std::int32_t*>(array)[i];
    return stored - shape_.base;
  }

  const SparseShape& shape_;
  const void* offsets_;
  const void* indices_;
  const Real* values_;
};

}  // namespace spillway::simulator::sparse
