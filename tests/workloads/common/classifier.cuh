// Softmax with cross entropy over a batch of labels, and the count of right answers.
//
// Used by: digits_cnn and convnet, on the main thread.
// Shapes: logits [rows, classes], labels [rows] in 0..classes-1 in device memory.
#pragma once

#include <cstdint>

#include "device.cuh"
#include "loss.cuh"
#include "tensor.cuh"

namespace workloads {

// row_losses[r] = -log p[r, labels[r]], from logarithms of probabilities.
__global__ void label_losses(const float* log_probabilities, const std::int32_t* labels, int rows,
                             int classes, float* row_losses) {
  const int row = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (row < rows)
    row_losses[row] = -log_probabilities[static_cast<std::size_t>(row) * classes + labels[row]];
}

// The gradient of the mean loss with respect to the logarithms of the probabilities.
__global__ void label_gradients(const std::int32_t* labels, int rows, int classes,
                                float* gradient) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= rows * classes) return;
  gradient[i] = i % classes == labels[i / classes] ? -1.0f / static_cast<float>(rows) : 0.0f;
}

__global__ void count_right_answers(const float* logits, const std::int32_t* labels, int rows,
                                    int classes, unsigned int* right) {
  const int row = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (row >= rows) return;
  const float* values = logits + static_cast<std::size_t>(row) * classes;
  int best = 0;
  for (int c = 1; c < classes; ++c) {
    if (values[c] > values[best]) best = c;
  }
  if (best == labels[row]) atomicAdd(right, 1u);
}

class Classifier {
 public:
  explicit Classifier(Device* device) : device_(device), meter_(device) {}

  // Records the mean loss and returns the logits' gradient.
  Tensor train(Tensor logits, const std::int32_t* labels) {
    const int rows = logits.shape.n, classes = logits.shape.c;
    const TensorDescriptor data(logits.shape);
    const float one = 1.0f, zero = 0.0f;
    Tensor log_probabilities = transient_tensor(device_->memory(), logits.shape);
    CHECK(cudnnSoftmaxForward(device_->cudnn(), CUDNN_SOFTMAX_LOG, CUDNN_SOFTMAX_MODE_CHANNEL, &one,
                              data, logits.data(), &zero, data, log_probabilities.data()));
    logits.reset();
    record_loss(log_probabilities, labels);
    Tensor d_log = transient_tensor(device_->memory(), log_probabilities.shape);
    label_gradients<<<blocks_for(d_log.elements()), kThreads, 0, device_->compute_stream()>>>(
        labels, rows, classes, d_log.data());
    CHECK_LAUNCH("label_gradients");
    Tensor d_logits = transient_tensor(device_->memory(), d_log.shape);
    CHECK(cudnnSoftmaxBackward(device_->cudnn(), CUDNN_SOFTMAX_LOG, CUDNN_SOFTMAX_MODE_CHANNEL,
                               &one, data, log_probabilities.data(), data, d_log.data(), &zero,
                               data, d_logits.data()));
    return d_logits;
  }

  float print_loss(int step) const { return meter_.print(step); }

  unsigned int right_answers(const Tensor& logits, const std::int32_t* labels) const {
    const SharedBuffer right = device_->memory()->transient(sizeof(unsigned int));
    CHECK(cudaMemsetAsync(right->address(), 0, right->size_bytes(), device_->compute_stream()));
    count_right_answers<<<blocks_for(static_cast<std::size_t>(logits.shape.n)), kThreads, 0,
                          device_->compute_stream()>>>(logits.data(), labels, logits.shape.n,
                                                       logits.shape.c, right->as<unsigned int>());
    CHECK_LAUNCH("count_right_answers");
    unsigned int count = 0;
    CHECK(cudaMemcpyAsync(&count, right->address(), sizeof(count), cudaMemcpyDeviceToHost,
                          device_->compute_stream()));
    device_->synchronize();
    return count;
  }

 private:
  void record_loss(const Tensor& log_probabilities, const std::int32_t* labels) {
    const int rows = log_probabilities.shape.n;
    const Tensor row_losses = transient_tensor(device_->memory(), {rows});
    label_losses<<<blocks_for(static_cast<std::size_t>(rows)), kThreads, 0,
                   device_->compute_stream()>>>(log_probabilities.data(), labels, rows,
                                                log_probabilities.shape.c, row_losses.data());
    CHECK_LAUNCH("label_losses");
    meter_.record(row_losses.data(), rows);
  }

  Device* const device_;
  LossMeter meter_;
};

}  // namespace workloads
