// What tells one job from another when it is run again: its device and its program.
//
// Called once per job's memory. Two jobs of one key are told apart by their iterations'
// fingerprints.
#pragma once

#include <cstdint>
#include <string>

namespace spillway::interposer {

// From the device's name, the program's file and, where its first argument is a file (a script),
// that.
std::uint64_t JobKey(const std::string& device_name);

}  // namespace spillway::interposer
