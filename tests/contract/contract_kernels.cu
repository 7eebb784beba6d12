// The kernels of the contract suite and the probe, small enough to be beyond doubt.
//
// All loops stride over the grid, so any launch shape computes the same.
#include <cuda.h>

#include <cstdint>

struct Mixed {
  char tag;
  std::uint32_t* out;
  short add;
  double scale;
};

extern "C" {

__device__ std::uint32_t contract_words[4] = {11, 22, 33, 44};
__constant__ std::uint32_t contract_constant = 55;

__global__ void fill(std::uint32_t* out, std::uint32_t value, std::uint64_t count) {
  const std::uint64_t step = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step)
    out[i] = value;
}

__global__ void add(std::uint32_t* words, std::uint32_t value, std::uint64_t count) {
  const std::uint64_t step = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step)
    words[i] += value;
}

__global__ void copy(std::uint32_t* out, const std::uint32_t* in, std::uint64_t count) {
  const std::uint64_t step = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step)
    out[i] = in[i];
}

// Writes through a pointer that lies in device memory.
__global__ void chase(std::uint32_t* const* pointer, std::uint32_t value) { **pointer = value; }

// Keeps one multiprocessor busy for `cycles` clock ticks, then writes unless `word` is null.
__global__ void spin(std::int64_t cycles, std::uint32_t* word, std::uint32_t value) {
  const std::int64_t start = clock64();
  while (clock64() - start < cycles) {
  }
  if (word) *word = value;
}

__global__ void by_value(Mixed mixed, std::uint32_t last) {
  mixed.out[0] = static_cast<std::uint32_t>(mixed.tag);
  mixed.out[1] = static_cast<std::uint32_t>(mixed.add);
  mixed.out[2] = static_cast<std::uint32_t>(mixed.scale * 10);
  mixed.out[3] = last;
}

__global__ void count_threads(std::uint32_t* counter) { atomicAdd(counter, 1u); }

// out[linear thread index] = a digit per coordinate: block z y x, thread z y x.
__global__ void coordinates(std::uint32_t* out) {
  const std::uint32_t block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const std::uint32_t thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  out[block * (blockDim.x * blockDim.y * blockDim.z) + thread] =
      blockIdx.z * 100000 + blockIdx.y * 10000 + blockIdx.x * 1000 + threadIdx.z * 100 +
      threadIdx.y * 10 + threadIdx.x;
}

__global__ void read_globals(std::uint32_t* out) {
  for (int i = 0; i < 4; ++i) out[i] = contract_words[i];
  out[4] = contract_constant;
}

__global__ void reverse(std::uint32_t* words) {
  extern __shared__ std::uint32_t staged[];
  staged[threadIdx.x] = words[threadIdx.x];
  __syncthreads();
  words[threadIdx.x] = staged[blockDim.x - 1 - threadIdx.x];
}

__global__ void sum(std::uint64_t* total, const std::uint32_t* words, std::uint64_t count) {
  const std::uint64_t step = std::uint64_t{gridDim.x} * blockDim.x;
  std::uint64_t own = 0;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step)
    own += words[i];
  atomicAdd(reinterpret_cast<unsigned long long*>(total), static_cast<unsigned long long>(own));
}

// Every thread adds one to words[i % count] `rounds` times, moving on by one each round.
__global__ void scatter_atomics(std::uint32_t* words, std::uint32_t count, std::uint32_t rounds) {
  const std::uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x;
  for (std::uint32_t i = 0; i < rounds; ++i) atomicAdd(&words[(thread + i) % count], 1u);
}

// Copies tiles of 16 KiB through shared memory by the bulk copy engine (TMA), one thread a block;
// on targets without one by ordinary loads and stores.
__global__ void bulk_copy(char* out, const char* in, std::uint64_t tiles) {
  constexpr std::uint32_t kTileBytes = 16384;
  __shared__ alignas(128) char tile[kTileBytes];
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  __shared__ alignas(8) std::uint64_t barrier;
  if (threadIdx.x != 0) return;
  const auto tile_address = static_cast<std::uint32_t>(__cvta_generic_to_shared(tile));
  const auto barrier_address = static_cast<std::uint32_t>(__cvta_generic_to_shared(&barrier));
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier_address) : "memory");
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::
                   : "memory");  // the copy engine sees the barrier initialised
  std::uint32_t phase = 0;
  for (std::uint64_t i = blockIdx.x; i < tiles; i += gridDim.x, phase ^= 1) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier_address),
                 "r"(kTileBytes)
                 : "memory");
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
            "r"(tile_address),
        "l"(in + i * kTileBytes), "r"(kTileBytes), "r"(barrier_address)
        : "memory");
    std::uint32_t done = 0;
    while (!done)
      asm volatile(
          "{ .reg .pred complete; mbarrier.try_wait.parity.shared::cta.b64 complete, [%1], %2; "
          "selp.u32 %0, 1, 0, complete; }"
          : "=r"(done)
          : "r"(barrier_address), "r"(phase)
          : "memory");
    asm volatile(
        "cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(out + i * kTileBytes),
        "r"(tile_address), "r"(kTileBytes)
        : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
  }
#else
  for (std::uint64_t i = blockIdx.x; i < tiles; i += gridDim.x) {
    for (std::uint32_t j = threadIdx.x; j < kTileBytes; j += blockDim.x)
      tile[j] = in[i * kTileBytes + j];
    __syncthreads();
    for (std::uint32_t j = threadIdx.x; j < kTileBytes; j += blockDim.x)
      out[i * kTileBytes + j] = tile[j];
    __syncthreads();
  }
#endif
}

__global__ void sum_twenty(std::uint32_t* out, std::uint32_t a, std::uint32_t b, std::uint32_t c,
                           std::uint32_t d, std::uint32_t e, std::uint32_t f, std::uint32_t g,
                           std::uint32_t h, std::uint32_t i, std::uint32_t j, std::uint32_t k,
                           std::uint32_t l, std::uint32_t m, std::uint32_t n, std::uint32_t o,
                           std::uint32_t p, std::uint32_t q, std::uint32_t r, std::uint32_t s) {
  *out = a + b + c + d + e + f + g + h + i + j + k + l + m + n + o + p + q + r + s;
}

__global__ void fetch_line(float* out, cudaTextureObject_t texture, std::uint32_t count) {
  for (std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count;
       i += gridDim.x * blockDim.x)
    out[i] = tex1Dfetch<float>(texture, static_cast<int>(i));
}

// out[i] = the texture at (places[3 i], places[3 i + 1]), at level places[3 i + 2] if it has
// levels.
__global__ void sample_plane(float* out, cudaTextureObject_t texture, const float* places,
                             std::uint32_t count) {
  for (std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count;
       i += gridDim.x * blockDim.x)
    out[i] = tex2DLod<float>(texture, places[3 * i], places[3 * i + 1], places[3 * i + 2]);
}

__global__ void sample_volume(float* out, cudaTextureObject_t texture, const float* places,
                              std::uint32_t count) {
  for (std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count;
       i += gridDim.x * blockDim.x)
    out[i] = tex3D<float>(texture, places[3 * i], places[3 * i + 1], places[3 * i + 2]);
}

// The handle lies in device memory, not among the parameters.
__global__ void fetch_line_bindless(float* out, const cudaTextureObject_t* texture,
                                    std::uint32_t count) {
  for (std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count;
       i += gridDim.x * blockDim.x)
    out[i] = tex1Dfetch<float>(*texture, static_cast<int>(i));
}

// surface[y][x] = surface[y][x] + 100 y + x.
__global__ void surface_add(cudaSurfaceObject_t surface, std::uint32_t width,
                            std::uint32_t height) {
  for (std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < width * height;
       i += gridDim.x * blockDim.x) {
    const int x = static_cast<int>(i % width), y = static_cast<int>(i / width);
    const auto before = surf2Dread<float>(surface, x * 4, y);
    surf2Dwrite(before + static_cast<float>(100 * y + x), surface, x * 4, y);
  }
}

// Brings the tile at (x, y), at most 1024 floats, into shared memory by the tensor map, and from
// there to `out`.
__device__ void copy_tile(float* out, const CUtensorMap* map, int x, int y, std::uint32_t count) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  __shared__ alignas(1024) float tile[1024];
  __shared__ alignas(8) std::uint64_t barrier;
  if (threadIdx.x != 0) return;
  const auto tile_address = static_cast<std::uint32_t>(__cvta_generic_to_shared(tile));
  const auto barrier_address = static_cast<std::uint32_t>(__cvta_generic_to_shared(&barrier));
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier_address) : "memory");
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier_address),
               "r"(count * 4)
               : "memory");
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, "
      "{%2, "
      "%3}], [%4];" ::"r"(tile_address),
      "l"(map), "r"(x), "r"(y), "r"(barrier_address)
      : "memory");
  std::uint32_t done = 0;
  while (!done)
    asm volatile(
        "{ .reg .pred complete; mbarrier.try_wait.parity.shared::cta.b64 complete, [%1], 0; "
        "selp.u32 %0, 1, 0, complete; }"
        : "=r"(done)
        : "r"(barrier_address)
        : "memory");
  for (std::uint32_t i = 0; i < count; ++i) out[i] = tile[i];
#endif
}

__global__ void tile_by_parameter(float* out, const __grid_constant__ CUtensorMap map, int x, int y,
                                  std::uint32_t count) {
  copy_tile(out, &map, x, y, count);
}

// The map lies in device memory, so a copy that wrote it needs the fence.
__global__ void tile_by_pointer(float* out, const CUtensorMap* map, int x, int y,
                                std::uint32_t count) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(map) : "memory");
#endif
  copy_tile(out, map, x, y, count);
}

}  // extern "C"
