// A library of the fuzzer's own that answers to a name of cuDNN: one call, whose work is what the
// fuzzer wants it to be.
//
// Spillway knows what cuDNN's documentation promises of a call by its name and arguments alone, so
// programs meet its hooks above this library as above the real one. Used by features/recompute.cpp
// on program threads; plain values, the caller's.
//
// The call is a batch norm's: `y` is made from all of `x` and of two parameters, and two statistics
// are updated. Or it is a convolution's: `y` is made from all of `x`, by way of a workspace, as its
// algorithm would make it. Its algorithms differ in workspace, determinism and math type.
#pragma once

#include <cuda.h>
#include <cudnn.h>

#include <cstdint>

namespace spillway::fuzz {

// What the call is given as its handle.
struct LibraryWork {
  CUfunction kernel = nullptr;
  CUstream stream = nullptr;
  std::uint64_t seed = 0;
  std::uint64_t flops = 0;
  std::uint64_t workspace_bytes = 0;  // of the algorithm that a query names first
  bool is_extended = false;           // launched by cuLaunchKernelEx
  bool is_twofold = false;            // a second launch works on what the first one has made
  bool is_uneven =
      false;  // contrary to the promise what is made again elsewhere comes out differently
};

// What it is given as a descriptor: of so many bytes, a multiple of four.
struct LibraryTensor {
  std::uint64_t bytes = 0;
};

// The parameters of the kernel, each 8 bytes. Pointers may be null.
struct LibraryArguments {
  std::uint64_t y = 0;
  std::uint64_t y_bytes = 0;
  std::uint64_t x = 0;
  std::uint64_t x_bytes = 0;
  std::uint64_t scale = 0;
  std::uint64_t bias = 0;
  std::uint64_t mean = 0;             // updated
  std::uint64_t variance = 0;         // updated
  std::uint64_t parameter_bytes = 0;  // of each of the four
  std::uint64_t blends = 0;           // y is made from what it was, too
  std::uint64_t other_than = 0;       // y is made differently where ~mean is not this; 0: never
  std::uint64_t seed = 0;
  std::uint64_t flops = 0;
};
inline constexpr int kLibraryParameters = 13;
static_assert(sizeof(LibraryArguments) == kLibraryParameters * 8);

// A step of a convolution: `to` is made from all of `from`.
struct ConvolutionArguments {
  std::uint64_t to = 0;
  std::uint64_t to_bytes = 0;
  std::uint64_t from = 0;
  std::uint64_t from_bytes = 0;
  std::uint64_t seed = 0;
  std::uint64_t flops = 0;
};
inline constexpr int kConvolutionAlgorithms = 4;
inline constexpr std::uint64_t kHugeWorkspaceBytes = std::uint64_t{1} << 50;
inline constexpr int kConvolutionParameters = 6;
static_assert(sizeof(ConvolutionArguments) == kConvolutionParameters * 8);

}  // namespace spillway::fuzz
