#include "simulator/kernels/block_executor.h"

#include <cuda_runtime.h>
#include <gtest/gtest.h>
#include <setjmp.h>

#include <cstdint>
#include <numeric>
#include <vector>

namespace spillway::simulator {
namespace {

// A function as simkernels writes a kernel: a closure without captures.
template <auto kFunction>
struct KernelOf;
template <typename... Arguments, void (*kFunction)(Arguments...)>
struct KernelOf<kFunction> {
  struct Threads {
    void operator()(Arguments... arguments) const { kFunction(arguments...); }
  };
  static constexpr KernelDescription kDescription = device::Describe(Threads{});
};

template <auto kFunction, typename... Arguments>
void RunGrid(unsigned blocks, unsigned threads, Arguments... arguments) {
  void* pointers[] = {&arguments..., nullptr};
  KernelOf<kFunction>::kDescription.body(LaunchShape{{blocks, 1, 1}, {threads, 1, 1}, 0}, pointers);
}

void NoteStackAddress(std::uintptr_t* addresses) {
  char here;
  addresses[threadIdx.x] = reinterpret_cast<std::uintptr_t>(&here);
}

void NoteStackAddressAfterBarrier(std::uintptr_t* addresses) {
  char here;
  __syncthreads();
  addresses[threadIdx.x] = reinterpret_cast<std::uintptr_t>(&here);
}

TEST(BlockExecutorTest, RunsThreadsThatNeverBlockOnTheCallersStack) {
  std::vector<std::uintptr_t> addresses(64);
  RunGrid<&NoteStackAddress>(1, 64, addresses.data());

  for (const std::uintptr_t address : addresses) EXPECT_EQ(address, addresses[0]);
}

TEST(BlockExecutorTest, GivesEachBlockedThreadAStackOfItsOwn) {
  std::vector<std::uintptr_t> addresses(64);
  RunGrid<&NoteStackAddressAfterBarrier>(1, 64, addresses.data());

  for (std::size_t i = 1; i < addresses.size(); ++i) EXPECT_NE(addresses[i], addresses[i - 1]);
}

void NoteOrder(std::vector<unsigned>* order) {
  order->push_back(threadIdx.x);
  __syncthreads();
  order->push_back(threadIdx.x);
  if (threadIdx.x % 2) __shfl_xor_sync(0xaaaaaaaau, 0, 2);
  order->push_back(threadIdx.x);
}

TEST(BlockExecutorTest, RunsThreadsInTheSameOrderEveryTime) {
  std::vector<unsigned> first, second;
  RunGrid<&NoteOrder>(3, 96, &first);
  RunGrid<&NoteOrder>(3, 96, &second);

  EXPECT_EQ(first.size(), 3u * 96 * 3);
  EXPECT_EQ(first, second);
}

sigjmp_buf way_out;

void LeaveInTheMiddle(int* barriers_passed) {
  __syncthreads();
  ++*barriers_passed;
  if (threadIdx.x == 5) siglongjmp(way_out, 1);
  __syncthreads();
}

void SumOfBlock(const int* in, int* out) {
  __shared__ int total;
  if (threadIdx.x == 0) total = 0;
  __syncthreads();
  atomicAdd(&total, in[threadIdx.x]);
  __syncthreads();
  if (threadIdx.x == 0) *out = total;
}

TEST(BlockExecutorTest, StartsFreshAfterAnAbandonedGrid) {
  // Often enough to run out of fibers if abandoned threads kept theirs.
  for (int round = 0; round < 12; ++round) {
    int barriers_passed = 0;
    if (sigsetjmp(way_out, 0) == 0) {
      RunGrid<&LeaveInTheMiddle>(1, 200, &barriers_passed);
      FAIL() << "the grid was not abandoned";
    }
    EXPECT_GT(barriers_passed, 0);

    std::vector<int> in(300);
    std::iota(in.begin(), in.end(), 0);
    int sum = 0;
    RunGrid<&SumOfBlock>(1, 300, in.data(), &sum);
    EXPECT_EQ(sum, 300 * 299 / 2);
  }
}

void WaitForLanesThatLeft(int*) {
  if (threadIdx.x < 16) {
    __shfl_sync(0x0000ffffu | 1u << 20, 1, 0);
  } else {
    __syncthreads();
  }
}

TEST(BlockExecutorDeathTest, ReportsWaitersOfABlockedBlock) {
  EXPECT_DEATH(
      RunGrid<&WaitForLanesThatLeft>(1, 32, static_cast<int*>(nullptr)),
      "32 threads cannot go on: 0 ended, 16 wait at __syncthreads, 16 in a warp operation");
}

void EndedLanesCount(unsigned* votes) {
  if (threadIdx.x >= 40) return;
  votes[threadIdx.x] = __ballot_sync(0xffffffffu, 1);
}

TEST(BlockExecutorTest, CountsEndedLanesAsArrived) {
  std::vector<unsigned> votes(64);
  RunGrid<&EndedLanesCount>(1, 64, votes.data());

  EXPECT_EQ(votes[0], 0xffffffffu);
  EXPECT_EQ(votes[39], 0xffu);
}

void ActiveLanes(unsigned* active) {
  if (threadIdx.x % 2 == 0) {
    active[threadIdx.x] = __activemask();
  } else {
    __syncwarp(0xaaaaaaaau);
    active[threadIdx.x] = __activemask();
  }
}

TEST(BlockExecutorTest, GathersConvergedLanes) {
  std::vector<unsigned> active(32);
  RunGrid<&ActiveLanes>(1, 32, active.data());

  EXPECT_EQ(active[0] & 0x55555555u, 0x55555555u);
  EXPECT_NE(active[0] >> 2 & 1u, 0u);
}

struct alignas(16) Wide {
  char bytes[32];
};
void ManyKinds(char, double, short, Wide, const int*, bool) {}

TEST(KernelTest, PlacesParametersByTheAbi) {
  const KernelDescription& description = KernelOf<&ManyKinds>::kDescription;

  ASSERT_EQ(description.parameter_count, 6u);
  const std::uint32_t expected[6][2] = {{0, 1}, {8, 8}, {16, 2}, {32, 32}, {64, 8}, {72, 1}};
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(description.parameters[i].offset_bytes, expected[i][0]) << i;
    EXPECT_EQ(description.parameters[i].size_bytes, expected[i][1]) << i;
  }
}

}  // namespace
}  // namespace spillway::simulator
