// The key of a job across runs: its device's name, program file and first argument, if a file.
//
// Called once per job's memory. Jobs with the same key differ by their iterations' fingerprints.
#pragma once

#include <cstdint>
#include <string>

namespace spillway::interposer {

std::uint64_t JobKey(const std::string& device_name);

}  // namespace spillway::interposer
