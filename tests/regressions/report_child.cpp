// A job for the tests of reports: does one task and leaves; the environment is its parent's.
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
  } else if (task == "exit-in-handler") {
    ExitInAHandler();
  } else {
    return 2;
  }
  return 0;
}
