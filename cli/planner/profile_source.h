// Where a profile comes from: a file of ours, JSON, or a network's name.
//
// Used by the commands on one thread. Throws Failure with what is wrong and what to do.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "scheduler/networks/devices.h"
#include "scheduler/trace/profile.h"

namespace spillway::cli {

struct LoadedProfile {
  scheduler::IterationProfile profile;
  bool modelled = false;  // durations come from a roofline, nobody measured them
};

// `source` is a path, or `network:NAME[:BATCH]`. A trace file stands for one iteration. Networks
// and JSON traces without durations get them from the device.
LoadedProfile LoadProfile(const std::string& source, const scheduler::networks::Device& device);

scheduler::networks::Device LoadDevice(const std::string& name);

std::vector<uint8_t> ReadBytes(const std::string& path);
void WriteBytes(const std::string& path, const std::vector<uint8_t>& bytes);
void WriteText(const std::string& path, std::string_view text);

}  // namespace spillway::cli
