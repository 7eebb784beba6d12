#include "interposer/runtime/pytorch_allocator.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

namespace spillway::interposer {
namespace {

// From the kernel's list of mappings: the loader's own lock may be held by a thread that waits for
// us, and nothing is allocated. A name may lie across two pieces, so their seam is read twice.
bool IsMapped(const char* library) {
  const int file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  const size_t name_bytes = strlen(library);
  char piece[4096];
  size_t kept = 0;
  bool found = false;
  for (ssize_t bytes; !found && (bytes = read(file, piece + kept, sizeof piece - kept)) > 0;) {
    const size_t size = kept + static_cast<size_t>(bytes);
    found = memmem(piece, size, library, name_bytes) != nullptr;
    kept = size < name_bytes ? size : name_bytes;
    memmove(piece, piece + size - kept, kept);
  }
  close(file);
  return found;
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
  if (!IsMapped("/libc10_cuda.so")) return PyTorchAllocator::kNone;
  return AllocatorOf(getenv("PYTORCH_CUDA_ALLOC_CONF"), getenv("PYTORCH_ALLOC_CONF"),
                     getenv("PYTORCH_NO_CUDA_MEMORY_CACHING"));
}

}  // namespace spillway::interposer
