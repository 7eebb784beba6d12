#include "interposer/entry/hook_table.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>

#include "interposer/driver/driver_api.h"
#include "interposer/entry/symbol_class.h"

namespace spillway::entry {
namespace {

// Arrays of characters, not pointers to them: nothing to relocate at program start.
struct Row {
  char name[55];
  SymbolClass what;
};

constexpr Row kRows[] = {
#define SPILLWAY_HOOK(name, what) {#name, SymbolClass::what},
#define SPILLWAY_PASS(name, what, ...) {#name, SymbolClass::what},
#include "interposer/entry/hook_table.inc"
};

enum RowIndex {
#define SPILLWAY_HOOK(name, ...) kIndexOf_##name,
#define SPILLWAY_PASS(name, ...) kIndexOf_##name,
#include "interposer/entry/hook_table.inc"
};

constexpr auto kRowsByName = [] {
  std::array<uint16_t, std::size(kRows)> order{};
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<uint16_t>(i);
  std::sort(order.begin(), order.end(), [](uint16_t a, uint16_t b) {
    return std::string_view(kRows[a].name) < std::string_view(kRows[b].name);
  });
  return order;
}();

constexpr int kNoRow = -1;

int RowNamed(std::string_view name) {
  const auto* const at = std::lower_bound(
      kRowsByName.begin(), kRowsByName.end(), name,
      [](uint16_t row, std::string_view wanted) { return std::string_view(kRows[row].name) < wanted; });
  return at != kRowsByName.end() && kRows[*at].name == name ? *at : kNoRow;
}

void* HookAt(int row) {
  switch (row) {
#define SPILLWAY_HOOK(name, ...) \
  case kIndexOf_##name:          \
    return reinterpret_cast<void*>(&::name);
#include "interposer/entry/hook_table.inc"
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
#include "interposer/entry/hook_table.inc"
  return function;
}

}  // namespace spillway::entry
