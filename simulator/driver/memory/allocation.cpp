#include "simulator/driver/memory/allocation.h"

#include <iterator>
#include <utility>

namespace spillway::simulator {

Allocation& AllocationTable::Add(Allocation allocation) {
  allocation.id = next_id_++;
  return by_base_.insert_or_assign(allocation.base, allocation).first->second;
}

Allocation* AllocationTable::FindBase(std::uintptr_t base) {
  const auto found = by_base_.find(base);
  return found == by_base_.end() ? nullptr : &found->second;
}

Allocation* AllocationTable::Find(std::uintptr_t address) {
  return const_cast<Allocation*>(std::as_const(*this).Find(address));
}

const Allocation* AllocationTable::Find(std::uintptr_t address) const {
  const auto next = by_base_.upper_bound(address);
  if (next == by_base_.begin()) return nullptr;
  const Allocation& allocation = std::prev(next)->second;
  return address - allocation.base < allocation.size_bytes ? &allocation : nullptr;
}

}  // namespace spillway::simulator
