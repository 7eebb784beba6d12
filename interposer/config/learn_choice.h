// When and where a job's iteration is learned (`spillway run --no-learn`).
#pragma once

#include <cstdint>

namespace spillway::interposer {

enum class LearnChoice : std::uint8_t {
  kAuto,    // once the job wants more than its budget
  kOff,     // never: memory moves on demand
  kAlways,  // from the first allocation on
  kWait,    // as kAuto, but calling threads do the planner thread's work: runs are repeatable
};

}  // namespace spillway::interposer
