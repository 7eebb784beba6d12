// A library of the fuzzer's own that answers to a name of cuDNN: the fuzzer decides its work.
//
// Spillway knows cuDNN's calls by name and arguments alone, so programs meet its hooks above this
// library as above the real one. Used by features/recompute.cpp on program threads; plain values,
// the caller's.
//
// The call is a batch norm's: all of `x` and two parameters make `y`, and two statistics are
// updated. Or it is a convolution's: all of `x` makes `y` by way of a workspace. Its algorithms
// differ in workspace, determinism and math type.
#pragma once

#include <cuda.h>
#include <cudnn.h>

#include <cstdint>

namespace spillway::fuzz {

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

// The call's descriptor. `bytes` is a multiple of four.
struct LibraryTensor {
  std::uint64_t bytes = 0;
};

// 8 bytes each. Pointers may be null.
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
