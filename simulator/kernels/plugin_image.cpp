// The image of a plug-in or program: the kernels and globals that simkernels put into the linker's
// sections.
#include "simulator/kernels/image.h"

#include <cstddef>

using spillway::simulator::GlobalEntry;
using spillway::simulator::Image;
using spillway::simulator::KernelEntry;

// The linker defines these around the sections; weak, for a file may have no globals or no kernels.
extern "C" {
extern const KernelEntry __start_spillway_kernels[] __attribute__((weak, visibility("hidden")));
extern const KernelEntry __stop_spillway_kernels[] __attribute__((weak, visibility("hidden")));
extern const GlobalEntry __start_spillway_globals[] __attribute__((weak, visibility("hidden")));
extern const GlobalEntry __stop_spillway_globals[] __attribute__((weak, visibility("hidden")));
}

// simkernels writes these entries in assembly: name, body, cost, count (8 bytes), parameters; name,
// address, size.
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
