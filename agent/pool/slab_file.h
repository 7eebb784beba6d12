// A slab of host memory as a file: one in memory, made where it is wanted and filled with pages
// before anybody waits for them; or one that stands for memory of the driver's (driver_slabs.h).
//
// Made on the maker's thread (slab_maker.h), owned by the pool. Errors are values.
//
// Invariants
//  1. A new slab reads as zero everywhere: its pages come from the kernel and were nobody's, or
//  zeros were written.
//  2. Its size cannot change, so nobody who maps it can be made to fault.
//  3. A memory file itself stays the agent's; processes get what Lend opens, and can add no seal to
//  it.
//
// Note [What the driver made is somebody's until he ends]
// Nothing can be asked of a driver's file: not who has it mapped, not even whether it is another
// one than the next (they may be one device node, opened many times). So such a slab remembers the
// processes that it was lent to and counts as used until they have ended, whatever they say. One
// that hands its copy of the file to a process that outlives it goes uncounted; it stays out of
// everybody else's reach all the same.
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
  int64_t page_bytes =
      0;                // that it is sure to have: 2 MiB where the system keeps huge pages for this
  int node = kAnyNode;  // where its pages are, if that was asked for and could be done
  bool is_drivers = false;
  std::map<pid_t, base::UniqueFd> users = {};  // of the driver's: whom it was lent to
};

// Nothing: no memory.
std::optional<SlabFile> MakeSlabFile(int64_t size_bytes, int node, HugePages huge,
                                     const Topology* topology);

// Gives the slab's pages back to the kernel; it reads as zero. Only for slabs whose process said
// that it is done, or is dead. The driver's are left as they are: they end when their file is
// closed.
void Scrub(const SlabFile& slab);

// The slab for a process to map. Nothing: no more files.
base::UniqueFd Lend(const SlabFile& slab);

// Before that process gets one of the driver's. False: it has ended, or there are no more files.
bool NoteUser(SlabFile& slab, pid_t process);

// False: what Lend opened is still open, mapped or on its way somewhere, or a process that had one
// of the driver's lives. Where the system cannot tell, the use counts as over.
bool Retire(const SlabFile& slab);

}  // namespace spillway::agent
