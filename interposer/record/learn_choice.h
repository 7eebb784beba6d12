// When a job's iteration is learned, and on which thread: `spillway run --no-learn` and the tests
// choose.
#pragma once

#include <cstdint>

namespace spillway::interposer {

enum class LearnChoice : std::uint8_t {
  kAuto,    // from the first moment on in which the job wants more than its budget
  kOff,     // never: nothing is recorded, memory moves when it is needed
  kAlways,  // from the first allocation on
  kWait,  // as kAuto, and the calling threads wait for what the planner thread would do meanwhile:
          // the same at every run
};

}  // namespace spillway::interposer
