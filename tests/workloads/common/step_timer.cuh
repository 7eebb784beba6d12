// Step times on the device, printed on standard error, measured by events in the compute stream as
// in frameworks. Between two steps a program may also pause, like one that waits for its data.
//
// Used by: the training loops, on the main thread: enqueued() after the last launch of a step,
// tell() once the step is done.
#pragma once

#include <cuda_runtime.h>

#include <chrono>
#include <cstdio>
#include <thread>

#include "check.cuh"
#include "device.cuh"

namespace workloads {

class StepTimer {
 public:
  explicit StepTimer(Device* device) : device_(device) {
    for (cudaEvent_t& event : ends_) CHECK(cudaEventCreate(&event));
  }
  StepTimer(const StepTimer&) = delete;
  StepTimer& operator=(const StepTimer&) = delete;
  ~StepTimer() {
    for (cudaEvent_t event : ends_) CHECK(cudaEventDestroy(event));
  }

  void enqueued() {
    if (device_->tells_times())
      CHECK(cudaEventRecord(ends_[steps_ % 2], device_->compute_stream()));
    ++steps_;
  }

  // From the end of the previous step to the end of this one; the first has none before it.
  void tell() const {
    if (steps_ == device_->pause_after()) pause();
    if (!device_->tells_times() || steps_ < 2) return;
    float milliseconds = 0.0f;
    CHECK(cudaEventElapsedTime(&milliseconds, ends_[steps_ % 2], ends_[(steps_ + 1) % 2]));
    std::fprintf(stderr, "step %d took %.6f ms\n", steps_, static_cast<double>(milliseconds));
  }

 private:
  void pause() const {
    for (int ms = 0; ms < device_->pause_ms() && !exists(device_->pause_until()); ++ms)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  Device* const device_;
  cudaEvent_t ends_[2] = {};
  int steps_ = 0;
};

}  // namespace workloads
