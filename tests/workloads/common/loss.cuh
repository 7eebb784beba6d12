// The mean loss of a batch: summed on the device in a fixed order, copied to the host, printed with
// every bit.
//
// Used by: the training loops, on the main thread.
#pragma once

#include <cstddef>
#include <cstdio>

#include "device.cuh"
#include "reduce.cuh"

namespace workloads {

__global__ void mean_of_rows(const float* values, int count, float divisor, float* result) {
  float sum = 0.0f;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x))
    sum += values[i];
  sum = block_reduce<Sum>(sum);
  if (threadIdx.x == 0) result[0] = sum / divisor;
}

class LossMeter {
 public:
  explicit LossMeter(Device* device)
      : device_(device), mean_(device->memory()->persistent(sizeof(float))) {
    CHECK(cudaMallocHost(reinterpret_cast<void**>(&pinned_), sizeof(float)));
  }
  LossMeter(const LossMeter&) = delete;
  LossMeter& operator=(const LossMeter&) = delete;
  ~LossMeter() { CHECK(cudaFreeHost(pinned_)); }

  void record(const float* row_losses, int rows) {
    mean_of_rows<<<1, kThreads, 0, device_->compute_stream()>>>(
        row_losses, rows, static_cast<float>(rows), mean_->as<float>());
    CHECK_LAUNCH("mean_of_rows");
    CHECK(cudaMemcpyAsync(pinned_, mean_->address(), sizeof(float), cudaMemcpyDeviceToHost,
                          device_->compute_stream()));
  }

  // Waits for the step; returns the last recorded loss.
  float print(int step) const {
    device_->synchronize();
    std::printf("step %d loss %a\n", step, static_cast<double>(*pinned_));
    return *pinned_;
  }

 private:
  Device* const device_;
  const SharedBuffer mean_;
  float* pinned_ = nullptr;
};

}  // namespace workloads
