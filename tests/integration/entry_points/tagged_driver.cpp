// A driver whose functions each return a number of their own, whatever the arguments (tags.h).
#include "tests/integration/entry_points/tags.h"

#define SPILLWAY_HOOK(name, ...)                                 \
  extern "C" __attribute__((visibility("default"))) int name() { \
    return spillway::test::kTagOf_##name;                        \
  }
#define SPILLWAY_PASS(name, ...) SPILLWAY_HOOK(name)
#include "interposer/driver/hook_table.inc"
