// A program that uses the GPU as its arguments say, in order, and prints each result.
//
//   alloc:MIB    "ok" or "full"        free         frees the newest allocation
//   kernels:N    N of a millisecond    launch:N     the same without waiting
//   h2d:MIB d2h:MIB  a copy            free_bytes   the driver's free memory
//   wait         reads a line, outside the driver
//   looks:N      N short calls of the driver, and 90 ms of sleep after each
//   compute:MS   computes without the driver, by this process's clock
//   time         "time NS" on the virtual clock
//   exec         becomes a program that sleeps
#include <cuda.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "simulator/kernels/image.h"

extern "C" unsigned long long spillway_sim_read(const char* key);

namespace {

namespace sim = spillway::simulator;

constexpr std::size_t kMebibyte = std::size_t{1} << 20;
constexpr std::size_t kCopyMost = 64 * kMebibyte;

void DoNothing(const sim::LaunchShape&, void* const*) {}
// One millisecond on an H200.
sim::KernelCost OneMillisecond(const sim::LaunchShape&, void* const*) { return {0, 4'300'000'000}; }
constexpr sim::KernelEntry kKernels[] = {{"millisecond", DoNothing, OneMillisecond, 0, nullptr}};
constexpr sim::Image kImage = {
    {'S', 'P', 'I', 'L', 'L', 'S', 'I', 'M'}, 1, 1, kKernels, 0, nullptr};

void Check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "%s: %d\n", what, static_cast<int>(result));
  std::exit(1);
}

class Tenant {
 public:
  Tenant() {
    Check(cuInit(0), "cuInit");
    CUcontext context = nullptr;
    Check(cuDevicePrimaryCtxRetain(&context, 0), "retain");
    Check(cuCtxSetCurrent(context), "current");
    CUmodule module = nullptr;
    Check(cuModuleLoadData(&module, &kImage), "module");
    Check(cuModuleGetFunction(&kernel_, module, "millisecond"), "function");
    Check(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), "stream");
  }

  void Do(const std::string& word) {
    const std::string name = word.substr(0, word.find(':'));
    const std::size_t number = name == word ? 0 : std::stoull(word.substr(name.size() + 1));
    if (name == "alloc") Allocate(number * kMebibyte);
    if (name == "free") Free();
    if (name == "launch" || name == "kernels") Launch(number);
    if (name == "h2d" || name == "d2h") Copy(name == "h2d", number * kMebibyte);
    if (name == "kernels" || name == "h2d" || name == "d2h")
      Check(cuStreamSynchronize(stream_), "synchronise");
    if (name == "wait") (void)std::getchar();
    if (name == "looks") Look(number);
    if (name == "compute") Compute(number);
    if (name == "time") std::printf("time %llu\n", spillway_sim_read("simulated_ns"));
    if (name == "free_bytes") SayFree();
    if (name == "exec") execl("/bin/sleep", "sleep", "1000", nullptr);
    std::fflush(stdout);
  }

 private:
  void Allocate(std::size_t size_bytes) {
    CUdeviceptr base = 0;
    const CUresult result = cuMemAlloc(&base, size_bytes);
    if (result == CUDA_SUCCESS) allocations_.push_back(base);
    std::puts(result == CUDA_SUCCESS               ? "ok"
              : result == CUDA_ERROR_OUT_OF_MEMORY ? "full"
                                                   : "error");
  }

  void Free() {
    Check(cuMemFree(allocations_.back()), "free");
    allocations_.pop_back();
  }

  void Launch(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      Check(cuLaunchKernel(kernel_, 1, 1, 1, 1, 1, 1, 0, stream_, nullptr, nullptr), "launch");
    }
  }

  void Copy(bool to_device, std::size_t size_bytes) {
    if (host_ == nullptr) {
      Check(cuMemHostAlloc(&host_, kCopyMost, 0), "host memory");
      Check(cuMemAlloc(&device_, kCopyMost), "device memory");
    }
    Check(to_device ? cuMemcpyHtoDAsync(device_, host_, size_bytes, stream_)
                    : cuMemcpyDtoHAsync(host_, device_, size_bytes, stream_),
          "copy");
  }

  void Look(std::size_t count) const {
    for (std::size_t i = 0; i < count; ++i) {
      Check(cuStreamQuery(stream_), "query");
      usleep(90'000);
    }
  }

  static void Compute(std::size_t milliseconds) {
    const clock_t end = clock() + static_cast<clock_t>(milliseconds) * CLOCKS_PER_SEC / 1000;
    while (clock() < end) {
    }
  }

  static void SayFree() {
    std::size_t free_bytes = 0;
    std::size_t total_bytes = 0;
    Check(cuMemGetInfo(&free_bytes, &total_bytes), "memory info");
    std::printf("free %zu\n", free_bytes / kMebibyte);
  }

  CUfunction kernel_ = nullptr;
  CUstream stream_ = nullptr;
  std::vector<CUdeviceptr> allocations_;
  void* host_ = nullptr;
  CUdeviceptr device_ = 0;
};

}  // namespace

int main(int count, char** words) {
  Tenant tenant;
  for (int i = 1; i < count; ++i) tenant.Do(words[i]);
  return 0;
}
