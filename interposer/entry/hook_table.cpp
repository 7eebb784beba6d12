#include "interposer/entry/hook_table.h"

#include <array>
#include <cstdint>
#include <iterator>

#include "interposer/driver/driver_api.h"
#include "interposer/entry/symbol_class.h"

namespace spillway::entry {
namespace {

// Character arrays instead of pointers need no relocation at program start.
struct Row {
  char name[55];
  SymbolClass what;
};

constexpr Row kRows[] = {
#define SPILLWAY_HOOK(name, what) {#name, SymbolClass::what},
#define SPILLWAY_PASS(name, what, ...) {#name, SymbolClass::what},
#include "interposer/driver/hook_table.inc"
};

enum RowIndex {
#define SPILLWAY_HOOK(name, ...) kIndexOf_##name,
#define SPILLWAY_PASS(name, ...) kIndexOf_##name,
#include "interposer/driver/hook_table.inc"
};

constexpr uint32_t Hash(std::string_view name) {
  uint32_t hash = 2166136261u;
  for (const char letter : name) hash = (hash ^ static_cast<unsigned char>(letter)) * 16777619u;
  return hash;
}

constexpr auto kHashes = [] {
  std::array<uint32_t, std::size(kRows)> hashes{};
  for (size_t i = 0; i < hashes.size(); ++i) hashes[i] = Hash(kRows[i].name);
  return hashes;
}();

constexpr int kNoRow = -1;

int RowNamed(std::string_view name) {
  const uint32_t hash = Hash(name);
  for (size_t i = 0; i < kHashes.size(); ++i) {
    if (kHashes[i] == hash && kRows[i].name == name) return static_cast<int>(i);
  }
  return kNoRow;
}

void* HookAt(int row) {
  switch (row) {
#define SPILLWAY_HOOK(name, ...) \
  case kIndexOf_##name:          \
    return reinterpret_cast<void*>(&::name);
#include "interposer/driver/hook_table.inc"
  }
  return nullptr;
}

}  // namespace

bool IsListed(std::string_view name) { return RowNamed(name) != kNoRow; }

void* HookNamed(const char* name) {
  if (name[0] != 'c' || name[1] != 'u') return nullptr;
  return HookAt(RowNamed(name));
}

void* RouteToHook(void* function) {
  const driver::DriverApi& api = driver::Driver();
#define SPILLWAY_HOOK(name, ...) \
  if (reinterpret_cast<void*>(api.name) == function) return reinterpret_cast<void*>(&::name);
#include "interposer/driver/hook_table.inc"
  return function;
}

}  // namespace spillway::entry
