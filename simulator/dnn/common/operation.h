// An operation of the simulated libraries as a kernel: a plain struct of shapes and scalars.
//
// Invariants
//  1. An operation is trivially copyable and has no pointers: device memory is in its operands.
//  2. Each operand is touched before the operation runs: each 2 MiB, first and last byte. So an
//     illegal access happens while no library lock is held and no scratch memory is in use.
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

// kUpdate: reads the bytes that it overwrites. kClobbers: likewise, but no other result needs them.
enum class Access : std::uint32_t { kRead, kWrite, kUpdate, kClobbers };

struct Operand {
  const void* pointer;
  std::uint64_t size_bytes;
  Access access;
};

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

// An access fault happens only here.
void TouchRange(void* pointer, std::uint64_t size_bytes, Access access);

UseKind UseKindOf(Access access);

// FNV-1a.
std::uint64_t HashOf(const void* bytes, std::size_t size_bytes);

// So the results do not depend on the number of cores.
class OneThreadScope {
 public:
  OneThreadScope();
  ~OneThreadScope();
  OneThreadScope(const OneThreadScope&) = delete;
  OneThreadScope& operator=(const OneThreadScope&) = delete;

 private:
  int threads_before_;
};

// The API accepted the operation: prints the reason, ends the process.
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

// It finds its operands through pointers in device memory.
template <typename Op>
inline constexpr bool FollowsPointers = requires {
  Op::kFollowsPointers;
};

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

// Null when the driver refuses. Loading twice is harmless.
CUkernel LoadKernel(const Image& image);

template <typename Op>
CUkernel KernelOf() {
  static std::atomic<CUkernel> kernel{nullptr};
  if (kernel.load() == nullptr) kernel.store(LoadKernel(OperationImage<Op>::kImage));
  return kernel.load();
}

// Operands' bytes count once each; `extra_bytes` (workspace passes) come on top.
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
