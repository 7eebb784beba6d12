// Which of the ways to run an operation a program is offered, by the memory that each needs.
//
// Called by the hooks of cuDNN's queries, on the program's threads. Pure.
//
// A program that picks a way which cannot run within its budget would use memory over the link, or
// be refused. So such ways are hidden while others remain. So are those that need a larger
// workspace than the job is granted. A way that fits is never hidden, nor
// moved: a program whose bare choice fits makes that choice, and computes the same bytes.
//
// Invariants
//  1. What fits is offered, in the library's order.
//  2. What does not fit is hidden only where a way of the same kind fits. A program that insists on
//     one kind (deterministic algorithms, a math type) finds one as it would bare.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace spillway::dnn {

struct WorkspaceOffer {
  std::size_t workspace_bytes = 0;  // of device memory
  std::uint64_t kind = 0;           // what a program may insist on
  bool is_available = true;         // the library can run it

  bool operator==(const WorkspaceOffer&) const = default;
};

// Of device memory.
struct WorkspaceBounds {
  std::size_t room_bytes = SIZE_MAX;  // for operands and workspace together
  std::size_t most_bytes = SIZE_MAX;  // of a workspace, as granted
};

struct OperationMemory {
  std::size_t operand_bytes = 0;
  WorkspaceBounds bounds;
  bool Fits(std::size_t workspace_bytes) const {
    return workspace_bytes <= bounds.most_bytes && operand_bytes <= bounds.room_bytes &&
           workspace_bytes <= bounds.room_bytes - operand_bytes;
  }
};

// By offer, in their order.
std::vector<bool> HiddenOffers(std::span<const WorkspaceOffer> offers,
                               const OperationMemory& memory);

}  // namespace spillway::dnn
