// Loads a profile from a file of ours, JSON, or a network's name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "scheduler/networks/devices.h"
#include "scheduler/trace/event.h"
#include "scheduler/trace/profile.h"

namespace spillway::cli {

struct LoadedProfile {
  scheduler::IterationProfile profile;
  bool modelled = false;
};

// `source`: a path, or `network:NAME[:BATCH]`. A trace counts as one iteration. The device supplies
// missing durations.
LoadedProfile LoadProfile(const std::string& source, const scheduler::networks::Device& device);

bool IsTrace(const std::vector<uint8_t>& bytes);
scheduler::EventTrace LoadTrace(const std::string& source);

scheduler::networks::Device LoadDevice(const std::string& name);

std::vector<uint8_t> ReadBytes(const std::string& path);
void WriteBytes(const std::string& path, const std::vector<uint8_t>& bytes);
void WriteText(const std::string& path, std::string_view text);

}  // namespace spillway::cli
