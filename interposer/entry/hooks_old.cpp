// Deprecated forms.
#include <algorithm>
#include <cstdint>

#include "interposer/entry/parameter_scan.h"
#include "interposer/entry/stored_parameters.h"
#include "interposer/entry/touch_hooks.h"

namespace spillway::entry {
namespace {

unsigned int Saturated(size_t bytes) {
  return static_cast<unsigned int>(std::min<size_t>(bytes, UINT32_MAX));
}

void AddStored(CUfunction kernel, Collector& add) {
  const auto stored = StoredParameters(kernel);
  ScratchParameters scratch;
  ScanBuffer(ParametersOf(kernel, &scratch), stored.data(), stored.size(), add);
}

}  // namespace
}  // namespace spillway::entry

using spillway::entry::AddStored;
using spillway::entry::ForEachJob;
using spillway::entry::JobMemory;
using spillway::entry::ReentryGuard;
using spillway::entry::Saturated;
using spillway::entry::StoreParameter;

SPILLWAY_EXPORT CUresult cuParamSetv(CUfunction f, int offset, void* value, unsigned int bytes) {
  const CUresult result = Driver().cuParamSetv(f, offset, value, bytes);
  if (result == CUDA_SUCCESS) StoreParameter(f, offset, value, bytes);
  return result;
}
SPILLWAY_EXPORT CUresult cuParamSeti(CUfunction f, int offset, unsigned int value) {
  const CUresult result = Driver().cuParamSeti(f, offset, value);
  if (result == CUDA_SUCCESS) StoreParameter(f, offset, &value, sizeof value);
  return result;
}

SPILLWAY_TOUCH(cuLaunch, false, nullptr, (CUfunction f), (f), Effect::kLaunches, AddStored(f, add))
SPILLWAY_TOUCH(cuLaunchGrid, false, nullptr, (CUfunction f, int width, int height),
               (f, width, height), Effect::kLaunches, AddStored(f, add))
SPILLWAY_TOUCH(cuLaunchGridAsync, false, s, (CUfunction f, int width, int height, CUstream s),
               (f, width, height, s), Effect::kLaunches, AddStored(f, add))

SPILLWAY_EXPORT CUresult cuMemGetInfo(unsigned int* free_bytes, unsigned int* total_bytes) {
  const CUresult result = Driver().cuMemGetInfo(free_bytes, total_bytes);
  size_t whole_free = 0, whole_total = 0;
  if (result != CUDA_SUCCESS || cuMemGetInfo_v2(&whole_free, &whole_total) != CUDA_SUCCESS)
    return result;
  if (free_bytes) *free_bytes = Saturated(whole_free);
  if (total_bytes) *total_bytes = Saturated(whole_total);
  return result;
}
SPILLWAY_EXPORT CUresult cuDeviceTotalMem(unsigned int* bytes, CUdevice device) {
  const CUresult result = Driver().cuDeviceTotalMem(bytes, device);
  size_t whole = 0;
  if (result == CUDA_SUCCESS && bytes && cuDeviceTotalMem_v2(&whole, device) == CUDA_SUCCESS)
    *bytes = Saturated(whole);
  return result;
}

SPILLWAY_EXPORT CUresult cuStreamDestroy(CUstream stream) {
  const ReentryGuard guard;
  if (guard.IsOutermost() && stream)
    ForEachJob([stream](JobMemory* job) { job->streams().StreamDestroyed(stream); });
  return Driver().cuStreamDestroy(stream);
}
