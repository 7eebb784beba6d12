// An operation of the simulated libraries as a kernel: a plain struct that carries its shapes and
// scalars by value, and the device memory it touches as separate pointer parameters.
//
// Called from: API functions (Enqueue, program's threads); the driver (RunOperation, whichever
// thread drives the simulated GPU, one body at a time). Ownership: nothing is kept; the operation
// and its operand list are copied into the launch's parameters.
//
// Invariants
//  1. An operation is trivially copyable and holds no pointers: all device memory is in its
//  operands.
//  2. Every operand is touched (each 2 MiB of it, first and last byte) before the operation runs,
//  so an illegal access
//     happens while no lock of oneDNN or OpenBLAS is held and no scratch memory is out.
//  3. The cost is fixed at enqueue time and travels with the launch.
//
// An operation looks like this:
//   struct Fill { static constexpr char kName[] = "fill"; static constexpr int kOperands = 1;
//                 float value; long count; void Run(void* const* operands) const; };
//   Enqueue(stream, Fill{1.0f, 10}, {Writes(y, 40)}, 10 /* flops */);
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <type_traits>
#include <utility>

#include "simulator/dnn/common/driver_link.h"
#include "simulator/kernels/image.h"

namespace spillway::simulator::dnn {

// kUpdate: the operation reads what it writes over. kClobbers: and none of its other results depend
// on that.
enum class Access : std::uint32_t { kRead, kWrite, kUpdate, kClobbers };

struct Operand {
  const void* pointer;
  std::uint64_t size_bytes;
  Access access;
};

// A null pointer makes an operand that is not there.
inline Operand Reads(const void* pointer, std::uint64_t size_bytes) {
  return {pointer, pointer != nullptr ? size_bytes : 0, Access::kRead};
}
inline Operand Writes(void* pointer, std::uint64_t size_bytes) {
  return {pointer, pointer != nullptr ? size_bytes : 0, Access::kWrite};
}
inline Operand Updates(void* pointer, std::uint64_t size_bytes) {
  return {pointer, pointer != nullptr ? size_bytes : 0, Access::kUpdate};
}
inline Operand Clobbers(void* pointer, std::uint64_t size_bytes) {
  return {pointer, pointer != nullptr ? size_bytes : 0, Access::kClobbers};
}

// The last parameter of every kernel of these libraries.
template <typename Op>
struct OperationBlock {
  struct Extent {
    std::uint64_t size_bytes;
    Access access;
  };
  KernelCost cost;
  std::uint64_t identity;
  std::array<Extent, Op::kOperands> extents;
  Op operation;
};

// Faults here, and only here, when part of [pointer, pointer + size) is not mapped for this access.
void TouchRange(void* pointer, std::uint64_t size_bytes, Access access);

UseKind UseKindOf(Access access);

// FNV-1a.
std::uint64_t HashOf(const void* bytes, std::size_t size_bytes);

// Fixes the calling thread's OpenMP team at one thread while it lives: the same bits whatever the
// number of cores.
class OneThreadScope {
 public:
  OneThreadScope();
  ~OneThreadScope();
  OneThreadScope(const OneThreadScope&) = delete;
  OneThreadScope& operator=(const OneThreadScope&) = delete;

 private:
  int threads_before_;
};

// Tells the user and ends the process: an operation was accepted by the API and cannot be computed.
[[noreturn]] void FailOperation(const char* operation_name, const char* reason);

template <typename Op>
void RunOperation(const LaunchShape&, void* const* arguments) {
  const auto& block = *static_cast<const OperationBlock<Op>*>(arguments[Op::kOperands]);
  std::array<void*, Op::kOperands> operands;
  for (int i = 0; i < Op::kOperands; ++i) {
    std::memcpy(&operands[i], arguments[i], sizeof(void*));
    TouchRange(operands[i], block.extents[i].size_bytes, block.extents[i].access);
  }
  const OneThreadScope one_thread;
  try {
    block.operation.Run(operands.data());
  } catch (const std::exception& error) {
    FailOperation(Op::kName, error.what());
  }
}

template <typename Op>
KernelCost CostOfOperation(const LaunchShape&, void* const* arguments) {
  return static_cast<const OperationBlock<Op>*>(arguments[Op::kOperands])->cost;
}

template <typename Op>
void UsesOfOperation(const LaunchShape&, void* const* arguments, KernelUseList* list) {
  static_assert(Op::kOperands <= KernelUseList::kMost);
  const auto& block = *static_cast<const OperationBlock<Op>*>(arguments[Op::kOperands]);
  list->identity = block.identity;
  list->count = Op::kOperands;
  for (int i = 0; i < Op::kOperands; ++i) {
    void* pointer = nullptr;
    std::memcpy(&pointer, arguments[i], sizeof(void*));
    list->uses[i] = {pointer, block.extents[i].size_bytes, UseKindOf(block.extents[i].access)};
  }
}

template <typename Op>
constexpr auto MakeParameters() {
  std::array<KernelParameter, Op::kOperands + 1> parameters{};
  for (std::uint32_t i = 0; i < Op::kOperands; ++i) parameters[i] = {8 * i, 8};
  parameters[Op::kOperands] = {8 * Op::kOperands, sizeof(OperationBlock<Op>)};
  return parameters;
}

// Operations that find what they compute on in device memory say so by `static constexpr bool
// kFollowsPointers = true`.
template <typename Op>
inline constexpr bool FollowsPointers = requires {
  Op::kFollowsPointers;
};

// One image per operation, loaded at the operation's first use.
template <typename Op>
struct OperationImage {
  static constexpr auto kParameters = MakeParameters<Op>();
  static constexpr KernelEntry kKernel = {Op::kName, RunOperation<Op>, CostOfOperation<Op>,
                                          Op::kOperands + 1, kParameters.data()};
  static constexpr KernelUses kUses = FollowsPointers<Op> ? nullptr : UsesOfOperation<Op>;
  static constexpr Image kImage = {{'S', 'P', 'I', 'L', 'L', 'S', 'I', 'M'},
                                   kImageVersionWithUses,
                                   1,
                                   &kKernel,
                                   0,
                                   nullptr,
                                   &kUses};
};

// Null when the driver refuses. Two threads that come first both load it, which does no harm.
CUkernel LoadKernel(const Image& image);

template <typename Op>
CUkernel KernelOf() {
  static std::atomic<CUkernel> kernel{nullptr};
  if (kernel.load() == nullptr) kernel.store(LoadKernel(OperationImage<Op>::kImage));
  return kernel.load();
}

// Enqueues the operation on the stream. `effective_flops` and `extra_bytes` shape its modelled
// time: the operands' own bytes are counted once each, whatever goes beyond that (workspace passes)
// is extra.
template <typename Op>
CUresult Enqueue(CUstream stream, const Op& operation,
                 const std::array<Operand, Op::kOperands>& operands, double effective_flops,
                 double extra_bytes = 0) {
  static_assert(std::is_trivially_copyable_v<Op>);
  static_assert(sizeof(OperationBlock<Op>) + 8 * Op::kOperands <= 4096,
                "kernel parameters hold 4 KiB");
  const CUkernel kernel = KernelOf<Op>();
  if (kernel == nullptr) return CUDA_ERROR_NOT_INITIALIZED;

  OperationBlock<Op> block;
  std::memset(static_cast<void*>(&block), 0, sizeof(block));
  block.operation = operation;
#if __has_builtin(__builtin_clear_padding)
  __builtin_clear_padding(&block.operation);
  block.identity = HashOf(&block.operation, sizeof(block.operation));
#endif
  std::array<void*, Op::kOperands + 1> parameters;
  std::array<const void*, Op::kOperands> pointers;
  std::uint64_t operand_bytes = 0;
  for (int i = 0; i < Op::kOperands; ++i) {
    pointers[i] = operands[i].pointer;
    block.extents[i] = {operands[i].size_bytes, operands[i].access};
    operand_bytes += operands[i].size_bytes;
    parameters[i] = &pointers[i];
  }
  parameters[Op::kOperands] = &block;
  block.cost = {static_cast<std::uint64_t>(effective_flops),
                operand_bytes + static_cast<std::uint64_t>(extra_bytes)};

  constexpr unsigned kBlockThreads = 256;
  const auto grid = static_cast<unsigned>(
      std::clamp<std::uint64_t>(operand_bytes / (16 * kBlockThreads), 1, 65535));
  return Driver()->LaunchKernel(reinterpret_cast<CUfunction>(kernel), grid, 1, 1, kBlockThreads, 1,
                                1, 0, stream, parameters.data(), nullptr);
}

}  // namespace spillway::simulator::dnn
