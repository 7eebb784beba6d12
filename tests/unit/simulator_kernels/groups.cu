// Cooperative groups, barriers in memory and pipelines, each checked against results of the CPU.
// Built like zoo.cu.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cuda_runtime.h>

#include <cuda/barrier>
#include <cuda/pipeline>
#include <numeric>
#include <vector>

#include "checks.h"

namespace cg = cooperative_groups;

__device__ int TreeSum(const cg::thread_group& group, int* scratch, int value) {
  const int rank = group.thread_rank();
  for (int i = group.size() / 2; i > 0; i /= 2) {
    scratch[rank] = value;
    group.sync();
    if (rank < i) value += scratch[rank + i];
    group.sync();
  }
  return value;
}

__global__ void SumsOfGroups(int* out) {
  __shared__ int scratch[128];
  const cg::thread_block block = cg::this_thread_block();
  const int all = TreeSum(block, scratch, threadIdx.x);
  if (threadIdx.x == 0) out[0] = all;
  const cg::thread_group half_warp = cg::tiled_partition(block, 16);
  const int part = TreeSum(half_warp, scratch + threadIdx.x / 16 * 16, threadIdx.x);
  if (threadIdx.x == 16) out[1] = part;
}

__global__ void Tiles(int* out) {
  const auto block = cg::this_thread_block();
  const auto warp = cg::tiled_partition<32>(block);
  const auto eight = cg::tiled_partition<8>(warp);
  const int inclusive = cg::inclusive_scan(warp, static_cast<int>(threadIdx.x));
  const int exclusive = cg::exclusive_scan(eight, static_cast<int>(threadIdx.x));
  const int greatest =
      cg::reduce(eight, static_cast<int>(threadIdx.x * 7 % 32), cg::greater<int>());
  if (threadIdx.x == 45) {
    out[0] = eight.meta_group_rank();
    out[1] = eight.meta_group_size();
    out[2] = inclusive;
    out[3] = exclusive;
    out[4] = greatest;
  }
}

__global__ void Partitions(int* out) {
  const auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  const auto thirds = cg::binary_partition(warp, threadIdx.x % 3 == 0);
  const int sum = cg::reduce(thirds, static_cast<int>(threadIdx.x), cg::plus<int>());
  const auto labeled = cg::labeled_partition(warp, threadIdx.x % 5);
  const int scan = cg::inclusive_scan(labeled, 1);
  int* const mine = out + 4 * threadIdx.x;
  mine[0] = sum;
  mine[1] = labeled.size();
  mine[2] = labeled.thread_rank();
  mine[3] = scan;
}

__global__ void TilesOfWarps(int* out) {
  __shared__ cg::block_tile_memory<256> memory;
  const auto block = cg::this_thread_block(memory);
  const auto tile = cg::tiled_partition<64>(block);
  const int sum = cg::reduce(tile, static_cast<int>(threadIdx.x), cg::plus<int>());
  out[threadIdx.x] = sum + 100000 * tile.meta_group_rank();
}

struct alignas(16) Wide {
  int words[8];
};
__global__ void WideShuffle(int* out) {
  const auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  Wide wide;
  for (int i = 0; i < 8; ++i) wide.words[i] = static_cast<int>(threadIdx.x) * 10 + i;
  const Wide other = warp.shfl_xor(wide, 1);
  out[threadIdx.x] = other.words[0] + other.words[7];
}

__global__ void CopyTogether(const int* in, int* out) {
  __shared__ int buffer[64];
  const auto block = cg::this_thread_block();
  cg::memcpy_async(block, buffer, in, sizeof buffer);
  cg::wait(block);
  out[threadIdx.x] = buffer[63 - threadIdx.x];
}

// Each round every thread reads what another block wrote in the round before.
__global__ void RoundTheGrid(int* values, int* blocks, int rounds) {
  __shared__ int own_block;
  const cg::grid_group grid = cg::this_grid();
  const int count = static_cast<int>(grid.size()), rank = static_cast<int>(grid.thread_rank());
  if (threadIdx.x == 0) own_block = blockIdx.x;
  __syncthreads();
  values[rank] = rank;
  for (int i = 0; i < rounds; ++i) {
    grid.sync();
    const int next = values[(rank + blockDim.x) % count];
    grid.sync();
    values[rank] = next + 1;
    if (threadIdx.x == 5) own_block += 1;
    __syncthreads();
  }
  if (threadIdx.x == 0) blocks[blockIdx.x] = own_block;
}

__global__ void ArriveAndWait(int* out) {
  __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
  __shared__ int ring[96];
  if (threadIdx.x == 0) init(&barrier, blockDim.x);
  __syncthreads();
  int sum = 0;
  for (int i = 0; i < 3; ++i) {
    ring[threadIdx.x] = threadIdx.x + i;
    auto token = barrier.arrive();
    sum += i;
    barrier.wait(std::move(token));
    sum += ring[(threadIdx.x + 1) % 96];
    barrier.arrive_and_wait();
  }
  out[threadIdx.x] = sum;
}

__global__ void ProduceAndConsume(const int* in, int* out, int rounds) {
  __shared__ int stages[3][64];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 3> state;
  const auto block = cg::this_thread_block();
  const bool consumes = threadIdx.x < 64;
  auto pipeline = cuda::make_pipeline(
      block, &state, consumes ? cuda::pipeline_role::consumer : cuda::pipeline_role::producer);
  const int column = threadIdx.x % 64;
  int sum = 0;
  for (int i = 0; i < rounds; ++i) {
    if (consumes) {
      pipeline.consumer_wait();
      sum += stages[i % 3][63 - column];
      pipeline.consumer_release();
    } else {
      pipeline.producer_acquire();
      cuda::memcpy_async(&stages[i % 3][column], in + 64 * i + column, sizeof(int), pipeline);
      pipeline.producer_commit();
    }
  }
  if (consumes) out[column] = sum;
}

namespace {

void TestGroupsOfABlock() {
  Buffer<int> out(std::vector<int>(5));
  SumsOfGroups<<<1, 128>>>(out.get());
  const auto sums = out.Read();
  Report("thread groups", sums[0] == 127 * 64 && sums[1] == (16 + 31) * 8);
  Tiles<<<1, 64>>>(out.get());
  int greatest = 0;
  for (int i = 40; i < 48; ++i) greatest = std::max(greatest, i * 7 % 32);
  Report(
      "tiles, scans and reductions",
      out.Read() == std::vector<int>{1, 4, (32 + 45) * 14 / 2, 40 + 41 + 42 + 43 + 44, greatest});

  Buffer<int> lanes(std::vector<int>(4 * 32));
  Partitions<<<1, 32>>>(lanes.get());
  bool good = true;
  const auto seen = lanes.Read();
  for (int t = 0; t < 32; ++t) {
    int sum = 0, size = 0;
    for (int other = 0; other < 32; ++other) {
      if ((other % 3 == 0) == (t % 3 == 0)) sum += other;
      size += other % 5 == t % 5;
    }
    good = good && seen[4 * t] == sum && seen[4 * t + 1] == size && seen[4 * t + 2] == t / 5 &&
           seen[4 * t + 3] == t / 5 + 1;
  }
  Report("binary and labeled partitions", good);

  Buffer<int> warps(std::vector<int>(256));
  TilesOfWarps<<<1, 256>>>(warps.get());
  good = true;
  const auto tiles = warps.Read();
  for (int t = 0; t < 256; ++t) {
    const int first = t / 64 * 64;
    good = good && tiles[t] == (2 * first + 63) * 32 + 100000 * (t / 64);
  }
  Report("tiles of several warps", good);
}

void TestCopies() {
  Buffer<int> in(Made<int>(64, [](auto i) { return static_cast<int>(i * i); }));
  Buffer<int> out(std::vector<int>(64));
  CopyTogether<<<1, 64>>>(in.get(), out.get());
  bool good = true;
  const auto seen = out.Read();
  for (int i = 0; i < 64; ++i) good = good && seen[i] == (63 - i) * (63 - i);
  Report("copies by a group", good);
  WideShuffle<<<1, 32>>>(out.get());
  good = true;
  const auto lanes = out.Read();
  for (int i = 0; i < 32; ++i) good = good && lanes[i] == (i ^ 1) * 20 + 7;
  Report("shuffles of structures", good);
}

void TestGrid() {
  constexpr int kBlocks = 24, kThreads = 96, kCount = kBlocks * kThreads;
  int rounds = 5;
  Buffer<int> values{std::vector<int>(kCount)}, blocks{std::vector<int>(kBlocks)};
  int *value_data = values.get(), *block_data = blocks.get();
  void* arguments[] = {&value_data, &block_data, &rounds};
  CHECK(cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(RoundTheGrid), kBlocks, kThreads,
                                    arguments, 0, nullptr));
  bool good = true;
  const auto seen = values.Read(), of_blocks = blocks.Read();
  for (int i = 0; i < kCount; ++i)
    good = good && seen[i] == (i + rounds * kThreads) % kCount + rounds;
  Report("barriers of a grid", good);
  good = true;
  for (int i = 0; i < kBlocks; ++i) good = good && of_blocks[i] == i + rounds;
  Report("shared memory across barriers of a grid", good);
}

void TestBarriersInMemory() {
  Buffer<int> out(std::vector<int>(96));
  ArriveAndWait<<<2, 96>>>(out.get());
  bool good = true;
  const auto seen = out.Read();
  for (int t = 0; t < 96; ++t) good = good && seen[t] == 3 + 3 * ((t + 1) % 96) + 3;
  Report("barriers in shared memory", good);

  constexpr int kRounds = 20;
  Buffer<int> in(Made<int>(64 * kRounds, [](auto i) { return static_cast<int>(i); }));
  ProduceAndConsume<<<1, 128>>>(in.get(), out.get(), kRounds);
  good = true;
  const auto sums = out.Read();
  for (int t = 0; t < 64; ++t) {
    int sum = 0;
    for (int i = 0; i < kRounds; ++i) sum += 64 * i + 63 - t;
    good = good && sums[t] == sum;
  }
  Report("a pipeline of producers and consumers", good);
}

}  // namespace

int main() {
  TestGroupsOfABlock();
  TestCopies();
  TestGrid();
  TestBarriersInMemory();
  return Finish();
}
