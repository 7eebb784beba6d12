// A number for each symbol of the driver, by which a function identifies itself.
//
// For tagged_driver and tagged_entry. The numbers are no CUDA results, and none means success.
#pragma once

namespace spillway::test {

enum Tag {
  kNoTag = 20000,
#define SPILLWAY_HOOK(name, ...) kTagOf_##name,
#define SPILLWAY_PASS(name, ...) kTagOf_##name,
#include "interposer/driver/hook_table.inc"
};

struct TaggedSymbol {
  const char* name;
  int tag;
};

inline constexpr TaggedSymbol kTaggedSymbols[] = {
#define SPILLWAY_HOOK(name, ...) {#name, kTagOf_##name},
#define SPILLWAY_PASS(name, ...) {#name, kTagOf_##name},
#include "interposer/driver/hook_table.inc"
};

}  // namespace spillway::test
