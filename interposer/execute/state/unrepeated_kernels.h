// Kernels that the job launched and that are not run again for what they made, each once, with the
// reason.
//
// Noted with the state lock held, read by the report at exit. Kept for ever (base/once_table.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "interposer/driver/cuda_abi.h"

namespace spillway::interposer {

enum class UnrepeatedBecause : std::uint8_t {
  kMadeOtherBytes,    // run again on equal memory
  kUpdatesItsInput,   // changes memory that has a content
  kHasStateElsewhere  // its module has device variables or calls functions that may keep state
};
inline constexpr const char* kUnrepeatedBecauseNames[] = {"made other bytes", "updates its input",
                                                          "may keep state elsewhere"};

struct UnrepeatedKernel {
  char name[160] = {};  // as in the module; longer ones are cut
  UnrepeatedBecause because = {};
};

void NoteUnrepeated(CUfunction function, UnrepeatedBecause because);

std::size_t UnrepeatedKernelCount();

// Null from the first index without a kept one on.
const UnrepeatedKernel* UnrepeatedKernelAt(std::size_t index);

}  // namespace spillway::interposer
