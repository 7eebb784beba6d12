// The CUDA work of the tested processes: more memory than the budget, with every byte known.
//
// Any thread. Every failure ends the process with a line that names it, except the driver's
// shutdown: threads that still run at exit end there.
#pragma once

#include <cuda.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "simulator/kernels/image.h"

namespace spillway::processes {

inline constexpr std::size_t kMiB = std::size_t{1} << 20;

inline void Must(CUresult result, const char* call) {
  if (result == CUDA_SUCCESS) return;
  while (result == CUDA_ERROR_DEINITIALIZED) pause();
  std::printf("%s: %d\n", call, static_cast<int>(result));
  std::fflush(stdout);
  std::_Exit(90);
}
#define MUST(call) ::spillway::processes::Must(call, #call)

const simulator::Image& AddImage();
inline constexpr char kAddKernel[] = "add";

inline CUcontext Begin() {
  CUcontext context = nullptr;
  MUST(cuInit(0));
  MUST(cuDevicePrimaryCtxRetain(&context, 0));
  MUST(cuCtxSetCurrent(context));
  return context;
}

// Buffers of 8 MiB each, filled with one word each; eleven exceed a budget of 64 MiB.
class Work {
 public:
  static constexpr std::size_t kBytes = 8 * kMiB;
  explicit Work(int count = 11, CUstream stream = nullptr);
  ~Work();
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  // Adds 1 to every word, `rounds` times, without waiting for the device.
  void Enqueue(int rounds);
  // Ends the process when a word is wrong.
  void Check() const;
  const std::vector<CUdeviceptr>& buffers() const { return buffers_; }

 private:
  const CUstream stream_;
  CUmodule module_ = nullptr;
  CUfunction add_ = nullptr;
  std::vector<CUdeviceptr> buffers_;
  std::uint32_t rounds_ = 0;
};

}  // namespace spillway::processes
