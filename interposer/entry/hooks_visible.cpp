// After these calls device memory may be visible to others, or host-visible memory reachable for
// kernels, without further calls. So all work counts as visible. (ledger/visible_work.h)
#include "interposer/driver/driver_api.h"
#include "interposer/entry/export.h"
#include "interposer/entry/mark_visible.h"

using spillway::driver::Driver;
using spillway::entry::MarkVisibleIf;

#define SPILLWAY_SHOWS(name, parameters, arguments) \
  SPILLWAY_EXPORT CUresult name parameters { return MarkVisibleIf(Driver().name arguments); }
SPILLWAY_SHOWS(cuMemImportFromShareableHandle,
               (CUmemGenericAllocationHandle * handle, void* shared,
                CUmemAllocationHandleType type),
               (handle, shared, type))
SPILLWAY_SHOWS(cuMemPoolExportToShareableHandle,
               (void* out, CUmemoryPool pool, CUmemAllocationHandleType type,
                unsigned long long flags),
               (out, pool, type, flags))
SPILLWAY_SHOWS(cuMemPoolImportFromShareableHandle,
               (CUmemoryPool * pool, void* shared, CUmemAllocationHandleType type,
                unsigned long long flags),
               (pool, shared, type, flags))
SPILLWAY_SHOWS(cuImportExternalMemory,
               (CUexternalMemory * memory, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC* description),
               (memory, description))
SPILLWAY_SHOWS(cuImportExternalSemaphore,
               (CUexternalSemaphore * semaphore,
                const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC* description),
               (semaphore, description))
SPILLWAY_SHOWS(cuGraphicsMapResources,
               (unsigned int count, CUgraphicsResource* resources, CUstream stream),
               (count, resources, stream))
SPILLWAY_SHOWS(cuGraphicsMapResources_ptsz,
               (unsigned int count, CUgraphicsResource* resources, CUstream stream),
               (count, resources, stream))
