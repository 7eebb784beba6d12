// The addresses that a launch of PyTorch's multi_tensor_apply_kernel uses.
//
// Note [Tensor lists]
// PyTorch's optimisers, gradient clipping and mixed precision pass lists of tensors by value, in a
// struct of 4 KB, or 32 KB since CUDA 13. Entries behind the launch's last tensor are never set or
// left from earlier launches. Their stale addresses would keep gigabytes on the device, and change
// from iteration to iteration. The kernel's blocks reach a tensor only by their entry in
// block_to_tensor, so the entries up to the last block tell which addresses count. The kernel's
// name tells the struct, the number of lists and the type of scalars; layouts for other numbers
// have the same size. Each launch must confirm the layout: the size fits, the blocks take the
// tensors in order from the first, each tensor's chunks are numbered one by one, and as many as its
// elements need. Otherwise all words count. Source: PyTorch 2.0 to 2.12,
// aten/src/ATen/native/cuda/MultiTensorApply.cuh.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include "interposer/driver/cuda_abi.h"

namespace spillway::entry {

struct TensorLists {
  enum class Kind : std::uint8_t {
    kNone,
    kPlain,    // TensorListMetadata
    kScalars,  // TensorListScalarListMetadata
    kFused,    // FusedOptimizerTensorListMetadata
  };
  Kind kind = Kind::kNone;
  std::uint8_t depth = 0;         // the number of lists
  std::uint8_t scalar_bytes = 0;  // of kScalars

  bool operator==(const TensorLists&) const = default;
};

// By the kernel's mangled name (Itanium C++ ABI). kNone if any part of it is not understood.
TensorLists TensorListsOf(const char* kernel);

// Arrays of addresses in the struct, of which the first `used` entries count.
struct UsedTensorLists {
  std::size_t lists;
  std::size_t entries;       // of each list
  std::size_t used;          // of each list
  std::size_t steps_offset;  // of one more such array, in bytes; 0: none
};

// `blocks`: the grid's first dimension. Nothing if the content does not confirm a known layout.
std::optional<UsedTensorLists> ReadTensorLists(const TensorLists& lists, const void* data,
                                               std::size_t size_bytes, unsigned blocks);

// False, and nothing added: all words count.
template <class Add>
bool ScanTensorLists(const TensorLists& lists, const void* data, std::size_t size_bytes,
                     unsigned blocks, Add& add) {
  const std::optional<UsedTensorLists> used = ReadTensorLists(lists, data, size_bytes, blocks);
  if (!used) return false;
  const auto add_array = [&](std::size_t offset) {
    for (std::size_t i = 0; i < used->used; ++i) {
      CUdeviceptr word;
      std::memcpy(&word, static_cast<const char*>(data) + offset + i * sizeof word, sizeof word);
      add(word);
    }
  };
  for (std::size_t list = 0; list < used->lists; ++list)
    add_array(list * used->entries * sizeof(CUdeviceptr));
  if (used->steps_offset) add_array(used->steps_offset);
  return true;
}

}  // namespace spillway::entry
