// A job for the tests of reports: does one task and ends, in its parent's environment.
#include <cuda.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace {

constexpr size_t kMiB = size_t{1} << 20;

void Must(CUresult result) {
  if (result != CUDA_SUCCESS) exit(3);
}

void Begin() {
  CUcontext context;
  Must(cuDevicePrimaryCtxRetain(&context, 0));
  Must(cuCtxSetCurrent(context));
}

CUdeviceptr Filled(size_t bytes) {
  CUdeviceptr address = 0;
  Must(cuMemAlloc(&address, bytes));
  Must(cuMemsetD32(address, 1, bytes / 4));
  return address;
}

void TwoLives() {
  Filled(40 * kMiB);
  Must(cuDevicePrimaryCtxReset(0));
  Begin();
  Filled(2 * kMiB);
}

CUtexObject Texture(CUdeviceptr base, size_t bytes) {
  CUDA_RESOURCE_DESC resource = {};
  resource.resType = CU_RESOURCE_TYPE_LINEAR;
  resource.res.linear = {base, CU_AD_FORMAT_UNSIGNED_INT32, 1, bytes};
  const CUDA_TEXTURE_DESC texture = {};
  CUtexObject object = 0;
  Must(cuTexObjectCreate(&object, &resource, &texture, nullptr));
  return object;
}

void FreeBeforeTheTexture() {
  const CUdeviceptr first = Filled(8 * kMiB);
  const CUtexObject object = Texture(first, kMiB);
  Must(cuMemFree(first));
  Must(cuTexObjectDestroy(object));
  Texture(Filled(4 * kMiB), kMiB);
}

[[noreturn]] void ExitInAHandler() {
  CUdeviceptr buffers[7];
  for (CUdeviceptr& buffer : buffers) buffer = Filled(8 * kMiB);
  signal(SIGALRM, [](int) { exit(0); });
  const itimerval soon{{0, 0}, {0, 20'000 + getpid() * 977 % 9'000}};
  setitimer(ITIMER_REAL, &soon, nullptr);
  for (;;) {
    for (const CUdeviceptr buffer : buffers) cuMemsetD32Async(buffer, 1, 1, nullptr);
  }
}

}  // namespace

int main(int count, char** arguments) {
  const std::string task = count == 2 ? arguments[1] : "";
  Must(cuInit(0));
  Begin();
  if (task == "allocate") {
    Filled(4 * kMiB);
  } else if (task == "reset") {
    TwoLives();
  } else if (task == "free-before-texture") {
    FreeBeforeTheTexture();
  } else if (task == "exit-in-handler") {
    ExitInAHandler();
  } else {
    return 2;
  }
  return 0;
}
