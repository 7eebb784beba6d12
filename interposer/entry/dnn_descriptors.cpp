#include "interposer/entry/dnn_descriptors.h"

#include <stdio.h>

namespace spillway::entry {
namespace {

// "The storage data type for alpha and beta is float for HALF and FLOAT tensors, and double for
// DOUBLE tensors." Other types are undocumented: 0. (Half of a double 1.0 is zero.)
std::size_t ScalarBytes(int type) {
  const bool is_float = type == dnn::kFloat || type == dnn::kHalf || type == dnn::kBfloat16;
  return type == dnn::kDouble ? sizeof(double) : is_float ? sizeof(float) : 0;
}

}  // namespace

// Without dimensions: not understood.
struct DnnDescriptors::Shape {
  int type = -1;
  int count = 0;
  dnn::Dimension dimensions[dnn::kMostDimensions];
};

DnnDescriptors::Shape DnnDescriptors::ShapeOfTensor(dnn::Descriptor tensor) const {
  auto* const get = Sibling<dnn::GetTensorNd>("cudnnGetTensorNdDescriptor");
  Shape shape;
  int sizes[dnn::kMostDimensions], strides[dnn::kMostDimensions];
  if (!tensor || !get ||
      get(tensor, dnn::kMostDimensions, &shape.type, &shape.count, sizes, strides) != 0)
    return {};
  if (shape.count <= 0 || shape.count > dnn::kMostDimensions) return {};
  for (int i = 0; i < shape.count; ++i) shape.dimensions[i] = {sizes[i], strides[i]};
  return shape;
}

// A filter's elements follow each other in either format.
DnnDescriptors::Shape DnnDescriptors::ShapeOfFilter(dnn::Descriptor filter) const {
  auto* const get = Sibling<dnn::GetFilterNd>("cudnnGetFilterNdDescriptor");
  Shape shape;
  int format = -1, sizes[dnn::kMostDimensions];
  if (!filter || !get ||
      get(filter, dnn::kMostDimensions, &shape.type, &format, &shape.count, sizes) != 0)
    return {};
  if (shape.count <= 0 || shape.count > dnn::kMostDimensions ||
      (format != dnn::kNchw && format != dnn::kNhwc))
    return {};
  std::int64_t elements = 1;
  for (int i = 0; i < shape.count; ++i) {
    shape.dimensions[i] = {sizes[i], elements};
    if (sizes[i] <= 0 || elements > dnn::kMostElements / sizes[i]) return {};
    elements *= sizes[i];
  }
  return shape;
}

DnnDescriptors::Extent DnnDescriptors::ExtentOf(const Shape& shape) {
  if (shape.count == 0) return {};
  return {dnn::ExtentOf(shape.type, {shape.dimensions, static_cast<std::size_t>(shape.count)}),
          ScalarBytes(shape.type)};
}

DnnDescriptors::Extent DnnDescriptors::OfTensor(dnn::Descriptor tensor) const {
  return ExtentOf(ShapeOfTensor(tensor));
}

DnnDescriptors::Extent DnnDescriptors::OfFilter(dnn::Descriptor filter) const {
  return ExtentOf(ShapeOfFilter(filter));
}

void DnnDescriptors::Print(const Shape& shape, char (&text)[kMostText]) {
  int size = snprintf(text, kMostText, "%s", shape.count == 0 ? "?" : "");
  for (int i = 0; i < shape.count && size < kMostText; ++i)
    size += snprintf(text + size, static_cast<std::size_t>(kMostText - size), "%s%lld",
                     i == 0 ? "" : "x", static_cast<long long>(shape.dimensions[i].size));
}

void DnnDescriptors::PrintTensor(dnn::Descriptor tensor, char (&text)[kMostText]) const {
  Print(ShapeOfTensor(tensor), text);
}

void DnnDescriptors::PrintFilter(dnn::Descriptor filter, char (&text)[kMostText]) const {
  Print(ShapeOfFilter(filter), text);
}

}  // namespace spillway::entry
