// A plug-in's or program's image: kernels and globals that simkernels put into linker sections.
#include "simulator/kernels/image.h"

#include <cstddef>

using spillway::simulator::GlobalEntry;
using spillway::simulator::Image;
using spillway::simulator::KernelEntry;

// The linker defines these around the sections. Weak: a file may have no globals or no kernels.
extern "C" {
extern const KernelEntry __start_spillway_kernels[] __attribute__((weak, visibility("hidden")));
extern const KernelEntry __stop_spillway_kernels[] __attribute__((weak, visibility("hidden")));
extern const GlobalEntry __start_spillway_globals[] __attribute__((weak, visibility("hidden")));
extern const GlobalEntry __stop_spillway_globals[] __attribute__((weak, visibility("hidden")));
}

// simkernels writes these in assembly: name, body, cost, count, parameters; name, address, size.
static_assert(sizeof(KernelEntry) == 40 && offsetof(KernelEntry, parameters) == 32);
static_assert(sizeof(GlobalEntry) == 24 && offsetof(GlobalEntry, size_bytes) == 16);

extern "C" __attribute__((visibility("default"))) const Image* spillway_sim_image() {
  static const Image image = {
      {'S', 'P', 'I', 'L', 'L', 'S', 'I', 'M'},
      spillway::simulator::kImageVersion,
      static_cast<std::uint32_t>(__stop_spillway_kernels - __start_spillway_kernels),
      __start_spillway_kernels,
      static_cast<std::uint32_t>(__stop_spillway_globals - __start_spillway_globals),
      __start_spillway_globals};
  return &image;
}
