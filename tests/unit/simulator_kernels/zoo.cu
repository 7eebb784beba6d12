// One kernel for each feature of kernels, each checked against results of the CPU. Prints `ok NAME`
// or `BAD NAME`. Built by nvcc with a plug-in and by simkernels --host: both must pass
// (zoo_test.cpp), and so must a real GPU.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "checks.h"
#include "zoo.h"

__constant__ float coefficients[4];
__constant__ int constant_table[3] = {5, 7, 11};
__device__ unsigned launches_seen;
static __device__ int internal_value = 40;
namespace inner {
__device__ int value = 2;
}
__managed__ int managed_value = 3;

struct alignas(16) Quad {
  float x, y, z, w;
};
struct Mixed {
  char letter;
  double number;
  short small;
};

__global__ void Saxpy(int n, float a, const float* __restrict__ x, float* __restrict__ y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  y[i] = a * x[i] + y[i];
}

template <typename T>
__global__ void Scale(T* values, T factor, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    values[i] = Twice(values[i] * factor);
  }
}

template <int kBlock, typename T>
__global__ void __launch_bounds__(kBlock) BlockSum(const T* in, T* out, int n) {
  __shared__ T partial[kBlock];
  const int i = blockIdx.x * kBlock + threadIdx.x;
  partial[threadIdx.x] = i < n ? in[i] : T(0);
  __syncthreads();
#pragma unroll
  for (int step = kBlock / 2; step > 0; step >>= 1) {
    if (threadIdx.x < step) partial[threadIdx.x] += partial[threadIdx.x + step];
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = partial[0];
}

__global__ void Reverse(int* data, int n) {
  extern __shared__ int shared[];
  const int t = threadIdx.x;
  if (t < n) shared[t] = data[t];
  __syncthreads();
  if (t < n) data[t] = shared[n - 1 - t];
}

// Two views of the dynamic shared memory, behind a static array of the same kernel.
__global__ void SharedViews(double* out, int n) {
  extern __shared__ __align__(16) unsigned char bytes[];
  __shared__ alignas(16) float statics[32];
  auto* numbers = reinterpret_cast<double*>(bytes);
  auto* letters = reinterpret_cast<char*>(numbers + n);
  numbers[threadIdx.x] = threadIdx.x * 0.5;
  letters[threadIdx.x] = static_cast<char>(threadIdx.x);
  statics[threadIdx.x % 32] = 1.0f;
  __syncthreads();
  const int other = n - 1 - threadIdx.x;
  out[threadIdx.x] = numbers[other] + letters[other] + statics[other % 32];
}

__global__ void MatrixProduct(const float* a, const float* b, float* c, int n) {
  __shared__ float tile_a[8][8], tile_b[8][8];
  const int row = blockIdx.y * 8 + threadIdx.y, column = blockIdx.x * 8 + threadIdx.x;
  float sum = 0;
  for (int k = 0; k < n; k += 8) {
    tile_a[threadIdx.y][threadIdx.x] = a[row * n + k + threadIdx.x];
    tile_b[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * n + column];
    __syncthreads();
    for (int j = 0; j < 8; ++j) sum += tile_a[threadIdx.y][j] * tile_b[j][threadIdx.x];
    __syncthreads();
  }
  c[row * n + column] = sum;
}

__global__ void Indices(int* out) {
  const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  out[block * blockDim.x * blockDim.y * blockDim.z + thread] =
      threadIdx.x + 10 * threadIdx.y + 100 * threadIdx.z + 1000 * blockIdx.x + 10000 * blockIdx.y +
      100000 * blockIdx.z;
}

__global__ void Constants(const float* x, float* y, int* table, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = Polynomial(coefficients, x[i]);
  if (i < 3) table[i] = constant_table[i];
}

__global__ void CountLaunch(int* out) {
  if (threadIdx.x == 0) atomicAdd(&launches_seen, 1);
  if (threadIdx.x == 0) *out = internal_value + inner::value + managed_value;
}

__global__ void Shuffles(const int* in, int* out) {
  const unsigned lane = threadIdx.x % 32;
  const int value = in[threadIdx.x];
  int* mine = out + threadIdx.x * 6;
  mine[0] = __shfl_sync(0xffffffffu, value, 3);
  mine[1] = __shfl_up_sync(0xffffffffu, value, 2);
  mine[2] = __shfl_down_sync(0xffffffffu, value, 5);
  mine[3] = __shfl_xor_sync(0xffffffffu, value, 16);
  mine[4] = __shfl_down_sync(0xffffffffu, value, 1, 8);
  mine[5] = lane < 16 ? __shfl_sync(0x0000ffffu, value, 7) : __shfl_sync(0xffff0000u, value, 20);
}

__global__ void WideShuffles(double* out) {
  double value = 1.0 + threadIdx.x;
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
  const __half narrow = __shfl_sync(0xffffffffu, __float2half(static_cast<float>(threadIdx.x)), 9);
  const long long wide = __shfl_sync(0xffffffffu, (1LL << 40) + threadIdx.x, 11);
  out[threadIdx.x] = value + __half2float(narrow) + static_cast<double>(wide - (1LL << 40));
}

__global__ void Votes(int* out) {
  const int t = threadIdx.x;
  int* mine = out + t * 9;
  mine[0] = static_cast<int>(__ballot_sync(0xffffffffu, t % 3 == 0));
  mine[1] = __any_sync(0xffffffffu, t == 40);
  mine[2] = __all_sync(0xffffffffu, t < 64);
  mine[3] = static_cast<int>(__activemask());
  mine[4] = __syncthreads_count(t % 2);
  mine[5] = __syncthreads_and(t < 63);
  mine[6] = __syncthreads_or(t == 63);
  mine[7] = static_cast<int>(__match_any_sync(0xffffffffu, t % 4));
  mine[8] = static_cast<int>(__reduce_add_sync(0xffffffffu, static_cast<unsigned>(t)));
}

__global__ void Atomics(int* ints, unsigned long long* longs, float* floats, double* doubles) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(&ints[0], 1);
  atomicMax(&ints[1], t);
  atomicMin(&ints[2], -t);
  atomicOr(reinterpret_cast<unsigned*>(&ints[3]), 1u << (t % 32));
  atomicAnd(&ints[4], ~(1 << (t % 8)));
  atomicXor(&ints[5], t);
  atomicExch(&ints[6], 77);
  for (int seen = ints[7], expected; true;) {
    expected = seen;
    seen = atomicCAS(&ints[7], expected, expected + 2);
    if (seen == expected) break;
  }
  atomicAdd(&longs[0], 1ull << 33);
  atomicAdd(floats, 0.5f);
  atomicAdd(doubles, 0.25);
}

__global__ void EarlyReturn(const int* in, int* out, int n) {
  __shared__ int total;
  if (threadIdx.x == 0) total = 0;
  __syncthreads();
  if (threadIdx.x >= n) return;  // these never reach the barrier below
  atomicAdd(&total, in[threadIdx.x]);
  __syncthreads();
  out[threadIdx.x] = total;
}

// Warps reach the barrier in different numbers of rounds, with warp operations in between.
__global__ void BarrierInLoop(int* out, int rounds) {
  __shared__ int ring[96];
  int value = threadIdx.x;
  for (int i = 0; i < rounds; ++i) {
    ring[threadIdx.x] = value;
    __syncthreads();
    value = ring[(threadIdx.x + 1) % blockDim.x] + i;
    if (threadIdx.x / 32 == static_cast<unsigned>(i % 3))
      value += __shfl_xor_sync(0xffffffffu, 0, 1);
    __syncthreads();
  }
  out[threadIdx.x] = value;
}

template <typename T>
__device__ float ToFloat(T value);
template <>
__device__ float ToFloat(__half value) {
  return __half2float(value);
}
template <>
__device__ float ToFloat(__nv_bfloat16 value) {
  return __bfloat162float(value);
}

template <typename T>
__global__ void HalfMath(const T* a, const T* b, float* out, int n) {
  const int i = threadIdx.x;
  if (i >= n) return;
  out[i] = ToFloat(__hfma(a[i], b[i], a[i])) + ToFloat(a[i] * b[i]) + ToFloat(__hadd(a[i], b[i]));
}

__global__ void Half2Sum(const __half2* in, float* out, int n) {
  __half2 sum = __floats2half2_rn(0.0f, 0.0f);
  for (int i = 0; i < n; ++i) sum = __hadd2(sum, in[i]);
  *out = __low2float(sum) + __high2float(sum);
}

__global__ void ManyParameters(char c, double d, short s, Quad q, const int* pointer, Mixed m,
                               bool flag, double* out) {
  out[0] = c + d + s + q.x + q.y + q.z + q.w + *pointer + m.letter + m.number + m.small +
           (flag ? 1000 : 0);
}

__global__ void Intrinsics(float* out) {
  out[0] = rsqrtf(4.0f);
  out[1] = __saturatef(1.5f) + __saturatef(-1.0f);
  out[2] = __fdividef(1.0f, 4.0f);
  out[3] = fmaf(2.0f, 3.0f, 4.0f);
  out[4] = static_cast<float>(__popc(0xf0f0u) + __clz(1) + __ffs(8));
  out[5] = static_cast<float>(min(3, 7) + max(2.5f, 1.0f));
  out[6] = __int_as_float(__float_as_int(1.25f));
  out[7] = static_cast<float>(__umulhi(0x80000000u, 6u));
  out[8] = static_cast<float>(__float2int_rn(2.5f) + __float2int_rz(-2.7f));
  out[9] = __ldg(out + 3);
  out[10] = fabsf(__expf(1.0f) - 2.7182817f) < 1e-5f ? 1.0f : 0.0f;
  out[11] = static_cast<float>(__brev(1u) >> 31);
}

static __global__ void InternalKernel(int* out) { *out = 1; }
namespace inner {
__global__ void NamespacedKernel(int* out) { *out = 2; }
namespace {
__global__ void UnnamedKernel(int* out) { *out = 3; }
}  // namespace
void LaunchUnnamed(int* out) { UnnamedKernel<<<1, 1>>>(out); }
}  // namespace inner
extern "C" __global__ void PlainName(int* out) { *out = 4; }
template <int kValue>
__global__ void Chosen(int* out) {
  *out = kValue;
}
template __global__ void Chosen<5>(int*);
template <typename T>
void LaunchGeneric(T* out, T value) {
  Scale<T><<<1, 1>>>(out, value, 1);
}
#define LAUNCH_ONE(kernel, ...) kernel<<<dim3(1), dim3(1)>>>(__VA_ARGS__)

namespace {

void TestElementwise() {
  const int n = 1000;
  Buffer<float> x(Made<float>(n, [](auto i) { return static_cast<float>(i % 17); }));
  Buffer<float> y(std::vector<float>(n, 1.0f));
  Saxpy<<<(n + 255) / 256, 256>>>(n, 3.0f, x.get(), y.get());
  Scale<<<2, 64>>>(y.get(), 0.5f, n);
  const auto result = y.Read();
  bool good = true;
  for (int i = 0; i < n; ++i) good = good && result[i] == 3.0f * static_cast<float>(i % 17) + 1.0f;
  Report("elementwise, deduced template", good);
}

void TestSharedMemory() {
  Buffer<int> in(Made<int>(1000, [](auto i) { return static_cast<int>(i); }));
  Buffer<int> sums(std::vector<int>(8));
  BlockSum<128><<<8, 128>>>(in.get(), sums.get(), 1000);
  const auto blocks = sums.Read();
  int total = 0;
  for (const int sum : blocks) total += sum;
  Report("static shared memory, barriers, half-deduced template",
         total == 999 * 1000 / 2 && blocks[0] == 127 * 64);

  Buffer<int> reversed(Made<int>(300, [](auto i) { return static_cast<int>(i); }));
  Reverse<<<1, 320, 300 * sizeof(int)>>>(reversed.get(), 300);
  const auto backwards = reversed.Read();
  bool good = true;
  for (int i = 0; i < 300; ++i) good = good && backwards[i] == 299 - i;
  Report("dynamic shared memory", good);

  Buffer<double> views(std::vector<double>(64));
  SharedViews<<<1, 64, 64 * 9>>>(views.get(), 64);
  const auto seen = views.Read();
  good = true;
  for (int i = 0; i < 64; ++i) good = good && seen[i] == (63 - i) * 1.5 + 1.0;
  Report("views of shared memory", good);
}

void TestMatrixProduct() {
  const int n = 32;
  const auto a = Made<float>(n * n, [](auto i) { return static_cast<float>(i % 7); });
  const auto b = Made<float>(n * n, [](auto i) { return static_cast<float>(i % 5); });
  Buffer<float> da(a), db(b), dc(std::vector<float>(n * n));
  MatrixProduct<<<dim3(n / 8, n / 8), dim3(8, 8)>>>(da.get(), db.get(), dc.get(), n);
  const auto c = dc.Read();
  bool good = true;
  for (int row = 0; row < n; ++row) {
    for (int column = 0; column < n; ++column) {
      float sum = 0;
      for (int k = 0; k < n; ++k) sum += a[row * n + k] * b[k * n + column];
      good = good && c[row * n + column] == sum;
    }
  }
  Report("two-dimensional blocks, barriers in a loop", good);
}

void TestIndices() {
  Buffer<int> out(std::vector<int>(2 * 3 * 2 * 4 * 3 * 2));
  Indices<<<dim3(2, 3, 2), dim3(4, 3, 2)>>>(out.get());
  const auto seen = out.Read();
  bool good = true;
  int at = 0;
  for (int bz = 0; bz < 2; ++bz)
    for (int by = 0; by < 3; ++by)
      for (int bx = 0; bx < 2; ++bx)
        for (int z = 0; z < 2; ++z)
          for (int y = 0; y < 3; ++y)
            for (int x = 0; x < 4; ++x, ++at)
              good =
                  good && seen[at] == x + 10 * y + 100 * z + 1000 * bx + 10000 * by + 100000 * bz;
  Report("three-dimensional grid and block", good);
}

void TestConstantsAndVariables() {
  const float values[4] = {1, 2, 3, 4};
  CHECK(cudaMemcpyToSymbol(coefficients, values, sizeof values));
  Buffer<float> x(Made<float>(64, [](auto i) { return static_cast<float>(i) * 0.25f; })),
      y(std::vector<float>(64));
  Buffer<int> table(std::vector<int>(3));
  Constants<<<1, 64>>>(x.get(), y.get(), table.get(), 64);
  bool good = true;
  const auto result = y.Read();
  for (int i = 0; i < 64; ++i) {
    const float v = static_cast<float>(i) * 0.25f;
    good = good && std::fabs(result[i] - (1 + v * (2 + v * (3 + v * 4)))) < 0.25f;
  }
  Report("constants", good && table.Read() == std::vector<int>{5, 7, 11});

  Buffer<int> out(std::vector<int>(1));
  const int changed = 41;
  CHECK(cudaMemcpyToSymbol(internal_value, &changed, sizeof changed));
  managed_value = 4;
  CHECK(cudaDeviceSynchronize());
  for (int i = 0; i < 3; ++i) CountLaunch<<<1, 32>>>(out.get());
  unsigned seen = 0;
  CHECK(cudaMemcpyFromSymbol(&seen, launches_seen, sizeof seen));
  std::size_t size = 0;
  CHECK(cudaGetSymbolSize(&size, constant_table));
  Report("device variables", seen == 3 && size == 12 && out.Read()[0] == 41 + 2 + 4);
}

void TestShuffles() {
  const auto values = Made<int>(64, [](auto i) { return static_cast<int>(i * i); });
  Buffer<int> in(values), out(std::vector<int>(64 * 6));
  Shuffles<<<1, 64>>>(in.get(), out.get());
  const auto seen = out.Read();
  bool good = true;
  for (int t = 0; t < 64; ++t) {
    const int lane = t % 32, first = t - lane;
    const int* mine = &seen[t * 6];
    const auto from = [&](int source) { return values[first + source]; };
    good = good && mine[0] == from(3) && mine[1] == from(lane < 2 ? lane : lane - 2) &&
           mine[2] == from(lane + 5 < 32 ? lane + 5 : lane) && mine[3] == from(lane ^ 16) &&
           mine[4] == from(lane % 8 < 7 ? lane + 1 : lane) && mine[5] == from(lane < 16 ? 7 : 20);
  }
  Report("shuffles", good);

  Buffer<double> wide(std::vector<double>(32));
  WideShuffles<<<1, 32>>>(wide.get());
  good = true;
  for (const double value : wide.Read()) good = good && value == 32 * 33 / 2 + 9 + 11;
  Report("shuffles of half, double and 64 bits", good);
}

void TestVotes() {
  Buffer<int> out(std::vector<int>(64 * 9));
  Votes<<<1, 64>>>(out.get());
  const auto seen = out.Read();
  bool good = true;
  for (int t = 0; t < 64; ++t) {
    unsigned thirds = 0, same = 0, sum = 0;
    for (int other = t / 32 * 32; other < t / 32 * 32 + 32; ++other) {
      if (other % 3 == 0) thirds |= 1u << (other % 32);
      if (other % 4 == t % 4) same |= 1u << (other % 32);
      sum += other;
    }
    const int expected[9] = {
        static_cast<int>(thirds), t >= 32, 1, -1, 32, 0, 1, static_cast<int>(same),
        static_cast<int>(sum)};
    good = good && std::memcmp(&seen[t * 9], expected, sizeof expected) == 0;
  }
  Report("votes, matches, reductions, counting barriers", good);
}

void TestAtomics() {
  Buffer<int> ints({0, 0, 0, 0, 255, 0, 0, 1});
  Buffer<unsigned long long> longs({0});
  Buffer<float> floats({0.0f});
  Buffer<double> doubles({0.0});
  Atomics<<<4, 64>>>(ints.get(), longs.get(), floats.get(), doubles.get());
  int exclusive = 0;
  for (int t = 0; t < 256; ++t) exclusive ^= t;
  Report("atomics", ints.Read() == std::vector<int>{256, 255, -255, -1, 0, exclusive, 77, 513} &&
                        longs.Read()[0] == 256ull << 33 && floats.Read()[0] == 128.0f &&
                        doubles.Read()[0] == 64.0);
}

void TestEndedThreads() {
  Buffer<int> in(std::vector<int>(100, 1)), out(std::vector<int>(70, -1));
  EarlyReturn<<<1, 100>>>(in.get(), out.get(), 70);
  Report("threads that return before a barrier", out.Read() == std::vector<int>(70, 70));

  Buffer<int> ring(std::vector<int>(96));
  BarrierInLoop<<<1, 96>>>(ring.get(), 5);
  bool good = true;
  const auto seen = ring.Read();
  for (int t = 0; t < 96; ++t) good = good && seen[t] == (t + 5) % 96 + 0 + 1 + 2 + 3 + 4;
  Report("barriers in a loop between warp operations", good);
}

void TestHalf() {
  Buffer<__half> a(Made<__half>(16, [](auto i) { return __float2half(static_cast<float>(i)); }));
  Buffer<__nv_bfloat16> c(
      Made<__nv_bfloat16>(16, [](auto i) { return __float2bfloat16(static_cast<float>(i)); }));
  Buffer<float> out(std::vector<float>(16)), out16(std::vector<float>(16));
  HalfMath<<<1, 32>>>(a.get(), a.get(), out.get(), 16);
  HalfMath<__nv_bfloat16><<<1, 32>>>(c.get(), c.get(), out16.get(), 16);
  bool good = true;
  const auto half = out.Read(), brain = out16.Read();
  for (int i = 0; i < 16; ++i)
    good = good && half[i] == static_cast<float>(2 * i * i + 3 * i) && brain[i] == half[i];
  Report("half and bfloat16", good);

  Buffer<__half2> pairs(
      Made<__half2>(10, [](auto i) { return __floats2half2_rn(static_cast<float>(i), 1.0f); }));
  Buffer<float> sum(std::vector<float>(1));
  Half2Sum<<<1, 1>>>(pairs.get(), sum.get(), 10);
  Report("half2", sum.Read()[0] == 55.0f);
}

void TestParameters() {
  Buffer<int> pointed({7});
  Buffer<double> out({0.0});
  ManyParameters<<<1, 1>>>('a', 0.5, -3, Quad{1, 2, 3, 4}, pointed.get(), Mixed{'b', 0.25, 9}, true,
                           out.get());
  Report("parameters of every size", out.Read()[0] == 97 + 0.5 - 3 + 10 + 7 + 98 + 0.25 + 9 + 1000);

  const std::size_t offsets[] = {0, 8, 16, 32, 48, 56, 80, 88},
                    sizes[] = {1, 8, 2, 16, 8, 24, 1, 8};
  bool good = true;
  for (std::size_t i = 0; i < 8; ++i) {
    std::size_t offset = 0, size = 0;
    CHECK(cudaFuncGetParamInfo(reinterpret_cast<const void*>(ManyParameters), i, &offset, &size));
    good = good && offset == offsets[i] && size == sizes[i];
  }
  Report("parameter information", good);
}

void TestIntrinsics() {
  Buffer<float> out(std::vector<float>(12));
  Intrinsics<<<1, 1>>>(out.get());
  Report("intrinsics", out.Read() == std::vector<float>{0.5f, 1.0f, 0.25f, 10.0f, 8 + 31 + 4, 5.5f,
                                                        1.25f, 3.0f, 0.0f, 10.0f, 1.0f, 1.0f});
}

int Value(const Buffer<int>& out) { return out.Read()[0]; }

void TestNamesAndLaunches() {
  Buffer<int> out({0});
  InternalKernel<<<1, 1>>>(out.get());
  bool good = Value(out) == 1;
  inner::NamespacedKernel<<<1, 1>>>(out.get());
  good = good && Value(out) == 2;
  inner::LaunchUnnamed(out.get());
  good = good && Value(out) == 3;
  PlainName<<<1, 1>>>(out.get());
  good = good && Value(out) == 4;
  Report("internal, namespaced, unnamed and C names", good);

  void (*pointer)(int*) = Chosen<6>;
  pointer<<<1, 1>>>(out.get());
  good = Value(out) == 6;
  LAUNCH_ONE(Chosen<7>, out.get());
  good = good && Value(out) == 7;
  int* argument = out.get();
  void* arguments[] = {&argument};
  CHECK(cudaFuncSetAttribute(Chosen<8>, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536));
  CHECK(cudaLaunchKernel(Chosen<8>, dim3(1), dim3(1), arguments, 65536, nullptr));
  good = good && Value(out) == 8;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(1);
  config.blockDim = dim3(1);
  CHECK(cudaLaunchKernelEx(&config, Chosen<9>, out.get()));
  good = good && Value(out) == 9;
  LaunchGeneric(out.get(), 5);
  good = good && Value(out) == 90;
  Report("launches by pointer, macro, function and from templates", good);
}

}  // namespace

int main() {
  TestElementwise();
  TestSharedMemory();
  TestMatrixProduct();
  TestIndices();
  TestConstantsAndVariables();
  TestShuffles();
  TestVotes();
  TestAtomics();
  TestEndedThreads();
  TestHalf();
  TestParameters();
  TestIntrinsics();
  TestNamesAndLaunches();
  return Finish();
}
