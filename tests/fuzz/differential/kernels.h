// The fuzzer's kernels write a hash of what they read, so that one wrong byte spreads.
//
// The image goes to cuModuleLoadData/cuLibraryLoadData of the simulated driver
// (simulator/kernels/image.h); bodies run on whichever thread drives it.
//
// Two kernels compute the same: kFlatKernel takes each field as a parameter of its own,
// kStructKernel one structure by value. A view's `pointer` may point anywhere into its allocation;
// the bytes meant are `displacement` further on. `decoy` is never looked at. `flops` says how long
// the kernel lasts in simulated time.
#pragma once

#include <cstdint>

#include "simulator/kernels/image.h"

namespace spillway::fuzz {

inline constexpr char kFlatKernel[] = "_ZN8spillway4fuzz7MixFlatE";
inline constexpr char kStructKernel[] = "_ZN8spillway4fuzz9MixStructE";
inline constexpr int kMaximumInputs = 3;
inline constexpr int kFlatParameters = 4 + 4 * (kMaximumInputs + 1);

struct ViewArgument {
  std::uint64_t pointer = 0;
  std::int64_t displacement = 0;
  std::uint64_t bytes = 0;
  std::uint64_t stride_bytes = 0;  // 0: every byte
};

struct MixArguments {
  std::uint32_t input_count = 0;
  std::uint64_t decoy = 0;
  ViewArgument out;
  ViewArgument in[kMaximumInputs];
  std::uint64_t seed = 0;
  std::uint64_t flops = 0;
};

// As compiled modules. The first has the two above and those of features without variables, which
// may be repeated; the second those with variables, which may not.
const void* KernelImage();
const void* VariablesImage();

}  // namespace spillway::fuzz
