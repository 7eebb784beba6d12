// The logs that a program asks for when it loads or links modules (cuda.h, CUjit_option).
//
// The buffers and the array of values are the program's.
//
// Invariants
//  1. A log is capped at its buffer's size and ends with a zero byte; its size counts the text.
//  2. Compiling takes no modelled time: the wall time is zero.
#pragma once

#include <cstddef>
#include <string_view>

#include "simulator/driver/abi.h"

namespace spillway::simulator {

class JitReport {
 public:
  JitReport(unsigned count, const CUjit_option* options, void** values);

  void AddError(std::string_view line) { error_.Add(line); }

 private:
  struct Log {
    char* buffer = nullptr;
    std::size_t capacity_bytes = 0;
    std::size_t length_bytes = 0;
    void** length_out = nullptr;

    void Begin();
    void Add(std::string_view text);
  };

  Log info_, error_;
};

}  // namespace spillway::simulator
