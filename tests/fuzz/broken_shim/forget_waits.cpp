// A preload library that forgets every third wait of a stream for an event. The differential fuzzer
// must notice.
#include <cuda.h>
#include <dlfcn.h>

#include <atomic>

extern "C" __attribute__((visibility("default"))) CUresult cuStreamWaitEvent(CUstream stream,
                                                                             CUevent event,
                                                                             unsigned flags) {
  static const auto next = reinterpret_cast<CUresult (*)(CUstream, CUevent, unsigned)>(
      dlsym(RTLD_NEXT, "cuStreamWaitEvent"));
  static std::atomic<unsigned> calls = 0;
  if (++calls % 3 == 0) return CUDA_SUCCESS;
  return next(stream, event, flags);
}
