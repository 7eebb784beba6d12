// What cuDNN says of the program's tensor and filter descriptors.
//
// Called by the hooks on the program's threads. Asks the library that the program uses. A
// descriptor that is not understood has an empty extent.
#pragma once

#include "interposer/dnn/tensor_extent.h"
#include "interposer/entry/dnn_abi.h"
#include "interposer/entry/dnn_library.h"

namespace spillway::entry {

class DnnDescriptors {
 public:
  // `real`: a function of the library.
  explicit DnnDescriptors(const void* real) : real_(real) {}

  struct Extent : dnn::TensorExtent {
    std::size_t scalar_bytes = 0;  // of its scaling factors; 0: unknown
  };
  Extent OfTensor(dnn::Descriptor tensor) const;
  // Filters have no strides.
  Extent OfFilter(dnn::Descriptor filter) const;

  // "64x3x224x224"; "?" where it is not understood.
  static constexpr int kMostText = 48;
  void PrintTensor(dnn::Descriptor tensor, char (&text)[kMostText]) const;
  void PrintFilter(dnn::Descriptor filter, char (&text)[kMostText]) const;

  // Another function of the same library, or null. `name` is a literal.
  template <class Function>
  Function* Sibling(const char* name) const {
    return reinterpret_cast<Function*>(DnnSibling(real_, name));
  }

 private:
  struct Shape;
  Shape ShapeOfTensor(dnn::Descriptor tensor) const;
  Shape ShapeOfFilter(dnn::Descriptor filter) const;
  static Extent ExtentOf(const Shape& shape);
  static void Print(const Shape& shape, char (&text)[kMostText]);

  const void* const real_;
};

}  // namespace spillway::entry
