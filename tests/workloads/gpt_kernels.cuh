// The kernels of the transformer that are not matrix products.
//
// Used by: gpt_layers.cuh and gpt.cu.
// Shapes: rows are tokens (batch * sequence); heads are [batch, heads, sequence, width / heads].
// No kernel adds floats in an order that could change: sums run inside one thread, warp or block.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "common/reduce.cuh"

namespace workloads {

inline constexpr int kWarpsPerBlock = 4;             // of the softmax kernels: one row a warp
inline constexpr int kColumns = 32, kRowGroups = 8;  // of the block that sums columns

__device__ inline std::size_t global_index() {
  return static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

__global__ void embed(const std::int32_t* tokens, const float* token_table, const float* position_table,
                      int sequence, int width, std::size_t count, float* x) {
  const std::size_t i = global_index();
  if (i >= count) return;
  const std::size_t row = i / width, column = i % width;
  x[i] = token_table[static_cast<std::size_t>(tokens[row]) * width + column] +
         position_table[row % sequence * width + column];
}

// One block a vocabulary entry: the rows in which it occurs are rows[starts[entry] .. starts[entry + 1]).
template <bool kAccumulate>
__global__ void token_table_gradient(const float* dx, const std::int32_t* starts, const std::int32_t* rows,
                                     int width, float* gradient) {
  const int entry = static_cast<int>(blockIdx.x);
  for (int column = static_cast<int>(threadIdx.x); column < width; column += static_cast<int>(blockDim.x)) {
    float sum = 0.0f;
    for (int i = starts[entry]; i < starts[entry + 1]; ++i)
      sum += dx[static_cast<std::size_t>(rows[i]) * width + column];
    float* out = gradient + static_cast<std::size_t>(entry) * width + column;
    *out = kAccumulate ? *out + sum : sum;
  }
}

__global__ void position_table_gradient(const float* dx, int batch, std::size_t table_elements,
                                        float* gradient) {
  const std::size_t i = global_index();
  if (i >= table_elements) return;
  float sum = 0.0f;
  for (int b = 0; b < batch; ++b) sum += dx[b * table_elements + i];
  gradient[i] = sum;
}

// One block a row; the row is held in dynamic shared memory.
__global__ void layer_norm_forward(const float* x, const float* scale, const float* shift, int width,
                                   float epsilon, float* y, float* means, float* inverse_deviations) {
  extern __shared__ float held[];
  const float* row = x + static_cast<std::size_t>(blockIdx.x) * width;
  const int first = static_cast<int>(threadIdx.x), stride = static_cast<int>(blockDim.x);
  float sum = 0.0f;
  for (int i = first; i < width; i += stride) {
    held[i] = row[i];
    sum += held[i];
  }
  const float mean = block_reduce<Sum>(sum) / static_cast<float>(width);
  float squares = 0.0f;
  for (int i = first; i < width; i += stride) squares += (held[i] - mean) * (held[i] - mean);
  const float inverse = 1.0f / sqrtf(block_reduce<Sum>(squares) / static_cast<float>(width) + epsilon);
  for (int i = first; i < width; i += stride) {
    y[static_cast<std::size_t>(blockIdx.x) * width + i] = (held[i] - mean) * inverse * scale[i] + shift[i];
  }
  if (threadIdx.x == 0) {
    means[blockIdx.x] = mean;
    inverse_deviations[blockIdx.x] = inverse;
  }
}

// One block a row.
__global__ void layer_norm_backward(const float* x, const float* dy, const float* scale, const float* means,
                                    const float* inverse_deviations, int width, float* dx) {
  const std::size_t begin = static_cast<std::size_t>(blockIdx.x) * width;
  const float mean = means[blockIdx.x], inverse = inverse_deviations[blockIdx.x];
  const int first = static_cast<int>(threadIdx.x), stride = static_cast<int>(blockDim.x);
  float sum = 0.0f, projected = 0.0f;
  for (int i = first; i < width; i += stride) {
    const float scaled = dy[begin + i] * scale[i];
    sum += scaled;
    projected += scaled * (x[begin + i] - mean) * inverse;
  }
  sum = block_reduce<Sum>(sum) / static_cast<float>(width);
  projected = block_reduce<Sum>(projected) / static_cast<float>(width);
  for (int i = first; i < width; i += stride) {
    const float normal = (x[begin + i] - mean) * inverse;
    dx[begin + i] = (dy[begin + i] * scale[i] - sum - normal * projected) * inverse;
  }
}

// A block of kColumns x kRowGroups threads sums kColumns columns over all rows.
__global__ void layer_norm_parameter_gradients(const float* x, const float* dy, const float* means,
                                               const float* inverse_deviations, int rows, int width,
                                               float* d_scale, float* d_shift) {
  __shared__ float scale_sums[kRowGroups][kColumns];
  __shared__ float shift_sums[kRowGroups][kColumns];
  const int column = static_cast<int>(blockIdx.x) * kColumns + static_cast<int>(threadIdx.x);
  float scale_sum = 0.0f, shift_sum = 0.0f;
  for (int row = static_cast<int>(threadIdx.y); row < rows && column < width; row += kRowGroups) {
    const std::size_t i = static_cast<std::size_t>(row) * width + column;
    scale_sum += dy[i] * (x[i] - means[row]) * inverse_deviations[row];
    shift_sum += dy[i];
  }
  scale_sums[threadIdx.y][threadIdx.x] = scale_sum;
  shift_sums[threadIdx.y][threadIdx.x] = shift_sum;
  __syncthreads();
  if (threadIdx.y != 0 || column >= width) return;
  for (int group = 1; group < kRowGroups; ++group) {
    scale_sum += scale_sums[group][threadIdx.x];
    shift_sum += shift_sums[group][threadIdx.x];
  }
  d_scale[column] = scale_sum;
  d_shift[column] = shift_sum;
}

struct HeadShape {
  int sequence, heads, depth;
};

// Where element i of a [batch, heads, sequence, depth] tensor lies in a [batch, sequence, groups, heads,
// depth] one.
__device__ inline std::size_t packed_index(std::size_t i, HeadShape shape, int groups, int group) {
  const std::size_t d = i % shape.depth, t = i / shape.depth % shape.sequence;
  const std::size_t head = i / shape.depth / shape.sequence % shape.heads;
  const std::size_t b = i / shape.depth / shape.sequence / shape.heads;
  return (((b * shape.sequence + t) * groups + group) * shape.heads + head) * shape.depth + d;
}

__global__ void split_heads(const float* packed, HeadShape shape, int groups, int group, std::size_t count,
                            float* heads) {
  const std::size_t i = global_index();
  if (i < count) heads[i] = packed[packed_index(i, shape, groups, group)];
}

__global__ void merge_heads(const float* heads, HeadShape shape, int groups, int group, std::size_t count,
                            float* packed) {
  const std::size_t i = global_index();
  if (i < count) packed[packed_index(i, shape, groups, group)] = heads[i];
}

// One warp a row of scores; a token sees itself and those before it.
__global__ void causal_softmax_forward(const float* scores, int rows, int sequence, float* probabilities) {
  const int row = static_cast<int>(blockIdx.x) * kWarpsPerBlock + static_cast<int>(threadIdx.x) / 32;
  if (row >= rows) return;
  const int lane = static_cast<int>(threadIdx.x) % 32, visible = row % sequence + 1;
  const std::size_t begin = static_cast<std::size_t>(row) * sequence;
  float highest = Maximum::kNeutral;
  for (int i = lane; i < visible; i += 32) highest = Maximum::combine(highest, scores[begin + i]);
  highest = warp_reduce<Maximum>(highest);
  float sum = 0.0f;
  for (int i = lane; i < visible; i += 32) sum += expf(scores[begin + i] - highest);
  const float inverse = 1.0f / warp_reduce<Sum>(sum);
  for (int i = lane; i < sequence; i += 32) {
    probabilities[begin + i] = i < visible ? expf(scores[begin + i] - highest) * inverse : 0.0f;
  }
}

__global__ void causal_softmax_backward(const float* probabilities, const float* d_probabilities, int rows,
                                        int sequence, float* d_scores) {
  const int row = static_cast<int>(blockIdx.x) * kWarpsPerBlock + static_cast<int>(threadIdx.x) / 32;
  if (row >= rows) return;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::size_t begin = static_cast<std::size_t>(row) * sequence;
  float sum = 0.0f;
  for (int i = lane; i < sequence; i += 32) sum += probabilities[begin + i] * d_probabilities[begin + i];
  sum = warp_reduce<Sum>(sum);
  for (int i = lane; i < sequence; i += 32) {
    d_scores[begin + i] = probabilities[begin + i] * (d_probabilities[begin + i] - sum);
  }
}

inline constexpr float kGeluSlope = 0.7978845608f, kGeluCubic = 0.044715f;  // Hendrycks and Gimpel 2016

__global__ void gelu_forward(const float* x, std::size_t count, float* y) {
  const std::size_t i = global_index();
  if (i >= count) return;
  const float value = x[i];
  y[i] = 0.5f * value * (1.0f + tanhf(kGeluSlope * (value + kGeluCubic * value * value * value)));
}

__global__ void gelu_backward(const float* x, const float* dy, std::size_t count, float* dx) {
  const std::size_t i = global_index();
  if (i >= count) return;
  const float value = x[i];
  const float bend = tanhf(kGeluSlope * (value + kGeluCubic * value * value * value));
  const float slope = kGeluSlope * (1.0f + 3.0f * kGeluCubic * value * value);
  dx[i] = dy[i] * (0.5f * (1.0f + bend) + 0.5f * value * (1.0f - bend * bend) * slope);
}

__global__ void add(const float* a, const float* b, std::size_t count, float* sum) {
  const std::size_t i = global_index();
  if (i < count) sum[i] = a[i] + b[i];
}

// One block a row: its loss, and the gradient of the mean loss over all rows.
__global__ void cross_entropy(const float* logits, const std::int32_t* targets, int rows, int vocabulary,
                              float* row_losses, float* d_logits) {
  const std::size_t begin = static_cast<std::size_t>(blockIdx.x) * vocabulary;
  const int first = static_cast<int>(threadIdx.x), stride = static_cast<int>(blockDim.x);
  const int target = targets[blockIdx.x];
  float highest = Maximum::kNeutral;
  for (int i = first; i < vocabulary; i += stride) highest = Maximum::combine(highest, logits[begin + i]);
  highest = block_reduce<Maximum>(highest);
  float sum = 0.0f;
  for (int i = first; i < vocabulary; i += stride) sum += expf(logits[begin + i] - highest);
  sum = block_reduce<Sum>(sum);
  const float share = 1.0f / static_cast<float>(rows);
  for (int i = first; i < vocabulary; i += stride) {
    const float probability = expf(logits[begin + i] - highest) / sum;
    d_logits[begin + i] = (i == target ? probability - 1.0f : probability) * share;
  }
  if (threadIdx.x == 0) row_losses[blockIdx.x] = logf(sum) + highest - logits[begin + target];
}

}  // namespace workloads
