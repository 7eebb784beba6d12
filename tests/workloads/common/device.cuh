// A trainer's two streams, library handles, memory, and the options common to all trainers.
//
// Used by: main() and the layers, on the main thread.
// Ownership: owns streams and handles; destroyed after every tensor.
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <cudnn.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "arguments.h"
#include "check.cuh"
#include "memory.cuh"

namespace workloads {

inline bool exists(const std::string& file) {
  return !file.empty() && access(file.c_str(), F_OK) == 0;
}

struct DeviceOptions {
  AllocatorKind allocator = AllocatorKind::kMalloc;
  std::size_t arena_bytes = 0;
  Lifetime lifetime = Lifetime::kDead;
  std::uint64_t seed = 1;
  std::size_t workspace_limit_bytes = std::size_t{8} << 20;
  int pause_after = 0;
  int pause_ms = 0;
  std::string pause_until;
  bool keeps_workspace = false;
  bool print_peak = false;
  bool print_times = false;
  bool print_layers = false;

  void declare(Arguments* arguments) {
    arguments->choice("allocator", &allocator,
                      {{"malloc", AllocatorKind::kMalloc},
                       {"async", AllocatorKind::kAsync},
                       {"arena", AllocatorKind::kArena}},
                      "where tensors come from");
    arguments->size("arena", &arena_bytes,
                    "the arena is one allocation of this size; 0: it is many");
    arguments->choice("free", &lifetime, {{"dead", Lifetime::kDead}, {"step", Lifetime::kStep}},
                      "free activations when dead or at the step's end");
    arguments->seed("seed", &seed, "seed of the weights and of the data's order");
    arguments->size("workspace", &workspace_limit_bytes,
                    "upper limit of a convolution's workspace");
    arguments->flag("keep-workspace", &keeps_workspace,
                    "one workspace for all convolutions, as large as the largest");
    arguments->flag("peak", &print_peak, "print the peak of live tensor bytes on standard error");
    arguments->flag("layers", &print_layers,
                    "print the shapes of each layer with weights on standard error");
    arguments->integer("pause-after", &pause_after, 0, 1000000,
                       "step behind which the program does nothing for a while; 0: none");
    arguments->integer("pause-ms", &pause_ms, 0, 3600000, "for how long at most");
    arguments->text("pause-until", &pause_until, "a file: where it exists, the pause is over");
    arguments->flag("times", &print_times, "print how long each step takes on standard error");
  }
};

class Device {
 public:
  explicit Device(const DeviceOptions& options) : options_(options) {
    int devices = 0;
    CHECK(cudaGetDeviceCount(&devices));
    if (devices == 0) fail(1, "there is no CUDA device");
    CHECK(cudaSetDevice(0));
    CHECK(cudaStreamCreateWithFlags(&compute_stream_, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&copy_stream_, cudaStreamNonBlocking));
    CHECK(cudnnCreate(&cudnn_));
    CHECK(cudnnSetStream(cudnn_, compute_stream_));
    CHECK(cublasCreate(&cublas_));
    CHECK(cublasSetStream(cublas_, compute_stream_));
    memory_ = std::make_unique<Memory>(options.allocator, options.arena_bytes, compute_stream_,
                                       options.lifetime, options.keeps_workspace);
  }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  ~Device() {
    memory_.reset();
    CHECK(cublasDestroy(cublas_));
    CHECK(cudnnDestroy(cudnn_));
    CHECK(cudaStreamDestroy(copy_stream_));
    CHECK(cudaStreamDestroy(compute_stream_));
  }

  cudaStream_t compute_stream() const { return compute_stream_; }
  cudaStream_t copy_stream() const { return copy_stream_; }
  cudnnHandle_t cudnn() const { return cudnn_; }
  cublasHandle_t cublas() const { return cublas_; }
  Memory* memory() const { return memory_.get(); }
  std::size_t workspace_limit_bytes() const { return options_.workspace_limit_bytes; }
  std::uint64_t seed() const { return options_.seed; }
  bool prints_layers() const { return options_.print_layers; }
  bool tells_times() const { return options_.print_times; }
  int pause_after() const { return options_.pause_after; }
  int pause_ms() const { return options_.pause_ms; }
  const std::string& pause_until() const { return options_.pause_until; }

  void synchronize() const { CHECK(cudaStreamSynchronize(compute_stream_)); }

  void report_peak() const {
    if (!options_.print_peak) return;
    std::fprintf(stderr, "peak live tensor bytes %zu, reserved by the arena %zu\n",
                 memory_->peak_live_bytes(), memory_->peak_reserved_bytes());
  }

 private:
  const DeviceOptions options_;
  cudaStream_t compute_stream_ = nullptr;
  cudaStream_t copy_stream_ = nullptr;
  cudnnHandle_t cudnn_ = nullptr;
  cublasHandle_t cublas_ = nullptr;
  std::unique_ptr<Memory> memory_;
};

inline constexpr int kThreads = 256;

// Blocks of kThreads threads that cover `elements`, one element a thread.
inline unsigned blocks_for(std::size_t elements) {
  return static_cast<unsigned>((elements + kThreads - 1) / kThreads);
}

}  // namespace workloads
