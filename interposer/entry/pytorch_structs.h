// The bytes that count in structs which PyTorch's kernels take by value. (tensor_lists.h has one
// more)
//
// Note [Structs by value]
// Of a struct with room for the most dimensions or tensors only a part is set. The rest holds what
// was on the stack: by chance addresses of other tensors, others in each iteration, or of pinned
// memory, after which the host might see any work for good. And no launch would be like another
// (execute/launch_kind.h). The kernel's name tells the struct, and each launch must confirm its
// layout. Otherwise all bytes count. Sources: PyTorch 2.0 to 2.12, aten/src/ATen/native/cuda.
//  - ReduceOp (sums, means, norms, extrema): tables for 25 dimensions, of 32-bit numbers alone, and
//    the second output of operations that have two. The layout is known from the end on: what
//    stands before depends on the operation. (Reduce.cuh)
//  - CatArrInputTensorMetadata (concatenations): the addresses of up to 128 tensors, of which the
//    grid's second dimension says how many are set. Each begins where the former ends. (Shape.cu)
//  - The closure of an element-wise kernel over tensors that are not contiguous (copies, sums): one
//    such table for all tensors, their addresses, and the program's function. Functions may hold
//    addresses and have any size, so the number of tensors must be in the kernel's name
//    (pytorch_names.h). The sizes in the table must give the launch's number of elements. nvcc lets
//    a closure end with the address of a copy on the heap of the host. (CUDALoops.cuh)
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/inline_vector.h"
#include "interposer/driver/cuda_abi.h"
#include "interposer/entry/pytorch_names.h"

namespace spillway::entry {

constexpr std::uint32_t ParameterOf(ByValue kind) { return kind != ByValue::kReduction; }

// Some bytes of a struct. All others may be addresses.
struct Part {
  enum class Kind : std::uint8_t {
    kNumbers,      // no address
    kStale,        // not set, and not read
    kHostPointer,  // set, but most likely read by the host alone
  };
  std::uint32_t offset = 0, bytes = 0;
  Kind kind = Kind::kNumbers;
};
using Parts = base::InlineVector<Part, 16>;  // in order, apart

// `count`: of the tensors that the launch concatenates, or of elements. Nothing if the content does
// not confirm the layout.
std::optional<Parts> ReadStruct(KnownStruct known, const void* data, std::size_t size_bytes,
                                std::uint32_t count);

}  // namespace spillway::entry
