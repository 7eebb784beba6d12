// The addresses that count in structs which PyTorch's kernels take by value. (tensor_lists.h has
// one more)
//
// Note [Structs by value]
// Of a struct with room for the most dimensions or tensors only a part is set. The rest holds what
// was on the stack: by chance addresses of other tensors, others in each iteration, or of pinned
// memory, after which the host might see any work for good. The kernel's name tells the struct, and
// each launch must confirm its layout. Otherwise all words count.
//  - ReduceOp (sums, means, norms, extrema): tables for 25 dimensions, of 32-bit numbers alone, and
//    the second output of operations that have two. The layout is known from the end on: what
//    stands before depends on the operation. Source: PyTorch 2.0 to 2.12,
//    aten/src/ATen/native/cuda/Reduce.cuh.
//  - CatArrInputTensorMetadata (concatenations): the addresses of up to 128 tensors, of which the
//    grid's second dimension says how many are set. Each begins where the former ends.
//    Source: the same, Shape.cu.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/inline_vector.h"
#include "interposer/driver/cuda_abi.h"

namespace spillway::entry {

enum class ByValue : std::uint8_t { kNone, kReduction, kConcatenation };

// By the kernel's mangled name (Itanium C++ ABI).
ByValue StructOf(const char* kernel);
constexpr std::uint32_t ParameterOf(ByValue kind) { return kind == ByValue::kConcatenation; }

struct UsedWords {
  std::size_t head_bytes = 0;  // all words there count
  base::InlineVector<CUdeviceptr, 6> addresses;
};

// `grid_y`: of the launch. Nothing if the content does not confirm the layout.
std::optional<UsedWords> ReadStruct(ByValue kind, const void* data, std::size_t size_bytes,
                                    unsigned grid_y);

}  // namespace spillway::entry
