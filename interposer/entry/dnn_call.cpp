#include "interposer/entry/dnn_call.h"

#include <algorithm>
#include <array>

namespace spillway::entry {
namespace {

bool IsAnyJob() {
  int place = 0;
  return interposer::Jobs().Next(&place) != nullptr;
}

// "The storage data type for alpha and beta is float for HALF and FLOAT tensors, and double for
// DOUBLE tensors." Other types are undocumented: 0. (Half of a double 1.0 is zero.)
std::size_t ScalarBytes(int type) {
  const bool is_float = type == dnn::kFloat || type == dnn::kHalf || type == dnn::kBfloat16;
  return type == dnn::kDouble ? sizeof(double) : is_float ? sizeof(float) : 0;
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

DnnCall::Extent DnnCall::OfTensor(dnn::Descriptor tensor) const {
  auto* const get = Sibling<dnn::GetTensorNd>("cudnnGetTensorNdDescriptor");
  int type = -1, count = 0, sizes[dnn::kMostDimensions], strides[dnn::kMostDimensions];
  if (!tensor || !get || get(tensor, dnn::kMostDimensions, &type, &count, sizes, strides) != 0)
    return {};
  if (count <= 0 || count > dnn::kMostDimensions) return {};
  dnn::Dimension dimensions[dnn::kMostDimensions];
  for (int i = 0; i < count; ++i) dimensions[i] = {sizes[i], strides[i]};
  return {dnn::ExtentOf(type, {dimensions, static_cast<std::size_t>(count)}), ScalarBytes(type)};
}

// A filter's elements follow each other in either format.
DnnCall::Extent DnnCall::OfFilter(dnn::Descriptor filter) const {
  auto* const get = Sibling<dnn::GetFilterNd>("cudnnGetFilterNdDescriptor");
  int type = -1, format = -1, count = 0, sizes[dnn::kMostDimensions];
  if (!filter || !get || get(filter, dnn::kMostDimensions, &type, &format, &count, sizes) != 0)
    return {};
  if (count <= 0 || count > dnn::kMostDimensions || (format != dnn::kNchw && format != dnn::kNhwc))
    return {};
  dnn::Dimension dimensions[dnn::kMostDimensions];
  std::int64_t elements = 1;
  for (int i = 0; i < count; ++i) {
    dimensions[i] = {sizes[i], elements};
    if (sizes[i] <= 0 || elements > dnn::kMostElements / sizes[i]) return {};
    elements *= sizes[i];
  }
  return {dnn::ExtentOf(type, {dimensions, static_cast<std::size_t>(count)}), ScalarBytes(type)};
}

void DnnCall::Read(const void* data, const Extent& extent) {
  extent.bytes ? ReadsBytes(data, extent.bytes) : Touches(data);
}

void DnnCall::Write(void* data, const Extent& extent, bool blends) {
  extent.bytes&& extent.leaves_no_gap && !blends ? OverwritesBytes(data, extent.bytes)
                                                 : Touches(data);
}

void DnnCall::Reads(const void* data, dnn::Descriptor tensor) {
  if (data) Read(data, OfTensor(tensor));
}

void DnnCall::Writes(void* data, dnn::Descriptor tensor, const void* beta) {
  if (!data) return;
  const Extent extent = OfTensor(tensor);
  Write(data, extent, !IsZero(beta, extent.scalar_bytes));
}

void DnnCall::Overwrites(void* data, dnn::Descriptor tensor) {
  if (data) Write(data, OfTensor(tensor), false);
}

void DnnCall::Clobbers(void* data, dnn::Descriptor tensor) {
  if (!data) return;
  const Extent extent = OfTensor(tensor);
  extent.bytes ? claims_.Clobbers(AddressOf(data), extent.bytes) : Touches(data);
}

void DnnCall::ReadsFilter(const void* data, dnn::Descriptor filter) {
  if (data) Read(data, OfFilter(filter));
}

void DnnCall::WritesFilter(void* data, dnn::Descriptor filter, const void* beta) {
  if (!data) return;
  const Extent extent = OfFilter(filter);
  Write(data, extent, !IsZero(beta, extent.scalar_bytes));
}

}  // namespace spillway::entry
