// Forks before or after it has initialised CUDA. Parent and child print their answers.
#include <cuda.h>
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

namespace {

void Report(const char* who, void* driver) {
  const auto init = reinterpret_cast<CUresult (*)(unsigned)>(dlsym(driver, "cuInit"));
  const auto count = reinterpret_cast<CUresult (*)(int*)>(dlsym(driver, "cuDeviceGetCount"));
  const auto total =
      reinterpret_cast<CUresult (*)(size_t*, CUdevice)>(dlsym(driver, "cuDeviceTotalMem_v2"));
  int devices = -1;
  size_t total_bytes = 0;
  const CUresult answers[] = {init(0), count(&devices), total(&total_bytes, 0)};
  std::printf("%s cuInit=%d cuDeviceGetCount=%d devices=%d cuDeviceTotalMem=%d total_bytes=%zu\n",
              who, answers[0], answers[1], devices, answers[2], total_bytes);
  std::fflush(stdout);
}

}  // namespace

int main(int count, char** arguments) {
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == nullptr || count < 2) return 2;
  if (std::strcmp(arguments[1], "after") == 0) Report("parent", driver);
  const pid_t child = fork();
  if (child == 0) {
    Report("child", driver);
    return 0;
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}
