// The toolkit's device libraries: random numbers, matrix fragments, atomic references, Thrust. Each
// is checked against results of the CPU. Built by simkernels --host.
#include <cuda_runtime.h>
#include <curand_kernel.h>
#include <mma.h>

#include <thrust/device_vector.h>
#include <thrust/host_vector.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sort.h>
#include <thrust/transform.h>

#include <algorithm>
#include <cuda/atomic>
#include <vector>

#include "checks.h"

using namespace nvcuda;

template <typename State>
__global__ void Random(float* out, int per_thread) {
  State state;
  curand_init(1234, threadIdx.x, 0, &state);
  for (int i = 0; i < per_thread; ++i) out[threadIdx.x * per_thread + i] = curand_uniform(&state);
}
// Philox is a function of its counter: skipping ahead ends at the same numbers.
__global__ void Skipped(float* out, int skip) {
  curandStatePhilox4_32_10_t state;
  curand_init(1234, 0, skip, &state);
  *out = curand_uniform(&state);
}

template <typename T, typename Total, int kM, int kN, int kK, typename Precision>
__global__ void Product(const T* a, const T* b, Total* c) {
  wmma::fragment<wmma::matrix_a, kM, kN, kK, Precision, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, kM, kN, kK, Precision, wmma::col_major> right;
  wmma::fragment<wmma::accumulator, kM, kN, kK, Total> sum;
  wmma::fill_fragment(sum, Total(1.0f));
  wmma::load_matrix_sync(left, a, kK);
  wmma::load_matrix_sync(right, b, kK);
  wmma::mma_sync(sum, left, right, sum);
  for (int i = 0; i < sum.num_elements; ++i) sum.x[i] = sum.x[i] * Total(2.0f);
  wmma::store_matrix_sync(c, sum, kN, wmma::mem_row_major);
}

// Rows and columns of 256 bits: two steps of 128.
__global__ void BitProduct(const unsigned* a, const unsigned* b, int* different, int* common) {
  using Bits = wmma::experimental::precision::b1;
  wmma::fragment<wmma::matrix_a, 8, 8, 128, Bits, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, 8, 8, 128, Bits, wmma::col_major> right;
  wmma::fragment<wmma::accumulator, 8, 8, 128, int> either, both;
  wmma::fill_fragment(either, 5);
  wmma::fill_fragment(both, 0);
  for (int step = 0; step < 2; ++step) {
    wmma::load_matrix_sync(left, a + 4 * step, 256);
    wmma::load_matrix_sync(right, b + 4 * step, 256);
    wmma::bmma_sync(either, left, right, either);
    wmma::bmma_sync(both, left, right, both, wmma::experimental::bmmaBitOpAND);
  }
  wmma::store_matrix_sync(different, either, 8, wmma::mem_row_major);
  wmma::store_matrix_sync(common, both, 8, wmma::mem_col_major);
}

__global__ void CountByReference(int* counter) {
  cuda::atomic_ref<int, cuda::thread_scope_device> reference(*counter);
  reference.fetch_add(2, cuda::memory_order_relaxed);
}

namespace {

template <typename State>
bool IsUniform() {
  constexpr int kThreads = 64, kEach = 64;
  Buffer<float> out(std::vector<float>(kThreads * kEach));
  Random<State><<<1, kThreads>>>(out.get(), kEach);
  double sum = 0;
  bool inside = true;
  for (const float value : out.Read()) {
    sum += value;
    inside = inside && value > 0.0f && value <= 1.0f;
  }
  return inside && sum / (kThreads * kEach) > 0.48 && sum / (kThreads * kEach) < 0.52;
}

void TestRandom() {
  Report("random numbers", IsUniform<curandStateXORWOW_t>() &&
                               IsUniform<curandStatePhilox4_32_10_t>() &&
                               IsUniform<curandStateMRG32k3a_t>());
  Buffer<float> sequence(std::vector<float>(40)), one({0.0f});
  Random<curandStatePhilox4_32_10_t><<<1, 1>>>(sequence.get(), 40);
  Skipped<<<1, 1>>>(one.get(), 33);
  Report("skipping ahead in a random sequence", one.Read()[0] == sequence.Read()[33]);
}

template <typename T, typename Total, int kM, int kN, int kK, typename Precision = T>
bool MultipliesRight() {
  Buffer<T> a(Made<T>(kM * kK, [](auto i) { return T(static_cast<float>(i % 7)); }));
  Buffer<T> b(Made<T>(kN * kK, [](auto i) { return T(static_cast<float>(i % 5)); }));
  Buffer<Total> c(std::vector<Total>(kM * kN));
  Product<T, Total, kM, kN, kK, Precision><<<1, 32>>>(a.get(), b.get(), c.get());
  const auto seen = c.Read();
  for (int row = 0; row < kM; ++row) {
    for (int column = 0; column < kN; ++column) {
      int sum = 1;
      for (int k = 0; k < kK; ++k) sum += (row * kK + k) % 7 * ((column * kK + k) % 5);
      if (static_cast<float>(seen[row * kN + column]) != static_cast<float>(2 * sum)) return false;
    }
  }
  return true;
}

bool BitsAreCounted() {
  constexpr int kWords = 8;  // of a row
  const auto left = Made<unsigned>(8 * kWords, [](auto i) { return 2654435761u * (i + 1); });
  const auto right = Made<unsigned>(8 * kWords, [](auto i) { return 2246822519u * (i + 3); });
  Buffer<unsigned> a(left), b(right);
  Buffer<int> different(std::vector<int>(64)), common(std::vector<int>(64));
  BitProduct<<<1, 32>>>(a.get(), b.get(), different.get(), common.get());
  const auto seen_different = different.Read(), seen_common = common.Read();
  for (int row = 0; row < 8; ++row) {
    for (int column = 0; column < 8; ++column) {
      int either = 5, both = 0;
      for (int word = 0; word < kWords; ++word) {
        const unsigned x = left[row * kWords + word], y = right[column * kWords + word];
        either += __builtin_popcount(x ^ y);
        both += __builtin_popcount(x & y);
      }
      if (seen_different[row * 8 + column] != either || seen_common[column * 8 + row] != both)
        return false;
    }
  }
  return true;
}

void TestMatrices() {
  Report("matrix fragments of half and bfloat16",
         MultipliesRight<__half, float, 16, 16, 16>() &&
             MultipliesRight<__half, __half, 32, 8, 16>() &&
             MultipliesRight<__nv_bfloat16, float, 8, 32, 16>());
  Report("matrix fragments of bits", BitsAreCounted());
  Report("matrix fragments of other types",
         MultipliesRight<float, float, 16, 16, 8, wmma::precision::tf32>() &&
             MultipliesRight<unsigned char, int, 16, 16, 16>() &&
             MultipliesRight<double, double, 8, 8, 4>());
}

void TestAtomicReferences() {
  Buffer<int> counter({3});
  CountByReference<<<4, 64>>>(counter.get());
  Report("atomic references", counter.Read()[0] == 3 + 4 * 64 * 2);
}

struct Squared {
  __host__ __device__ int operator()(int x) const { return x * x; }
};
__global__ void AddOne(int* values) { values[threadIdx.x] += 1; }

void TestThrust() {
  const int values[] = {5, -3, 9, 0, -7, 2, 8, -1};
  thrust::device_vector<int> device(values, values + 8), sums(8), squares(8);
  AddOne<<<1, 8>>>(thrust::raw_pointer_cast(device.data()));
  device[2] = -40;
  thrust::sort(device.begin(), device.end());
  thrust::inclusive_scan(device.begin(), device.end(), sums.begin());
  thrust::transform(device.begin(), device.end(), squares.begin(), Squared());
  const int total = thrust::reduce(squares.begin(), squares.end());
  const thrust::host_vector<int> sorted = device, scanned = sums;
  std::vector<int> expected = {6, -2, -40, 1, -6, 3, 9, 0};
  std::sort(expected.begin(), expected.end());
  int sum = 0, expected_total = 0;
  bool good = true;
  for (int i = 0; i < 8; ++i) {
    sum += expected[i];
    expected_total += expected[i] * expected[i];
    good = good && sorted[i] == expected[i] && scanned[i] == sum;
  }
  Report("Thrust", good && total == expected_total && device[0] == -40);
}

}  // namespace

int main() {
  TestRandom();
  TestMatrices();
  TestAtomicReferences();
  TestThrust();
  return Finish();
}
