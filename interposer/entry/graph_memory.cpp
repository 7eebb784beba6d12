#include "interposer/entry/graph_memory.h"

#include <atomic>

#include "interposer/driver/calling_context.h"
#include "interposer/driver/driver_api.h"

namespace spillway::entry {
namespace {

using driver::Driver;
using interposer::JobMemory;

std::atomic<bool> is_any_left{false};

// The charge has this variable's address as its name.
constexpr char kLeft = 0;

// 0 if the driver does not tell.
size_t HeldForGraphs(CUdevice device) {
  cuuint64_t bytes = 0;
  const bool tells = Driver().cuDeviceGetGraphMemAttribute &&
                     Driver().cuDeviceGetGraphMemAttribute(
                         device, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &bytes) == CUDA_SUCCESS;
  return tells ? bytes : 0;
}

}  // namespace

void KeepLeftGraphMemory(JobMemory* job, size_t charged_bytes) {
  const driver::RelaxedCapture relaxed(true);
  if (Driver().cuDeviceGraphMemTrim) Driver().cuDeviceGraphMemTrim(job->device());
  const bool is_left = job->charges().KeepCharged(reinterpret_cast<std::uint64_t>(&kLeft),
                                                  charged_bytes, HeldForGraphs(job->device()));
  if (is_left) is_any_left = true;
}

void RecountLeftGraphMemory() {
  if (!is_any_left.load(std::memory_order_relaxed)) return;
  is_any_left = false;
  interposer::ForEachJob([](JobMemory* job) { KeepLeftGraphMemory(job, 0); });
}

}  // namespace spillway::entry
