#include "interposer/driver/driver_api.h"
#include "interposer/entry/export.h"
#include "interposer/entry/program_waits.h"

using spillway::driver::Driver;
using spillway::entry::MarkBeforeProgramWait;
using spillway::entry::ReentryGuard;

// The other program may itself wait for this one.
#define SPILLWAY_EXTERNAL_WAIT(name, per_thread)                                          \
  SPILLWAY_EXPORT CUresult name(const CUexternalSemaphore* semaphores,                    \
                                const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS* parameters,    \
                                unsigned int count, CUstream stream) {                    \
    const ReentryGuard guard;                                                             \
    const CUresult may_act =                                                              \
        guard.IsOutermost() ? MarkBeforeProgramWait({stream, per_thread}) : CUDA_SUCCESS; \
    if (may_act != CUDA_SUCCESS) return may_act;                                          \
    return Driver().name(semaphores, parameters, count, stream);                          \
  }
SPILLWAY_EXTERNAL_WAIT(cuWaitExternalSemaphoresAsync, false)
SPILLWAY_EXTERNAL_WAIT(cuWaitExternalSemaphoresAsync_ptsz, true)
