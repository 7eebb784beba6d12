// Every function of the driver, weakly: null_driver.cpp defines those that matter.
#define SPILLWAY_SYMBOL(name) \
  extern "C" __attribute__((weak, visibility("default"))) int name() { return 801; }
#include "interposer/entry/driver_symbols.inc"
