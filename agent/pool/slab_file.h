// A slab of host memory as a file: a memfd filled with pages in advance, or a file that stands for
// driver memory (driver_slabs.h).
//
// Invariants
//  1. A new slab reads as zero: its pages are fresh from the kernel, or were filled with zeros.
//  2. Its size is fixed, so no mapping can fault.
//  3. The memfd itself stays the agent's. Processes get what Lend opens, and can add no seal.
//
// Note [A driver slab is used until its processes end]
// A driver's file cannot be queried: neither its mappings nor its identity (several may be one
// device node). So such a slab records its processes and counts as used until they have ended. A
// copy passed to a longer-living process is not counted, but the slab still reaches no other job.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>

#include "agent/pool/topology.h"
#include "base/unique_fd.h"

namespace spillway::agent {

enum class HugePages { kNever, kWhenThereAre };

struct SlabFile {
  base::UniqueFd file;
  int64_t size_bytes = 0;
  int64_t page_bytes = 0;  // guaranteed; 2 MiB where the system reserves huge pages
  int node = kAnyNode;     // where its pages are; kAnyNode: not requested, or not possible
  bool is_drivers = false;
  std::map<pid_t, base::UniqueFd> users = {};  // of a driver slab: processes it was lent to
};

std::optional<SlabFile> MakeSlabFile(int64_t size_bytes, int node, HugePages huge,
                                     const Topology* topology);

// Only after its process has returned it or died. No effect on driver memory, which ends with its
// file.
void Scrub(const SlabFile& slab);

// Invalid: no descriptor left.
base::UniqueFd Lend(const SlabFile& slab);

// Call it before the process gets a driver slab. False: it has ended, or no descriptor is left.
bool NoteUser(SlabFile& slab, pid_t process);

// False: a lent file is still open, mapped or in flight, or a driver slab's process lives. Where
// the system cannot tell, the use counts as over.
bool Retire(const SlabFile& slab);

}  // namespace spillway::agent
