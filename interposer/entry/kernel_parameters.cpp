#include "interposer/entry/kernel_parameters.h"

#include <array>
#include <atomic>

#include "interposer/driver/driver_api.h"

namespace spillway::entry {
namespace {

using driver::Driver;

constexpr size_t kSlots = 16384;  // far more than a program has kernels; beyond, layouts are asked each time
constexpr size_t kProbes = 32;

struct Slot {
  std::atomic<CUfunction> function{nullptr};
  std::atomic<const KernelParameters*> parameters{nullptr};
};
struct Table {
  std::array<Slot, kSlots> slots{};
};

constinit std::atomic<Table*> table{nullptr};

KernelParameters Ask(CUfunction function) {
  KernelParameters parameters;
  size_t offset = 0, size = 0;
  const auto as_function = [&](size_t i) { return Driver().cuFuncGetParamInfo(function, i, &offset, &size); };
  const auto as_kernel = [&](size_t i) {
    return Driver().cuKernelGetParamInfo(reinterpret_cast<CUkernel>(function), i, &offset, &size);
  };
  while (as_function(parameters.size_bytes.size()) == CUDA_SUCCESS) parameters.size_bytes.push_back(size);
  if (!parameters.size_bytes.empty()) return parameters;
  while (as_kernel(parameters.size_bytes.size()) == CUDA_SUCCESS) parameters.size_bytes.push_back(size);
  return parameters;
}

Table* CurrentTable() {
  Table* current = table.load(std::memory_order_acquire);
  if (current) return current;
  auto* made = new Table;
  if (table.compare_exchange_strong(current, made)) return made;
  delete made;
  return current;
}

size_t HashOf(CUfunction function) {
  return (reinterpret_cast<std::uintptr_t>(function) * 0x9e3779b97f4a7c15u) >> 50;
}

}  // namespace

const KernelParameters& ParametersOf(CUfunction function, KernelParameters* scratch) {
  Table* const current = CurrentTable();
  const size_t home = HashOf(function);
  for (size_t probe = 0; probe < kProbes; ++probe) {
    Slot& slot = current->slots[(home + probe) % kSlots];
    CUfunction seen = slot.function.load(std::memory_order_acquire);
    if (seen == nullptr && slot.function.compare_exchange_strong(seen, function)) {
      slot.parameters.store(new KernelParameters(Ask(function)), std::memory_order_release);
      seen = function;
    }
    if (seen != function) continue;
    if (const KernelParameters* known = slot.parameters.load(std::memory_order_acquire)) return *known;
    break;  // another thread is asking right now
  }
  *scratch = Ask(function);
  return *scratch;
}

// A reader may still walk the old table; unloading is rare and tables are small, so it is left to it.
void ForgetKernelParameters() { table.store(nullptr, std::memory_order_release); }

}  // namespace spillway::entry
