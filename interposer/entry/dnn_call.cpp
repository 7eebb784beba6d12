#include "interposer/entry/dnn_call.h"

#include <algorithm>
#include <array>

namespace spillway::entry {
namespace {

bool IsAnyJob() {
  int place = 0;
  return interposer::Jobs().Next(&place) != nullptr;
}

// 0: unknown type.
std::size_t ElementBytes(int type) {
  switch (type) {
    case dnn::kInt8:
    case dnn::kUint8:
      return 1;
    case dnn::kHalf:
    case dnn::kBfloat16:
      return 2;
    case dnn::kFloat:
    case dnn::kInt32:
      return 4;
    case dnn::kDouble:
    case dnn::kInt64:
      return 8;
    default:
      return 0;
  }
}

// "The storage data type for alpha and beta is float for HALF and FLOAT tensors, and double for
// DOUBLE tensors." Other types are undocumented: 0. (Half of a double 1.0 is zero.)
std::size_t ScalarBytes(int type) {
  const bool is_float = type == dnn::kFloat || type == dnn::kHalf || type == dnn::kBfloat16;
  return type == dnn::kDouble ? sizeof(double) : is_float ? sizeof(float) : 0;
}

// More than any memory has: such a description is invalid.
constexpr std::int64_t kMostElements = std::int64_t{1} << 56;

struct Dimension {
  std::int64_t size, stride;
};

// Whether each dimension, in order of strides, begins where the previous one ends.
bool LeaveNoGap(Dimension* first, Dimension* last) {
  std::sort(first, last,
            [](const Dimension& a, const Dimension& b) { return a.stride < b.stride; });
  std::int64_t next = 1;
  for (const Dimension* it = first; it != last; ++it) {
    if (it->size == 1) continue;
    if (it->stride != next) return false;
    next *= it->size;
  }
  return true;
}

}  // namespace

bool IsZero(const void* scalar, std::size_t bytes) {
  constexpr std::array<unsigned char, 8> kZero{};
  const auto* const first = static_cast<const unsigned char*>(scalar);
  return scalar && bytes > 0 && bytes <= kZero.size() &&
         std::equal(first, first + bytes, kZero.begin());
}

DnnCall::DnnCall(const void* real)
    : real_(real), is_wanted_(!library_call && !ForwardsEverything() && IsAnyJob()) {
  if (is_wanted_) library_call = &call_;
}

DnnCall::~DnnCall() {
  if (!is_wanted_) return;
  library_call = nullptr;
  const ReentryGuard guard;
  if (call_.job && guard.IsOutermost()) call_.job->proofs().CallEnded(call_);
}

DnnCall::Extent DnnCall::TensorExtent(dnn::Descriptor tensor) const {
  auto* const get = Sibling<dnn::GetTensorNd>("cudnnGetTensorNdDescriptor");
  int type = -1, count = 0, sizes[dnn::kMostDimensions], strides[dnn::kMostDimensions];
  if (!tensor || !get || get(tensor, dnn::kMostDimensions, &type, &count, sizes, strides) != 0)
    return {};
  if (count <= 0 || count > dnn::kMostDimensions || ElementBytes(type) == 0) return {};
  Dimension dimensions[dnn::kMostDimensions];
  std::int64_t last = 0;
  for (int i = 0; i < count; ++i) {
    if (sizes[i] <= 0 || strides[i] <= 0) return {};
    dimensions[i] = {sizes[i], strides[i]};
    last += std::int64_t{sizes[i] - 1} * strides[i];
    if (last >= kMostElements) return {};
  }
  return {static_cast<std::size_t>(last + 1) * ElementBytes(type),
          LeaveNoGap(dimensions, dimensions + count), ScalarBytes(type)};
}

DnnCall::Extent DnnCall::FilterExtent(dnn::Descriptor filter) const {
  auto* const get = Sibling<dnn::GetFilterNd>("cudnnGetFilterNdDescriptor");
  int type = -1, format = -1, count = 0, sizes[dnn::kMostDimensions];
  if (!filter || !get || get(filter, dnn::kMostDimensions, &type, &format, &count, sizes) != 0)
    return {};
  if (count <= 0 || count > dnn::kMostDimensions || (format != dnn::kNchw && format != dnn::kNhwc))
    return {};
  std::int64_t elements = 1;
  for (int i = 0; i < count; ++i) {
    if (sizes[i] <= 0 || elements > kMostElements / sizes[i]) return {};
    elements *= sizes[i];
  }
  return {static_cast<std::size_t>(elements) * ElementBytes(type), true, ScalarBytes(type)};
}

void DnnCall::Read(const void* data, const Extent& extent) {
  extent.bytes ? ReadsBytes(data, extent.bytes) : Touches(data);
}

void DnnCall::Write(void* data, const Extent& extent, bool blends) {
  extent.bytes&& extent.leaves_no_gap && !blends ? OverwritesBytes(data, extent.bytes)
                                                 : Touches(data);
}

void DnnCall::Reads(const void* data, dnn::Descriptor tensor) {
  if (data) Read(data, TensorExtent(tensor));
}

void DnnCall::Writes(void* data, dnn::Descriptor tensor, const void* beta) {
  if (!data) return;
  const Extent extent = TensorExtent(tensor);
  Write(data, extent, !IsZero(beta, extent.scalar_bytes));
}

void DnnCall::Overwrites(void* data, dnn::Descriptor tensor) {
  if (data) Write(data, TensorExtent(tensor), false);
}

void DnnCall::Clobbers(void* data, dnn::Descriptor tensor) {
  if (!data) return;
  const Extent extent = TensorExtent(tensor);
  extent.bytes ? claims_.Clobbers(AddressOf(data), extent.bytes) : Touches(data);
}

void DnnCall::ReadsFilter(const void* data, dnn::Descriptor filter) {
  if (data) Read(data, FilterExtent(filter));
}

void DnnCall::WritesFilter(void* data, dnn::Descriptor filter, const void* beta) {
  if (!data) return;
  const Extent extent = FilterExtent(filter);
  Write(data, extent, !IsZero(beta, extent.scalar_bytes));
}

}  // namespace spillway::entry
