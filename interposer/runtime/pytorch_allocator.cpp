#include "interposer/runtime/pytorch_allocator.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

namespace spillway::interposer {
namespace {

bool IsLoaded(const char* library) {
  void* const handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
  if (handle) dlclose(handle);
  return handle != nullptr;
}

}  // namespace

PyTorchAllocator AllocatorOf(const char* cuda_alloc_conf, const char* alloc_conf,
                             const char* no_caching) {
  const char* const conf = cuda_alloc_conf ? cuda_alloc_conf : alloc_conf ? alloc_conf : "";
  if (no_caching || strstr(conf, "cudaMallocAsync")) return PyTorchAllocator::kPerTensor;
  return strstr(conf, "expandable_segments:True") ? PyTorchAllocator::kExpandable
                                                  : PyTorchAllocator::kSegments;
}

PyTorchAllocator ReadPyTorchAllocator() {
  if (!IsLoaded("libc10_cuda.so")) return PyTorchAllocator::kNone;
  return AllocatorOf(getenv("PYTORCH_CUDA_ALLOC_CONF"), getenv("PYTORCH_ALLOC_CONF"),
                     getenv("PYTORCH_NO_CUDA_MEMORY_CACHING"));
}

}  // namespace spillway::interposer
