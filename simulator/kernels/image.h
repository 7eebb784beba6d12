// The contract between the simulated driver and the suppliers of kernels.
//
// Used by simulator/driver, plug-ins made by tools/simkernels, simulator/dnn and tests. An image is
// constant and outlives the use of the driver.
//
// Invariants
//  1. `cuModuleLoadData` and `cuLibraryLoadData` load an Image from a pointer to it, or from an
//     ELF file that holds one (module_elf.h). For other data (a fat binary, a cubin, PTX) kernels
//     and globals come by name from plug-ins: `<executable>.kernels.so` beside the program, the
//     colon-separated paths in SPILLWAY_SIM_KERNELS, and `plugins/*.kernels.so` beside the driver.
//     In the compute mode `tags` the module's metadata lists those that plug-ins lack, without a
//     body (driver/device/listed_image.h).
//  2. A plug-in is a shared object that exports `spillway_sim_image` (type ImageGetter).
//  3. Kernel names are the Itanium-mangled names that nvcc gives to the same kernels.
//  4. siglongjmp abandons a body that touches unmapped device memory. So a body holds no lock then,
//     and the next body rebuilds all executor state.
//  5. A body calls neither CUDA nor functions that allocate device memory.
#pragma once

#include <cstdint>

namespace spillway::simulator {

inline constexpr char kImageMagic[8] = {'S', 'P', 'I', 'L', 'L', 'S', 'I', 'M'};
inline constexpr std::uint32_t kImageVersion = 1;
inline constexpr std::uint32_t kImageVersionWithUses = 2;
inline constexpr std::uint32_t kImageVersionWithServices = 3;
inline constexpr char kImageGetterName[] = "spillway_sim_image";

struct LaunchShape {
  std::uint32_t grid[3];
  std::uint32_t block[3];
  std::uint32_t dynamic_shared_bytes;
  std::uint32_t cooperative = 0;  // 1: all blocks are resident at once
  std::uint32_t clock_khz = 0;    // of the device's multiprocessors; 0: nobody says
  std::int64_t begin_ns = 0;      // modelled
};

// On a GPU. The driver's time: max(flops / peak_flops, bytes / memory_bandwidth) + launch overhead.
struct KernelCost {
  std::uint64_t flops;
  std::uint64_t device_bytes;
};

// `arguments[i]` points to the i-th parameter's bytes (a private copy made at launch).
using KernelBody = void (*)(const LaunchShape& shape, void* const* arguments);
using KernelCostModel = KernelCost (*)(const LaunchShape& shape, void* const* arguments);

struct KernelParameter {
  std::uint32_t offset_bytes;  // as cuKernelGetParamInfo reports it
  std::uint32_t size_bytes;
};

struct KernelEntry {
  const char* name;
  KernelBody body;
  KernelCostModel cost;  // null: the driver assumes 16 device bytes and 16 flops per thread
  std::uint32_t parameter_count;
  const KernelParameter* parameters;
};

// For the compute mode `tags`, instead of running the kernel.
enum class UseKind : std::uint32_t {
  kRead,
  kWrite,  // all of it, without reading it
  kUpdate,
  kClobbers,  // reads and writes; no other output depends on the bytes read
  kPart,      // the `part`-th of `parts` interleaved parts, at most four; the others stay
  kFill,      // sets each byte to `part`, whatever was read
};

struct KernelUse {
  void* pointer;  // null: no such operand
  std::uint64_t size_bytes;
  UseKind kind;
  std::uint32_t part = 0;
  std::uint32_t parts = 1;
};

struct KernelUseList {
  static constexpr std::uint32_t kMost = 128;

  std::uint64_t identity;  // of all that the results depend on; no addresses
  std::uint32_t count;
  KernelUse uses[kMost];
};

using KernelUses = void (*)(const LaunchShape& shape, void* const* arguments, KernelUseList* list);

struct GlobalEntry {
  const char* name;
  void* address;
  std::uint64_t size_bytes;
};

struct DriverServices {
  // Visits the parts of a readable range that may hold other bytes than zeros, in ascending order.
  // Costs what these parts cost.
  void (*for_written)(const void* base, std::uint64_t size_bytes,
                      void (*visit)(void* context, const void* begin, const void* end),
                      void* context);
};

struct Image {
  char magic[8];
  std::uint32_t version;
  std::uint32_t kernel_count;
  const KernelEntry* kernels;
  std::uint32_t global_count;
  const GlobalEntry* globals;
  const KernelUses* kernel_uses = nullptr;  // from version 2 on: one per kernel
  // From version 3 on; called before any body. With it bodies run in the compute mode `tags`, too:
  // `kernel_uses` only tell how long a launch takes.
  void (*use_services)(const DriverServices& services) = nullptr;
};

using ImageGetter = const Image* (*)();

}  // namespace spillway::simulator
