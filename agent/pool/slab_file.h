// A slab of host memory as a file in memory, made where it is wanted and filled with pages before anybody waits for them.
//
// Made on the maker's thread (slab_maker.h), owned by the pool. Errors are values.
//
// Invariants
//  1. A new slab reads as zero everywhere: its pages come from the kernel and were nobody's.
//  2. Its size cannot change, so nobody who maps it can be made to fault.
//  3. `file` itself stays the agent's; processes get what Lend opens, and can add no seal to it.
#pragma once

#include <cstdint>
#include <optional>

#include "agent/pool/topology.h"
#include "base/unique_fd.h"

namespace spillway::agent {

enum class HugePages { kNever, kWhenThereAre };

struct SlabFile {
  base::UniqueFd file;
  int64_t size_bytes = 0;
  int64_t page_bytes = 0;  // that it is sure to have: 2 MiB where the system keeps huge pages for this
  int node = kAnyNode;     // where its pages are, if that was asked for and could be done
};

// Nothing: no memory.
std::optional<SlabFile> MakeSlabFile(int64_t size_bytes, int node, HugePages huge, const Topology* topology);

// Gives the slab's pages back to the kernel; it reads as zero. Only for slabs whose process said that it is done, or is dead.
void Scrub(const SlabFile& slab);

// The slab for a process to map. Nothing: no more files.
base::UniqueFd Lend(const SlabFile& slab);

// False: what Lend opened is still open, mapped or on its way somewhere. Where the system cannot tell, the use counts as over.
bool Retire(const SlabFile& slab);

}  // namespace spillway::agent
