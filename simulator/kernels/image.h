// The contract between the simulated driver and whoever supplies kernels to it.
//
// Used by: simulator/driver (loads images, runs bodies), plug-ins made by tools/simkernels,
// simulator/dnn (its operations are kernels too), tests that bring kernels of their own. Threads: a
// body runs on whichever thread drives the simulated GPU, one body at a time per process.
// Ownership: an image and all it points to is constant and outlives the process' use of the driver.
//
// Invariants
//  1. `cuModuleLoadData`/`cuLibraryLoadData` given a pointer to an Image, or to an ELF file that
//  holds one (module_elf.h),
//     loads it; given anything else (a fat binary,
//     a cubin, PTX) they make a module whose kernels and globals are resolved by name among the
//     plug-ins. Plug-ins are `<executable>.kernels.so` beside the program and those in
//     SPILLWAY_SIM_KERNELS (colon-separated paths).
//  2. A plug-in is a shared object that exports `spillway_sim_image` (type ImageGetter).
//  3. Kernel names are the Itanium-mangled names that nvcc gives to the same kernels.
//  4. A body that touches unmapped device memory is abandoned by siglongjmp: it may leave no lock
//  held and any
//     executor state behind it must be rebuilt by the next body.
//  5. A body calls neither CUDA nor anything that allocates device memory.
#pragma once

#include <cstdint>

namespace spillway::simulator {

inline constexpr char kImageMagic[8] = {'S', 'P', 'I', 'L', 'L', 'S', 'I', 'M'};
inline constexpr std::uint32_t kImageVersion = 1;
inline constexpr std::uint32_t kImageVersionWithUses = 2;
inline constexpr char kImageGetterName[] = "spillway_sim_image";

struct LaunchShape {
  std::uint32_t grid[3];
  std::uint32_t block[3];
  std::uint32_t dynamic_shared_bytes;
};

// What the operation would cost a GPU; the driver turns it into time by the device profile:
// max(flops / peak_flops, bytes / memory_bandwidth) + launch overhead.
struct KernelCost {
  std::uint64_t flops;
  std::uint64_t device_bytes;
};

// `arguments[i]` points to the i-th parameter's bytes (a private copy made at launch).
using KernelBody = void (*)(const LaunchShape& shape, void* const* arguments);
using KernelCostModel = KernelCost (*)(const LaunchShape& shape, void* const* arguments);

struct KernelParameter {
  std::uint32_t offset_bytes;  // in the packed parameter buffer, as cuKernelGetParamInfo reports it
  std::uint32_t size_bytes;
};

struct KernelEntry {
  const char* name;
  KernelBody body;
  KernelCostModel cost;  // null: the driver assumes 16 device bytes and 16 flops per thread
  std::uint32_t parameter_count;
  const KernelParameter* parameters;
};

// What a kernel does with memory, for the compute mode `tags` (driver/tags.h), in which it is not
// run.
enum class UseKind : std::uint32_t {
  kRead,
  kWrite,     // all of it, whatever was there before
  kUpdate,    // reads and writes
  kClobbers,  // reads and writes; nothing else that the kernel writes depends on it
  kPart,      // writes the `part`-th of `parts` interleaved parts, at most four; the others stay
};

struct KernelUse {
  void* pointer;  // null: this operand is not there
  std::uint64_t size_bytes;
  UseKind kind;
  std::uint32_t part = 0;
  std::uint32_t parts = 1;
};

struct KernelUseList {
  static constexpr std::uint32_t kMost = 16;

  std::uint64_t
      identity;  // a hash of the shapes and scalars that the results depend on; no addresses
  std::uint32_t count;
  KernelUse uses[kMost];
};

using KernelUses = void (*)(const LaunchShape& shape, void* const* arguments, KernelUseList* list);

// A __device__ or __constant__ variable: its storage in the plug-in is its device address.
struct GlobalEntry {
  const char* name;
  void* address;
  std::uint64_t size_bytes;
};

struct Image {
  char magic[8];
  std::uint32_t version;
  std::uint32_t kernel_count;
  const KernelEntry* kernels;
  std::uint32_t global_count;
  const GlobalEntry* globals;
  const KernelUses* kernel_uses = nullptr;  // from version 2 on: one per kernel
};

using ImageGetter = const Image* (*)();

}  // namespace spillway::simulator
