// forwarders.S asks for a symbol's target at its first call.
#include <atomic>

#include "interposer/driver/driver_api.h"
#include "interposer/driver/driver_loader.h"

namespace {

CUresult FunctionIsMissing() { return CUDA_ERROR_NOT_FOUND; }

CUresult DriverIsMissing() { return spillway::driver::kNoDriver; }

using Target = CUresult (*)();

}  // namespace

// Stores only lasting answers in the slot: there is none yet while this thread opens the driver.
extern "C" __attribute__((visibility("hidden"))) Target spillway_find_forward_target(
    const char* name, std::atomic<Target>* slot) {
  void* const driver = spillway::driver::OpenDriver();
  if (driver == nullptr) return &DriverIsMissing;
  Target target = reinterpret_cast<Target>(spillway::driver::FindInDriver(driver, name));
  if (target == nullptr) target = &FunctionIsMissing;
  slot->store(target, std::memory_order_relaxed);
  return target;
}
