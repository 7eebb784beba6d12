// The kernels of the transformer other than matrix products.
//
// Used by: gpt_layers.cuh and gpt.cu. Shapes: rows are tokens (batch * sequence); heads are [batch,
// heads, sequence, width / heads]. Floats are always added in a fixed order: sums run inside one
// thread, warp or block.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "common/reduce.cuh"

namespace workloads {

inline constexpr int kWarpsPerBlock = 4;             // of the softmax kernels: one row a warp
inline constexpr int kColumns = 32, kRowGroups = 8;  // of the block that sums columns

// The row that a warp works on.
__device__ inline int warp_index() {
  return static_cast<int>(blockIdx.x) * kWarpsPerBlock + static_cast<int>(threadIdx.x) / 32;
}

__device__ inline std::size_t global_index() {
  return static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

// Blocks of kWarpsPerBlock warps that cover `rows`.
inline unsigned blocks_for_rows(int rows) {
  return static_cast<unsigned>((rows + kWarpsPerBlock - 1) / kWarpsPerBlock);
}

__global__ void embed(const std::int32_t* tokens, const float* token_table,
                      const float* position_table, int sequence, int width, std::size_t count,
                      float* x) {
  const std::size_t i = global_index();
  if (i >= count) return;
  const std::size_t row = i / width, column = i % width;
  x[i] = token_table[static_cast<std::size_t>(tokens[row]) * width + column] +
         position_table[row % sequence * width + column];
}

// One block a vocabulary entry: the rows in which it occurs are rows[starts[entry] .. starts[entry
// + 1]).
template <bool kAccumulate>
__global__ void token_table_gradient(const float* dx, const std::int32_t* starts,
                                     const std::int32_t* rows, int width, float* gradient) {
  const int entry = static_cast<int>(blockIdx.x);
  for (int column = static_cast<int>(threadIdx.x); column < width;
       column += static_cast<int>(blockDim.x)) {
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

// One warp a row.
__global__ void layer_norm_forward(const float* x, const float* scale, const float* shift, int rows,
                                   int width, float epsilon, float* y, float* means,
                                   float* inverse_deviations) {
  const int row = warp_index(), lane = static_cast<int>(threadIdx.x) % 32;
  if (row >= rows) return;
  const std::size_t begin = static_cast<std::size_t>(row) * width;
  float sum = 0.0f, squares = 0.0f;
  for (int i = lane; i < width; i += 32) sum += x[begin + i];
  const float mean = warp_reduce<Sum>(sum) / static_cast<float>(width);
  for (int i = lane; i < width; i += 32) squares += (x[begin + i] - mean) * (x[begin + i] - mean);
  const float inverse =
      1.0f / sqrtf(warp_reduce<Sum>(squares) / static_cast<float>(width) + epsilon);
  for (int i = lane; i < width; i += 32)
    y[begin + i] = (x[begin + i] - mean) * inverse * scale[i] + shift[i];
  if (lane == 0) {
    means[row] = mean;
    inverse_deviations[row] = inverse;
  }
}

// One warp a row.
__global__ void layer_norm_backward(const float* x, const float* dy, const float* scale,
                                    const float* means, const float* inverse_deviations, int rows,
                                    int width, float* dx) {
  const int row = warp_index(), lane = static_cast<int>(threadIdx.x) % 32;
  if (row >= rows) return;
  const std::size_t begin = static_cast<std::size_t>(row) * width;
  const float mean = means[row], inverse = inverse_deviations[row];
  float sum = 0.0f, projected = 0.0f;
  for (int i = lane; i < width; i += 32) {
    const float scaled = dy[begin + i] * scale[i];
    sum += scaled;
    projected += scaled * (x[begin + i] - mean) * inverse;
  }
  sum = warp_reduce<Sum>(sum) / static_cast<float>(width);
  projected = warp_reduce<Sum>(projected) / static_cast<float>(width);
  for (int i = lane; i < width; i += 32) {
    const float normal = (x[begin + i] - mean) * inverse;
    dx[begin + i] = (dy[begin + i] * scale[i] - sum - normal * projected) * inverse;
  }
}

// A block of kColumns x kRowGroups threads sums kColumns columns over all rows; its dynamic shared
// memory holds two floats a thread.
__global__ void layer_norm_parameter_gradients(const float* x, const float* dy, const float* means,
                                               const float* inverse_deviations, int rows, int width,
                                               float* d_scale, float* d_shift) {
  extern __shared__ float column_sums[];
  float* scale_sums = column_sums + threadIdx.x;
  float* shift_sums = scale_sums + kRowGroups * kColumns;
  const int column = static_cast<int>(blockIdx.x) * kColumns + static_cast<int>(threadIdx.x);
  float scale_sum = 0.0f, shift_sum = 0.0f;
  for (int row = static_cast<int>(threadIdx.y); row < rows && column < width; row += kRowGroups) {
    const std::size_t i = static_cast<std::size_t>(row) * width + column;
    scale_sum += dy[i] * (x[i] - means[row]) * inverse_deviations[row];
    shift_sum += dy[i];
  }
  scale_sums[threadIdx.y * kColumns] = scale_sum;
  shift_sums[threadIdx.y * kColumns] = shift_sum;
  __syncthreads();
  if (threadIdx.y != 0 || column >= width) return;
  for (int group = 1; group < kRowGroups; ++group) {
    scale_sum += scale_sums[group * kColumns];
    shift_sum += shift_sums[group * kColumns];
  }
  d_scale[column] = scale_sum;
  d_shift[column] = shift_sum;
}

struct HeadShape {
  int sequence, heads, depth;
};

// The position of element i of a [batch, heads, sequence, depth] tensor in a [batch, sequence,
// groups, heads, depth] one.
__device__ inline std::size_t packed_index(std::size_t i, HeadShape shape, int groups, int group) {
  const std::size_t d = i % shape.depth, t = i / shape.depth % shape.sequence;
  const std::size_t head = i / shape.depth / shape.sequence % shape.heads;
  const std::size_t b = i / shape.depth / shape.sequence / shape.heads;
  return (((b * shape.sequence + t) * groups + group) * shape.heads + head) * shape.depth + d;
}

__global__ void split_heads(const float* packed, HeadShape shape, int groups, int group,
                            std::size_t count, float* heads) {
  const std::size_t i = global_index();
  if (i < count) heads[i] = packed[packed_index(i, shape, groups, group)];
}

__global__ void merge_heads(const float* heads, HeadShape shape, int groups, int group,
                            std::size_t count, float* packed) {
  const std::size_t i = global_index();
  if (i < count) packed[packed_index(i, shape, groups, group)] = heads[i];
}

// One warp a row of scores; a token sees itself and earlier ones.
__global__ void causal_softmax_forward(const float* scores, int rows, int sequence,
                                       float* probabilities) {
  const int row = warp_index();
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

__global__ void causal_softmax_backward(const float* probabilities, const float* d_probabilities,
                                        int rows, int sequence, float* d_scores) {
  const int row = warp_index();
  if (row >= rows) return;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::size_t begin = static_cast<std::size_t>(row) * sequence;
  float sum = 0.0f;
  for (int i = lane; i < sequence; i += 32)
    sum += probabilities[begin + i] * d_probabilities[begin + i];
  sum = warp_reduce<Sum>(sum);
  for (int i = lane; i < sequence; i += 32) {
    d_scores[begin + i] = probabilities[begin + i] * (d_probabilities[begin + i] - sum);
  }
}

inline constexpr float kGeluSlope = 0.7978845608f,
                       kGeluCubic = 0.044715f;  // Hendrycks and Gimpel 2016

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

// One warp a row: its loss, and the gradient of the mean loss over all rows.
__global__ void cross_entropy(const float* logits, const std::int32_t* targets, int rows,
                              int vocabulary, float* row_losses, float* d_logits) {
  const int row = warp_index(), lane = static_cast<int>(threadIdx.x) % 32;
  if (row >= rows) return;
  const std::size_t begin = static_cast<std::size_t>(row) * vocabulary;
  float highest = Maximum::kNeutral, sum = 0.0f;
  for (int i = lane; i < vocabulary; i += 32)
    highest = Maximum::combine(highest, logits[begin + i]);
  highest = warp_reduce<Maximum>(highest);
  for (int i = lane; i < vocabulary; i += 32) sum += expf(logits[begin + i] - highest);
  sum = warp_reduce<Sum>(sum);
  const float share = 1.0f / static_cast<float>(rows);
  for (int i = lane; i < vocabulary; i += 32) {
    const float probability = expf(logits[begin + i] - highest) / sum;
    d_logits[begin + i] = (i == targets[row] ? probability - 1.0f : probability) * share;
  }
  if (lane == 0) row_losses[row] = logf(sum) + highest - logits[begin + targets[row]];
}

}  // namespace workloads
