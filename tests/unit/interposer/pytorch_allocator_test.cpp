#include "interposer/runtime/pytorch_allocator.h"

#include <gtest/gtest.h>

namespace spillway::interposer {
namespace {

TEST(PyTorchAllocatorTest, IsNamedByItsVariables) {
  using enum PyTorchAllocator;
  EXPECT_EQ(AllocatorOf(nullptr, nullptr, nullptr), kSegments);
  EXPECT_EQ(AllocatorOf(nullptr, "backend:cudaMallocAsync", nullptr), kPerTensor);
  EXPECT_EQ(AllocatorOf(nullptr, "max_split_size_mb:64,expandable_segments:True", nullptr),
            kExpandable);
  EXPECT_EQ(AllocatorOf("max_split_size_mb:64", "backend:cudaMallocAsync", nullptr), kSegments);
  EXPECT_EQ(AllocatorOf(nullptr, nullptr, "1"), kPerTensor);
}

TEST(PyTorchAllocatorTest, IsNoneInAProcessWithoutPyTorch) {
  EXPECT_EQ(ReadPyTorchAllocator(), PyTorchAllocator::kNone);
}

}  // namespace
}  // namespace spillway::interposer
