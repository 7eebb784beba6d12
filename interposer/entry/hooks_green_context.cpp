// Green contexts share the memory of the device's primary context.
#include "interposer/driver/calling_context.h"
#include "interposer/driver/driver_api.h"
#include "interposer/entry/export.h"

using spillway::driver::Driver;

// The context has a default stream of its own while it is current.
SPILLWAY_EXPORT CUresult cuCtxFromGreenCtx(CUcontext* context, CUgreenCtx green) {
  const CUresult result = Driver().cuCtxFromGreenCtx(context, green);
  if (result == CUDA_SUCCESS) spillway::driver::KnownContexts::Note(*context);
  return result;
}
