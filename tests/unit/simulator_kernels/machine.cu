// What a kernel knows of the device that runs it: its clock. And how a kernel can end. Built like
// zoo.cu.
#include <cuda_runtime.h>

#include <ctime>
#include <vector>

#include "checks.h"

namespace {

__global__ void ReadClocks(long long* cycles, unsigned long long* nanos) {
  cycles[0] = clock64();
  cycles[1] = clock();
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(nanos[0]));
  __nanosleep(5000);
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(nanos[1]));
}

__global__ void WaitFor(clock_t cycles, long long* waited) {
  const clock_t begin = clock();
  clock_t now = begin;
  while (now - begin < cycles) now = clock();
  *waited = now - begin;
}

// Each thread waits, as on a GPU, where all wait at once.
__global__ void AllWaitFor(clock_t cycles, int* ended) {
  const clock_t begin = clock();
  while (clock() - begin < cycles) {
  }
  atomicAdd(ended, 1);
}

__global__ void Trap(int* out) {
  *out = 1;
  __syncthreads();
  if (threadIdx.x == 1) __trap();
}

long long CyclesIn(float milliseconds) {
  int kilohertz = 0;
  CHECK(cudaDeviceGetAttribute(&kilohertz, cudaDevAttrClockRate, 0));
  return static_cast<long long>(static_cast<double>(milliseconds) * kilohertz);
}

void TestClocks() {
  Buffer<long long> cycles(std::vector<long long>(2));
  Buffer<unsigned long long> nanos(std::vector<unsigned long long>(2));
  ReadClocks<<<1, 1>>>(cycles.get(), nanos.get());
  const auto first = cycles.Read();
  const auto first_nanos = nanos.Read();
  Report("clocks go on within a kernel", first[1] > first[0] &&
                                             first_nanos[1] - first_nanos[0] >= 5000 &&
                                             first_nanos[1] - first_nanos[0] < 6000);

  cudaEvent_t begin = nullptr, end = nullptr;
  CHECK(cudaEventCreate(&begin));
  CHECK(cudaEventCreate(&end));
  const std::vector<char> host(64 << 20);
  CHECK(cudaEventRecord(begin));
  const Buffer<char> copied(host);
  CHECK(cudaEventRecord(end));
  CHECK(cudaEventSynchronize(end));
  float milliseconds = 0;
  CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
  ReadClocks<<<1, 1>>>(cycles.get(), nanos.get());
  const long long passed = cycles.Read()[0] - first[0];
  Report("clocks go on with modelled time between kernels",
         passed > CyclesIn(milliseconds) && passed < CyclesIn(milliseconds + 1) &&
             nanos.Read()[0] > first_nanos[1]);
}

void TestWaiting() {
  Buffer<long long> waited({0});
  const clock_t wanted = CyclesIn(1000);
  WaitFor<<<1, 1>>>(wanted, waited.get());
  const long long seen = waited.Read()[0];
  Report("a kernel that waits for a time ends", seen >= wanted && seen < wanted + wanted / 4);
  Buffer<int> ended({0});
  AllWaitFor<<<1000, 256>>>(CyclesIn(1), ended.get());
  Report("so do thousands of threads that wait", ended.Read()[0] == 256'000);
}

// The last test: its context is lost.
void TestTrap() {
  int* out = nullptr;
  CHECK(cudaMalloc(&out, sizeof *out));
  Trap<<<1, 64>>>(out);
  Report("a trap is the device's error", cudaDeviceSynchronize() == cudaErrorLaunchFailure);
  CHECK(cudaDeviceReset());
}

}  // namespace

int main() {
  TestClocks();
  TestWaiting();
  TestTrap();
  return Finish();
}
