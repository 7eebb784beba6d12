#include "interposer/entry/hook_table.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "interposer/driver/driver_api.h"

namespace spillway::entry {
namespace {

// Arrays of characters, not pointers to them: nothing to relocate at program start.
struct Name {
  char text[40];
};

constexpr Name kNames[] = {
#define SPILLWAY_HOOK(name) {#name},
#include "interposer/entry/hook_table.inc"
#undef SPILLWAY_HOOK
};

enum HookIndex {
#define SPILLWAY_HOOK(name) kIndexOf_##name,
#include "interposer/entry/hook_table.inc"
#undef SPILLWAY_HOOK
};

void* HookAt(int index) {
  switch (index) {
#define SPILLWAY_HOOK(name) \
  case kIndexOf_##name:     \
    return reinterpret_cast<void*>(&::name);
#include "interposer/entry/hook_table.inc"
#undef SPILLWAY_HOOK
  }
  return nullptr;
}

}  // namespace

void* HookNamed(const char* name) {
  if (name[0] != 'c' || name[1] != 'u') return nullptr;
  const auto* const found = std::find_if(std::begin(kNames), std::end(kNames),
                                         [&](const Name& row) { return strcmp(row.text, name) == 0; });
  return found == std::end(kNames) ? nullptr : HookAt(static_cast<int>(found - kNames));
}

void* RouteToHook(void* function) {
  const driver::DriverApi& api = driver::Driver();
#define SPILLWAY_HOOK(name) \
  if (reinterpret_cast<void*>(api.name) == function) return reinterpret_cast<void*>(&::name);
#include "interposer/entry/hook_table.inc"
#undef SPILLWAY_HOOK
  return function;
}

}  // namespace spillway::entry
