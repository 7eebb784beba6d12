// Kernels that reach memory through pointers in memory: they change no buffer that is a parameter.
//
// Used by: pointers.cu. A buffer is a Node: a header with pointers, then `words` words of data.
// Checksums cover only the data, because addresses differ between runs.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "common/random.h"

namespace workloads {

struct Node {
  Node* next;
  Node* child[2];
  std::uint64_t unused;
  std::uint32_t data[1];  // to the buffer's end
};

constexpr int kMostTargets = 16;

// The work of a launch on every node that it reaches.
struct Work {
  std::uint32_t words;
  std::uint32_t step;
};

// Pointers by value, as frameworks pass them to multi-tensor kernels or copy them to constant
// memory.
struct NodeTable {
  Node* nodes[kMostTargets];
  int count;
};

__device__ Node* global_nodes[kMostTargets];
__device__ Node* global_head;
__constant__ NodeTable constant_nodes;

// A thread's part of `count` words. It takes neighbours: the simulated device runs one thread after
// another, so a stride of all threads would miss its caches.
struct Part {
  std::uint32_t begin, end;
};

__device__ inline Part part_of(std::uint32_t count) {
  const std::uint32_t threads = gridDim.x * blockDim.x;
  const std::uint32_t each = count / threads + (count % threads != 0 ? 1 : 0);
  const std::uint64_t begin = std::uint64_t{each} * (blockIdx.x * blockDim.x + threadIdx.x);
  if (begin >= count) return {count, count};
  return {static_cast<std::uint32_t>(begin),
          static_cast<std::uint32_t>(begin + each < count ? begin + each : count)};
}

__device__ inline void mix_node(Node* node, Work work) {
  const Part part = part_of(work.words);
  for (std::uint32_t i = part.begin; i < part.end; ++i) {
    node->data[i] = static_cast<std::uint32_t>(
        mix_bits(node->data[i] + (static_cast<std::uint64_t>(work.step) << 32) + i));
  }
}

__global__ void fill_node(Node* node, std::uint64_t seed, std::uint32_t words) {
  const Part part = part_of(words);
  for (std::uint32_t i = part.begin; i < part.end; ++i) {
    node->data[i] = static_cast<std::uint32_t>(random_bits(seed, 0, i));
  }
}

// Uses memory that no pointer leads to.
__global__ void mix_one(Node* node, Work work) { mix_node(node, work); }

__global__ void mix_table(Node* const* table, int count, Work work) {
  for (int i = 0; i < count; ++i) mix_node(table[i], work);
}

__global__ void mix_global(int count, Work work) {
  for (int i = 0; i < count; ++i) mix_node(global_nodes[i], work);
}

__global__ void mix_constant(Work work) {
  for (int i = 0; i < constant_nodes.count; ++i) mix_node(constant_nodes.nodes[i], work);
}

__global__ void mix_list(Node* head, Work work) {
  for (Node* node = head; node != nullptr; node = node->next) mix_node(node, work);
}

__global__ void mix_global_list(Work work) {
  for (Node* node = global_head; node != nullptr; node = node->next) mix_node(node, work);
}

// Depth first with its own stack: trees here are at most kMostTargets deep.
__global__ void mix_tree(Node* root, Work work) {
  Node* waiting[kMostTargets + 1];
  int depth = 0;
  if (root != nullptr) waiting[depth++] = root;
  while (depth > 0) {
    Node* const node = waiting[--depth];
    mix_node(node, work);
    for (Node* child : node->child) {
      if (child != nullptr) waiting[depth++] = child;
    }
  }
}

// One thread: writes a table that only kernels write.
__global__ void write_table(Node** table, NodeTable nodes) {
  for (int i = 0; i < nodes.count; ++i) table[i] = nodes.nodes[i];
}

// One thread, one node a launch: inserts the new node at the list's front, or in the tree by its
// key.
__global__ void push_front(Node** head, Node* node) {
  node->next = *head;
  *head = node;
}

__global__ void push_front_global(Node* node) {
  node->next = global_head;
  global_head = node;
}

__global__ void insert(Node** root, Node* node) {
  node->child[0] = node->child[1] = nullptr;
  Node** place = root;
  while (*place != nullptr) place = &(*place)->child[node->data[0] > (*place)->data[0]];
  *place = node;
}

constexpr int kTile = 32;

// C_i += A_i * B_i for matrices of kTile rows, whose addresses lie in three tables, as
// cublasSgemmBatched takes them.
__global__ void gemm_batched(const float* const* a, const float* const* b, float* const* c,
                             int depth) {
  const float* const left = a[blockIdx.x] + threadIdx.y * depth;
  const float* const right = b[blockIdx.x] + threadIdx.x * depth;
  float sum = c[blockIdx.x][threadIdx.y * kTile + threadIdx.x];
  for (int k = 0; k < depth; ++k) sum = fmaf(left[k], right[k], sum);
  c[blockIdx.x][threadIdx.y * kTile + threadIdx.x] = sum;
}

__global__ void fill_floats(float* data, std::uint64_t seed, std::uint32_t count) {
  const Part part = part_of(count);
  for (std::uint32_t i = part.begin; i < part.end; ++i) {
    data[i] = random_unit(seed, 1, i) - 0.5f;
  }
}

}  // namespace workloads
