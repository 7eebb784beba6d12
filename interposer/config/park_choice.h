// Whether evicted memory is parked, that is, mapped onto its host copy (SPILLWAY_PARK).
#pragma once

#include <cstdint>

namespace spillway::interposer {

enum class ParkChoice : std::uint8_t {
  kAuto,  // until the job is proven not to find pointers in memory
  kHost,  // always
  kOff,   // never: the user says that the job is safe
};

}  // namespace spillway::interposer
