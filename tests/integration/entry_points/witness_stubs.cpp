// Every function of the driver as a weak symbol.
#define SPILLWAY_HOOK(name, ...) \
  extern "C" __attribute__((weak, visibility("default"))) int name() { return 801; }
#define SPILLWAY_PASS(name, ...) SPILLWAY_HOOK(name)
#include "interposer/driver/hook_table.inc"
