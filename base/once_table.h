// Values that are each noted once, for a report: by key, in the order of arrival.
//
// Any thread notes and reads. Kept for ever, in a table of fixed size; what comes when it is full
// is only counted, each time. Two keys with one 64-bit hash count as one. Never: takes a lock,
// allocates, or fails.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <string_view>

namespace spillway::base {

template <class Value, std::size_t kEntries>
class OnceTable {
 public:
  // Of a key's calls, the first one's value counts.
  void Note(std::string_view key, const Value& value) {
    const std::size_t hash = std::hash<std::string_view>()(key) | 1;
    for (std::size_t step = 0; step < kEntries; ++step) {
      Entry& entry = entries_[(hash + step) % kEntries];
      std::size_t found = 0;
      if (entry.hash.compare_exchange_strong(found, hash, std::memory_order_relaxed))
        return Keep(&entry, value);
      if (found == hash) return;
    }
    without_place_.fetch_add(1, std::memory_order_relaxed);
  }

  std::size_t count() const {
    return kept_.load(std::memory_order_relaxed) + without_place_.load(std::memory_order_relaxed);
  }

  // Null from the first index without a kept value on.
  const Value* At(std::size_t index) const {
    return index < kEntries ? in_order_[index].load(std::memory_order_acquire) : nullptr;
  }

 private:
  struct Entry {
    std::atomic<std::size_t> hash{0};
    Value value = {};
  };

  void Keep(Entry* entry, const Value& value) {
    entry->value = value;
    in_order_[kept_.fetch_add(1, std::memory_order_relaxed)].store(&entry->value,
                                                                   std::memory_order_release);
  }

  Entry entries_[kEntries] = {};
  std::atomic<const Value*> in_order_[kEntries] = {};
  std::atomic<std::size_t> kept_{0}, without_place_{0};
};

}  // namespace spillway::base
