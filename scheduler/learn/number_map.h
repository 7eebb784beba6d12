// A flat, unordered hash table from positive numbers to small values.
//
// One thread at a time. Allocates in the constructor, and in Insert beyond the reserved count.
// Never iterated: deciders must not depend on its order.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace spillway::scheduler {

template <typename Value>
class NumberMap {
 public:
  explicit NumberMap(size_t reserved = 16) : slots_(std::bit_ceil(2 * reserved + 2)) {}

  Value* Find(uint64_t key) {
    Slot& slot = slots_[PlaceOf(key)];
    return slot.key == key ? &slot.value : nullptr;
  }
  const Value* Find(uint64_t key) const {
    const Slot& slot = slots_[PlaceOf(key)];
    return slot.key == key ? &slot.value : nullptr;
  }
  std::pair<Value*, bool> Insert(uint64_t key) {
    if (2 * (size_ + 1) > slots_.size()) Grow();
    Slot& slot = slots_[PlaceOf(key)];
    const bool is_new = slot.key != key;
    if (is_new) {
      slot = {key, Value{}};
      ++size_;
    }
    return {&slot.value, is_new};
  }
  void Erase(uint64_t key) {
    size_t hole = PlaceOf(key);
    if (slots_[hole].key != key) return;
    --size_;
    for (size_t i = Next(hole); slots_[i].key != 0; i = Next(i)) {
      const size_t home = HomeOf(slots_[i].key);
      if (((i - home) & Mask()) < ((i - hole) & Mask())) continue;
      slots_[hole] = slots_[i];
      hole = i;
    }
    slots_[hole] = {};
  }
  void Clear() {
    slots_.assign(slots_.size(), {});
    size_ = 0;
  }
  size_t size() const { return size_; }

 private:
  struct Slot {
    uint64_t key = 0;  // 0: empty
    Value value{};
  };
  size_t Mask() const { return slots_.size() - 1; }
  size_t Next(size_t i) const { return (i + 1) & Mask(); }
  size_t HomeOf(uint64_t key) const {
    return static_cast<size_t>((key * 0x9e3779b97f4a7c15u) >> 32) & Mask();
  }
  size_t PlaceOf(uint64_t key) const {
    size_t i = HomeOf(key);
    while (slots_[i].key != key && slots_[i].key != 0) i = Next(i);
    return i;
  }
  void Grow() {
    std::vector<Slot> old(2 * slots_.size());
    old.swap(slots_);
    for (Slot& slot : old) {
      if (slot.key != 0) slots_[PlaceOf(slot.key)] = std::move(slot);
    }
  }

  std::vector<Slot> slots_;
  size_t size_ = 0;
};

}  // namespace spillway::scheduler
