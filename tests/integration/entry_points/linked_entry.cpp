// A driver-API program linked with -lcuda, as an application or (built as a library) as a plug-in.
#include <cuda.h>

#include <cstdio>

#include "tests/integration/entry_points/whereabouts.h"

extern "C" __attribute__((visibility("default"))) int report_linked_entry() {
  using spillway::test::Whereabouts;
  std::printf("cuMemAlloc_v2 %s\n", Whereabouts(reinterpret_cast<void*>(&cuMemAlloc)).c_str());
  std::printf("cuLaunchKernel %s\n", Whereabouts(reinterpret_cast<void*>(&cuLaunchKernel)).c_str());
  int count = -1;
  const CUresult initialised = cuInit(0);
  const CUresult counted = cuDeviceGetCount(&count);  // not hooked: an assembly forwarder
  std::printf("cuInit=%d cuDeviceGetCount=%d devices=%d\n", initialised, counted, count);
  return 0;
}

#ifdef SPILLWAY_ENTRY_POINT_IS_PROGRAM
int main() { return report_linked_entry(); }
#endif
