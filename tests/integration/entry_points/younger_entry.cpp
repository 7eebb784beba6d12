// A plug-in linked against a driver with a function that the preload library does not know.
#include <cstdio>

#include "tests/integration/entry_points/whereabouts.h"

extern "C" int cuFromTheFuture();

extern "C" __attribute__((visibility("default"))) int report_linked_entry() {
  std::printf("cuFromTheFuture %s\n",
              spillway::test::Whereabouts(reinterpret_cast<void*>(&cuFromTheFuture)).c_str());
  return cuFromTheFuture();
}
