#include "interposer/dnn/other_algorithms.h"

#include <functional>
#include <string_view>

namespace spillway::dnn {
namespace {

struct Entry {
  std::atomic<std::size_t> key{0};  // hash of the operation
  std::atomic<bool> is_written{false};
  OtherAlgorithm other;
};

constexpr std::size_t kEntries = 128;
constinit Entry entries[kEntries];
constinit std::atomic<std::size_t> kept{0}, without_place{0};

}  // namespace

void NoteOtherAlgorithm(const OtherAlgorithm& other) {
  const std::size_t key = std::hash<std::string_view>()(other.operation) | 1;
  for (Entry& entry : entries) {
    std::size_t found = 0;
    if (!entry.key.compare_exchange_strong(found, key, std::memory_order_relaxed)) {
      if (found == key) return;
      continue;
    }
    entry.other = other;
    entry.is_written.store(true, std::memory_order_release);
    kept.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  without_place.fetch_add(1, std::memory_order_relaxed);
}

std::size_t OtherAlgorithmCount() {
  return kept.load(std::memory_order_relaxed) + without_place.load(std::memory_order_relaxed);
}

const OtherAlgorithm* OtherAlgorithmAt(std::size_t index) {
  if (index >= kEntries || !entries[index].is_written.load(std::memory_order_acquire))
    return nullptr;
  return &entries[index].other;
}

}  // namespace spillway::dnn
