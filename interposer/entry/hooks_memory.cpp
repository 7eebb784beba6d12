// The driver serves memory that is not ours to manage (another context, a device without virtual
// memory management). It counts against the budget.
#include "interposer/driver/driver_api.h"
#include "interposer/entry/around.h"
#include "interposer/entry/export.h"
#include "interposer/entry/memory_hooks.h"
#include "interposer/entry/pass_through.h"
#include "interposer/execute/turn_gate.h"
#include "interposer/record/call_sites.h"

namespace spillway::entry {
namespace {

using driver::Driver;
using interposer::JobForAllocation;

constexpr size_t kPitchBytes = 512;  // CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT or more

template <class Call>
CUresult AllocateFor(JobMemory* managed, CUdeviceptr* out, size_t bytes, Call call) {
  if (managed) return managed->allocations().Allocate(bytes, out);
  return PassThrough(
      interposer::JobHere(), bytes, [out] { return *out; }, call);
}

// Always inlined into the hook, whose return address is the program's.
template <class Call>
[[gnu::always_inline]] inline CUresult Allocate(CUdeviceptr* out, size_t bytes, Call call) {
  const ReentryGuard guard;
  if (!guard.IsOutermost() || !out || !bytes || !HasContext()) return call();
  const interposer::TurnPass turn;
  const CUresult result = AllocateFor(JobForAllocation(), out, bytes, call);
  if (result == CUDA_SUCCESS) interposer::call_sites::Sample(bytes, __builtin_return_address(0));
  return result;
}

}  // namespace
}  // namespace spillway::entry

using spillway::driver::Driver;
using spillway::entry::Allocate;
using spillway::entry::Free;
using spillway::entry::JobMemory;

SPILLWAY_EXPORT CUresult cuMemAlloc_v2(CUdeviceptr* out, size_t bytes) {
  return Allocate(out, bytes, [&] { return Driver().cuMemAlloc_v2(out, bytes); });
}

SPILLWAY_EXPORT CUresult cuMemAllocPitch_v2(CUdeviceptr* out, size_t* pitch, size_t width_bytes,
                                            size_t height, unsigned int element_bytes) {
  const auto call = [&] {
    return Driver().cuMemAllocPitch_v2(out, pitch, width_bytes, height, element_bytes);
  };
  const bool valid = pitch && (element_bytes == 4 || element_bytes == 8 || element_bytes == 16);
  const size_t row_bytes = spillway::interposer::RoundUp(width_bytes, spillway::entry::kPitchBytes);
  size_t bytes = 0;
  if (!valid || __builtin_mul_overflow(row_bytes, height, &bytes)) return call();
  bool served_by_driver = false;
  const CUresult result = Allocate(out, bytes, [&] {
    served_by_driver = true;
    return call();
  });
  if (result == CUDA_SUCCESS && !served_by_driver) *pitch = row_bytes;
  return result;
}

SPILLWAY_EXPORT CUresult cuMemFree_v2(CUdeviceptr address) {
  const bool is_pooled = spillway::interposer::Pools::Instance().PoolOf(address) != nullptr;
  return Free(
      address, [&](JobMemory* job) { return job->allocations().Free(address, is_pooled); },
      [&] { return Driver().cuMemFree_v2(address); });
}
