#include "interposer/entry/stored_parameters.h"

#include <atomic>
#include <cstring>
#include <new>

namespace spillway::entry {
namespace {

constexpr size_t kMostBytes = 4096;  // of one kernel's parameters, before compute capability 7.0

struct Entry {
  CUfunction kernel;
  Entry* next;
  alignas(CUdeviceptr) unsigned char bytes[kMostBytes];
};

constinit std::atomic<Entry*> newest{nullptr};

Entry* Find(CUfunction kernel) {
  Entry* entry = newest.load(std::memory_order_acquire);
  while (entry != nullptr && entry->kernel != kernel) entry = entry->next;
  return entry;
}

// Null without memory: the launch then names nothing.
Entry* FindOrMake(CUfunction kernel) {
  if (Entry* const found = Find(kernel)) return found;
  auto* const entry = new (std::nothrow) Entry{kernel, newest.load(std::memory_order_relaxed), {}};
  while (entry != nullptr && !newest.compare_exchange_weak(entry->next, entry)) {
  }
  return entry;
}

}  // namespace

void StoreParameter(CUfunction kernel, int offset_bytes, const void* value, size_t size_bytes) {
  if (offset_bytes < 0 || static_cast<size_t>(offset_bytes) >= kMostBytes || value == nullptr)
    return;
  const auto offset = static_cast<size_t>(offset_bytes);
  if (size_bytes > kMostBytes - offset) return;
  if (Entry* const entry = FindOrMake(kernel))
    std::memcpy(entry->bytes + offset, value, size_bytes);
}

std::span<const unsigned char> StoredParameters(CUfunction kernel) {
  const Entry* const entry = Find(kernel);
  return entry == nullptr ? std::span<const unsigned char>()
                          : std::span<const unsigned char>(entry->bytes);
}

}  // namespace spillway::entry
