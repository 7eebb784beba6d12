#include "simulator/driver/engine/effect.h"

#include <cstdio>

#include "simulator/driver/machine/statistics.h"
#include "simulator/driver/memory/address_space.h"

namespace spillway::simulator {
namespace {

// A Fault also restores them.
class WithheldRanges {
 public:
  WithheldRanges(AddressSpace& addresses, const std::vector<Range>& ranges)
      : addresses_(addresses), ranges_(ranges) {
    for (const Range& range : ranges_) addresses_.Withhold(range.base, range.size_bytes);
  }
  ~WithheldRanges() {
    for (const Range& range : ranges_) addresses_.GiveBack(range.base, range.size_bytes);
  }
  WithheldRanges(const WithheldRanges&) = delete;
  WithheldRanges& operator=(const WithheldRanges&) = delete;

 private:
  AddressSpace& addresses_;
  const std::vector<Range>& ranges_;
};

class Confinement {
 public:
  Confinement(AddressSpace& addresses, const Operation& operation)
      : addresses_(addresses), confines_(operation.confined && addresses.device_count() > 1) {
    if (confines_) addresses_.ShowOnlyTo({operation.device, operation.peers});
  }
  ~Confinement() {
    if (confines_) addresses_.ShowToAll();
  }
  Confinement(const Confinement&) = delete;
  Confinement& operator=(const Confinement&) = delete;

 private:
  AddressSpace& addresses_;
  const bool confines_;
};

void RunEffect(AddressSpace& addresses, const Operation& operation) {
  const Confinement confinement(addresses, operation);
  const WithheldRanges withheld(addresses, operation.suspects);
  operation.effect();
}

void NoteFault(const Operation& operation, std::uintptr_t address) {
  if (operation.IsSuspect(address)) {
    ++TheStatistics().unmapped_while_in_use;
    TheStatistics().AddViolation("cuMemUnmap under unfinished work: " + operation.Description());
  }
  char text[64];
  std::snprintf(text, sizeof text, " touched unmapped device memory at 0x%lx", address);
  ++TheStatistics().illegal_accesses;
  TheStatistics().AddViolation("illegal address: " + operation.Description() + text);
}

}  // namespace

void ApplyEffect(AddressSpace& addresses, Operation& operation) {
  if (IsDead(operation) || operation.effect == nullptr) return;
  try {
    if (operation.doomed_address != 0) throw Fault{operation.doomed_address};
    RunEffect(addresses, operation);
  } catch (const Fault& fault) {
    if (operation.errors != nullptr) operation.errors->sticky = fault.error;
    if (fault.error == CUDA_ERROR_ILLEGAL_ADDRESS) NoteFault(operation, fault.address);
  }
}

}  // namespace spillway::simulator
