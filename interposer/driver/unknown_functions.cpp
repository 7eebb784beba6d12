#include "interposer/driver/unknown_functions.h"

#include <stdio.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <string_view>

namespace spillway::driver {
namespace {

struct Entry {
  std::atomic<size_t> key{0};  // hash of the claiming name
  char name[80] = {};
};

constexpr size_t kEntries = 128;
constinit Entry entries[kEntries];
constinit std::atomic<const char*> names[kEntries];  // in order of arrival
constinit std::atomic<size_t> kept{0};
constinit std::atomic<size_t> without_place{0};

enum class Claim { kNew, kKnown, kOtherName };

Claim ClaimEntry(Entry* entry, size_t key) {
  size_t found = 0;
  if (entry->key.compare_exchange_strong(found, key, std::memory_order_relaxed)) return Claim::kNew;
  return found == key ? Claim::kKnown : Claim::kOtherName;
}

void Keep(Entry* entry, const char* name) {
  snprintf(entry->name, sizeof entry->name, "%s", name);
  names[kept.fetch_add(1, std::memory_order_relaxed)].store(entry->name, std::memory_order_release);
}

}  // namespace

void NoteUnknownFunction(const char* name) {
  const size_t key = std::hash<std::string_view>()(name) | 1;
  for (size_t step = 0; step < kEntries; ++step) {
    Entry* const entry = &entries[(key + step) % kEntries];
    const Claim claim = ClaimEntry(entry, key);
    if (claim == Claim::kNew) Keep(entry, name);
    if (claim != Claim::kOtherName) return;
  }
  without_place.fetch_add(1, std::memory_order_relaxed);
}

size_t UnknownFunctionCount() {
  return kept.load(std::memory_order_relaxed) + without_place.load(std::memory_order_relaxed);
}

const char* UnknownFunctionName(size_t index) {
  return index < kEntries ? names[index].load(std::memory_order_acquire) : nullptr;
}

}  // namespace spillway::driver
