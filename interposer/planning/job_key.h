// The key of a job across runs: its device's name, program file and first argument, if a file. A
// job that may repeat kernels has other plans.
//
// Jobs with the same key differ by their iterations' fingerprints.
#pragma once

#include <cstdint>
#include <string>

namespace spillway::interposer {

std::uint64_t JobKey(const std::string& device_name, bool repeats_kernels = false);

}  // namespace spillway::interposer
