#include "interposer/ledger/own_mappings.h"

#include <iterator>

namespace spillway::interposer {
namespace {

// No handle of the driver's has this bit: they are small numbers or addresses.
constexpr CUmemGenericAllocationHandle kOurs = CUmemGenericAllocationHandle{1} << 60;

}  // namespace

OwnMappings& OwnMappings::Instance() {
  static OwnMappings* const mappings = new OwnMappings;  // calls come until the process ends
  return *mappings;
}

OwnMappings::Memory* OwnMappings::Created(CUmemGenericAllocationHandle real, size_t bytes,
                                          const CUmemAllocationProp& properties, void* payer,
                                          Name name) {
  const CUmemGenericAllocationHandle handle = name == Name::kReal ? real : kOurs | ++created_;
  auto memory = std::make_unique<Memory>();
  *memory = {
      .handle = handle, .bytes = bytes, .properties = properties, .payer = payer, .real = real};
  return (memory_[handle] = std::move(memory)).get();
}

OwnMappings::Memory* OwnMappings::Find(CUmemGenericAllocationHandle handle) {
  const auto found = memory_.find(handle);
  return found == memory_.end() ? nullptr : found->second.get();
}

void OwnMappings::Mapped(CUdeviceptr base, size_t bytes, Memory* memory) {
  mappings_[base] = {base, bytes, memory};
  ++memory->mappings;
}

void OwnMappings::Unmapped(CUdeviceptr base) {
  const auto found = mappings_.find(base);
  --found->second.memory->mappings;
  mappings_.erase(found);
}

void OwnMappings::Ended(const Memory* memory) { memory_.erase(memory->handle); }

void OwnMappings::Reserved(const Reservation& reservation) {
  reservations_[reservation.base] = reservation;
}

OwnMappings::Reservation OwnMappings::ReservationOf(CUdeviceptr address) const {
  const auto next = reservations_.upper_bound(address);
  if (next == reservations_.begin()) return {};
  const Reservation& reservation = std::prev(next)->second;
  return address - reservation.base < reservation.bytes ? reservation : Reservation{};
}

OwnMappings::List OwnMappings::Within(CUdeviceptr base, size_t bytes) const {
  List list;
  auto at = mappings_.upper_bound(base);
  if (at != mappings_.begin() && std::prev(at)->second.end() > base) --at;
  for (; at != mappings_.end() && at->first < base + bytes; ++at) list.push_back(at->second);
  return list;
}

OwnMappings::List OwnMappings::Around(CUdeviceptr base, size_t bytes) const {
  return Within(base - 1, bytes + 2);
}

OwnMappings::List OwnMappings::NeighboursOf(const Mapping& mapping) const {
  List neighbours = Around(mapping.base, mapping.bytes);
  std::erase_if(neighbours, [&](const Mapping& each) { return each.base == mapping.base; });
  return neighbours;
}

std::vector<OwnMappings::Memory*> OwnMappings::PaidBy(const void* payer) const {
  std::vector<Memory*> paid;
  for (const auto& [handle, memory] : memory_) {
    if (memory->payer == payer) paid.push_back(memory.get());
  }
  return paid;
}

}  // namespace spillway::interposer
