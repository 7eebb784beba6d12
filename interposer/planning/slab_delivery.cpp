#include "interposer/planning/slab_delivery.h"

#include <sys/stat.h>

#include <utility>

#include "interposer/lease/host_slabs.h"

namespace spillway::interposer {

void DeliverSlabs(const protocol::Slabs& slabs, std::vector<base::UniqueFd> files) {
  std::vector<HostSlab> came;
  for (std::uint32_t i = 0; i < slabs.slabs.count; ++i) {
    struct stat facts;
    // Accesses to a mapping beyond the end of its file fault.
    if (fstat(files[i].get(), &facts) != 0 || facts.st_size < slabs.slab_bytes ||
        slabs.slab_bytes <= 0)
      return;
    came.push_back(
        {slabs.slabs.names[i], static_cast<size_t>(slabs.slab_bytes), std::move(files[i])});
  }
  HostSlabs::Instance().Deliver(static_cast<int>(slabs.device), std::move(came));
}

// The file does not tell its size. The driver refuses to map a file that is too small.
void DeliverSlabs(const protocol::DriverSlabs& slabs, std::vector<base::UniqueFd> files) {
  if (slabs.slab_bytes <= 0) return;
  std::vector<HostSlab> came;
  came.reserve(slabs.slabs.count);
  for (std::uint32_t i = 0; i < slabs.slabs.count; ++i)
    came.push_back(
        {slabs.slabs.names[i], static_cast<size_t>(slabs.slab_bytes), std::move(files[i]), true});
  HostSlabs::Instance().Deliver(static_cast<int>(slabs.device), std::move(came));
}

}  // namespace spillway::interposer
