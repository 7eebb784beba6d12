// The language around kernels: parameters of every form, launches, inline PTX, roundings. Each
// feature is checked against results of the CPU. Built like zoo.cu.
#include <cuda_runtime.h>

#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "checks.h"

#define WITH_OFFSET 1

template <typename T, int kScale = 3>
__global__ void Defaults(T* out, T value = T(5), int more = 7) {
  out[threadIdx.x] = value * kScale + more;
}

template <typename... Values>
__global__ void Packs(float* out, Values... values) {
  *out = static_cast<float>((values + ... + 0));
}

struct Holder {
  using Element = int;
};
template <typename Container>
__global__ void Dependent(typename Container::Element* out, typename Container::Element (*)[2],
                          int) {
  *out = 11;
}

template <int value>
struct Tag {};
template <int value>
__global__ void Tagged(int* out, Tag<value>, Tag<(value > 1 ? 3 : 4)>) {
  *out = value;
}

__global__ void Conditional(int* out,
#if WITH_OFFSET
                            int offset
#else
                            float offset
#endif
                            ,
                            int value = 4
#ifdef NEVER_DEFINED
                            ,
                            int unused
#endif
) {
  *out = offset + value;
}

#define MAKE_KERNEL(name, T) \
  __global__ void name##Kernel(T* out, T value) { *out = value + 1; }
MAKE_KERNEL(Macro, int)

__global__ void Overloaded(int* out) { *out = 1; }
__global__ void Overloaded(float* out) { *out = 2; }

// As nvcc does, device code sees its architecture. Host code does not.
__global__ void Architecture(int* out) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 500
  *out = 1;
#else
  *out = 0;
#endif
}
#if defined(__CUDA_ARCH__)
constexpr bool kHostSeesArchitecture = true;
#else
constexpr bool kHostSeesArchitecture = false;
#endif
#ifndef __CUDACC__
#error "a .cu file sees __CUDACC__"
#endif

// A function for both sees where it runs.
__host__ __device__ int SideOf(int host_side) {
#ifdef __CUDA_ARCH__
  const int side = host_side + 1;
#else
  const int side = host_side;
#endif
  return side;
}
__global__ void AskSide(int* out) { *out = SideOf(3); }

using Function = float (*)(float);
__device__ float Half(float x) { return x * 0.5f; }
__device__ float Square(float x) { return x * x; }
__device__ Function functions[2] = {Half, Square};
__global__ void CallFunctions(float* out) { out[threadIdx.x] = functions[threadIdx.x](3.0f); }

__global__ void Rounded(float* out, double* wide, float a, float b) {
  out[0] = __fadd_rd(a, b);
  out[1] = __fadd_ru(a, b);
  out[2] = __fmul_rz(a, b);
  out[3] = __fdiv_ru(a, b);
  out[4] = __fsqrt_rd(b);
  out[5] = __double2float_ru(1.0 + DBL_EPSILON);
  out[6] = __int2float_rz(0x7fffffff);
  wide[0] = __dadd_ru(1.0, 1e-300);
  wide[1] = __fma_rd(1.0, 1.0, -1e-300);
}

__global__ void Integers(int* out) {
  out[0] = __float2int_rn(3e9f);
  out[1] = __float2int_ru(-2.5f);
  out[2] = static_cast<int>(__float2uint_rz(-1.0f));
  out[3] = static_cast<int>(umin(3u, 0xffffffffu) + umax(3u, 4u));
  out[4] = static_cast<int>(__usad(3, 10, 1));
  out[5] = static_cast<int>(__uhadd(0xffffffffu, 1u) >> 24);
}

__global__ void Ptx(unsigned* out, float* floats, unsigned long long* wide) {
  const unsigned x = 0xdeadbeefu, y = 0x12345678u;
  unsigned r = 0;
  asm("mov.u32 %0, %%laneid;" : "=r"(out[0]));
  asm volatile("bfe.u32 %0, %1, 8, 12;" : "=r"(out[1]) : "r"(x));
  asm("bfi.b32 %0, %1, %2, %3, %4;" : "=r"(out[2]) : "r"(y), "r"(x), "r"(4), "r"(8));
  asm("lop3.b32 %0, %1, %2, %3, 0x96;" : "=r"(out[3]) : "r"(x), "r"(y), "r"(7));
  asm("prmt.b32 %0, %1, %2, 0x5410;" : "=r"(out[4]) : "r"(x), "r"(y));
  asm("{\n\t.reg .u32 sum;\n\tadd.u32 sum, %1, %2; // a comment\n\tmul.lo.u32 %0, sum, 3;\n}"
      : "=r"(out[5])
      : "r"(x), "r"(y));
  asm volatile("st.global.u32 [%0+24], %1;" ::"l"(out), "r"(77u) : "memory");
  asm volatile("ld.global.u32 %0, [%1];" : "=r"(r) : "l"(out + 6));
  out[7] = r + 1;
  out[8] = 10;
  asm volatile("atom.global.add.u32 %0, [%1], %2;"
               : "=r"(out[9])
               : "l"(out + 8), "r"(5u)
               : "memory");
  asm volatile("red.global.max.u32 [%0], 99;" ::"l"(out + 8) : "memory");
  asm("{ .reg .pred p; setp.gt.s32 p, %1, 10; @p mov.s32 %0, 5; @!p mov.s32 %0, 6; }"
      : "=r"(out[10])
      : "r"(3));
  asm("cvt.rni.s32.f32 %0, %1;" : "=r"(out[11]) : "f"(2.5f));
  asm("shf.l.wrap.b32 %0, %1, %2, %3;" : "=r"(out[12]) : "r"(x), "r"(y), "r"(8));
  asm("bfind.u32 %0, %1;" : "=r"(out[13]) : "r"(0x00f00000u));
  asm("mad.wide.u32 %0, %1, %2, %3;" : "=l"(*wide) : "r"(~0u), "r"(~0u), "l"(1ull));
  asm("fma.rn.f32 %0, %1, %2, %3;" : "=f"(floats[0]) : "f"(2.0f), "f"(3.0f), "f"(0.5f));
  __shared__ float shared[4];
  shared[2] = 6.0f;
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(&shared[2]));
  asm volatile("ld.shared.f32 %0, [%1];" : "=f"(floats[1]) : "r"(address) : "memory");
}

__constant__ int symbol[2];
__global__ void ReadSymbol(int* out) { *out = symbol[0] + symbol[1]; }

namespace {

void TestParameters() {
  Buffer<int> out({0, 0});
  Defaults<<<1, 1>>>(out.get());
  bool good = out.Read()[0] == 22;
  Defaults<int, 2><<<1, 1>>>(out.get(), 8);
  good = good && out.Read()[0] == 23;
  Conditional<<<1, 1>>>(out.get(), 6);
  Report("default arguments", good && out.Read()[0] == 10);
  Conditional<<<1, 1>>>(out.get(), 6, 7);
  Report("#if inside a parameter list", out.Read()[0] == 13);

  Buffer<float> sum({0.0f});
  Packs<<<1, 1>>>(sum.get(), 1, 2.5f, static_cast<short>(3));
  good = sum.Read()[0] == 6.5f;
  Packs<<<1, 1>>>(sum.get());
  Report("parameter packs", good && sum.Read()[0] == 0.0f);
  Dependent<Holder><<<1, 1>>>(out.get(), nullptr, 0);
  good = out.Read()[0] == 11;
  Tagged<<<1, 1>>>(out.get(), Tag<7>(), Tag<3>());
  Report("dependent and unnamed parameters", good && out.Read()[0] == 7);
}

void TestKernels() {
  Buffer<int> out({0});
  Buffer<float> floats({0.0f, 0.0f});
  MacroKernel<<<1, 1>>>(out.get(), 41);
  bool good = out.Read()[0] == 42;
  void (*const pointer)(int*, int) = MacroKernel;
  pointer<<<1, 1>>>(out.get(), 9);
  Report("kernels made by macros", good && out.Read()[0] == 10);
  Overloaded<<<1, 1>>>(out.get());
  Overloaded<<<1, 1>>>(floats.get());
  Report("overloaded kernels", out.Read()[0] == 1 && floats.Read()[0] == 2.0f);
  Architecture<<<1, 1>>>(out.get());
  Report("the architecture in device code", out.Read()[0] == 1 && !kHostSeesArchitecture);
  AskSide<<<1, 1>>>(out.get());
  Report("the architecture in functions for both", out.Read()[0] == 4 && SideOf(3) == 3);
  CallFunctions<<<1, 2>>>(floats.get());
  Report("functions in device variables", floats.Read() == std::vector<float>{1.5f, 9.0f});
}

void TestRoundings() {
  Buffer<float> out(std::vector<float>(7));
  Buffer<double> wide(std::vector<double>(2));
  const float a = 1.0f, b = 3e-9f;
  Rounded<<<1, 1>>>(out.get(), wide.get(), a, b);
  const auto seen = out.Read();
  const auto seen_wide = wide.Read();
  const float exact_product = static_cast<float>(static_cast<double>(a) * b);
  const double quotient = static_cast<double>(a) / b, root = std::sqrt(static_cast<double>(b));
  Report("directed roundings",
         seen[0] == 1.0f && seen[1] == 1.0f + FLT_EPSILON && seen[2] == exact_product &&
             seen[3] >= quotient && std::nextafter(seen[3], 0.0f) < quotient && seen[4] <= root &&
             std::nextafter(seen[4], 1.0f) > root && seen[5] == 1.0f + FLT_EPSILON &&
             seen[6] == 2147483520.0f && seen_wide[0] == 1.0 + DBL_EPSILON &&
             seen_wide[1] == std::nextafter(1.0, 0.0));
  Buffer<int> integers(std::vector<int>(6));
  Integers<<<1, 1>>>(integers.get());
  Report("saturating conversions, minima, halving sums",
         integers.Read() == std::vector<int>{INT32_MAX, -2, 0, 7, 8, 0x80});
}

void TestPtx() {
  Buffer<unsigned> out(std::vector<unsigned>(14));
  Buffer<float> floats(std::vector<float>(2));
  Buffer<unsigned long long> wide({0});
  Ptx<<<1, 1>>>(out.get(), floats.get(), wide.get());
  const std::vector<unsigned> expected = {0,           0xdbe,
                                          0xdeadb78fu, 0xdeadbeefu ^ 0x12345678u ^ 7u,
                                          0x5678beefu, (0xdeadbeefu + 0x12345678u) * 3u,
                                          77,          78,
                                          99,          10,
                                          6,           2,
                                          0x345678deu, 23};
  Report("inline PTX", out.Read() == expected && floats.Read() == std::vector<float>{6.5f, 6.0f} &&
                           wide.Read()[0] == 0xffffffffull * 0xffffffffull + 1);
}

struct Counted {
  static int alive;
  Counted() { ++alive; }
  ~Counted() { --alive; }
};
int Counted::alive = 0;

// Forms that the runtime's header has only for .cu files.
void TestTypedFormsOfTheRuntime() {
  Buffer<int> out({0});
  const int values[2] = {30, 12};
  CHECK(cudaMemcpyToSymbolAsync(symbol, values, sizeof values));
  ReadSymbol<<<1, 1>>>(out.get());
  bool good = out.Read()[0] == 42;

  const int more[2] = {50, 60};
  int back[2] = {0, 0};
  cudaGraph_t graph = nullptr;
  cudaGraphNode_t to = nullptr, from = nullptr;
  cudaGraphExec_t executable = nullptr;
  CHECK(cudaGraphCreate(&graph, 0));
  CHECK(cudaGraphAddMemcpyNodeToSymbol(&to, graph, nullptr, 0, symbol, more, sizeof more, 0,
                                       cudaMemcpyHostToDevice));
  CHECK(cudaGraphAddMemcpyNodeFromSymbol(&from, graph, &to, 1, back, symbol, sizeof back, 0,
                                         cudaMemcpyDeviceToHost));
  cudaUserObject_t object = nullptr;
  CHECK(cudaUserObjectCreate(&object, new Counted, 1, cudaUserObjectNoDestructorSync));
  CHECK(cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove));
  CHECK(cudaGraphInstantiate(&executable, graph, nullptr, nullptr, 0));
  cudaGraphNode_t refused = nullptr;
  cudaGraphExecUpdateResult result = cudaGraphExecUpdateError;
  CHECK(cudaGraphExecUpdate(executable, graph, &refused, &result));
  CHECK(cudaGraphLaunch(executable, nullptr));
  CHECK(cudaDeviceSynchronize());
  Report("symbols in copies and graphs", good && back[0] == 50 && back[1] == 60);
  good = result == cudaGraphExecUpdateSuccess && refused == nullptr && Counted::alive == 1;
  CHECK(cudaGraphExecDestroy(executable));
  CHECK(cudaGraphDestroy(graph));
  const char* name = nullptr;
  CHECK(cudaFuncGetName(&name, ReadSymbol));
  Report("older updates of graphs, owned objects, kernels' names",
         good && name != nullptr && std::strcmp(name, "_Z10ReadSymbolPi") == 0);
}

}  // namespace

int main() {
  TestParameters();
  TestKernels();
  TestRoundings();
  TestPtx();
  TestTypedFormsOfTheRuntime();
  return Finish();
}
