// Which structs PyTorch's kernels take by value, by their mangled names (Itanium C++ ABI).
//
// Never: looks at a launch. (pytorch_structs.h does)
#pragma once

#include <cstdint>

namespace spillway::entry {

enum class ByValue : std::uint8_t { kNone, kReduction, kConcatenation, kElementwise };

struct KnownStruct {
  ByValue kind = ByValue::kNone;
  std::uint8_t tensors = 0;  // of kElementwise, with the output

  bool operator==(const KnownStruct&) const = default;
};

// kNone if any part of the name is not understood that tells the layout.
KnownStruct StructOf(const char* kernel);

}  // namespace spillway::entry
