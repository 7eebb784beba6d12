#include "simulator/driver/profile.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>

namespace spillway::simulator {
namespace {

namespace fs = std::filesystem;

std::string Trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

std::string KnownProfiles(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().extension() == ".profile") names.push_back(entry.path().stem());
  }
  std::sort(names.begin(), names.end());
  std::string list;
  for (const auto& name : names) list += " " + name;
  return list.empty() ? " none in " + folder : list;
}

using Setter = std::function<void(const std::string&)>;

template <class Integer>
Setter Number(Integer& target) {
  return [&target](const std::string& text) { target = static_cast<Integer>(std::stoull(text)); };
}

std::map<std::string, Setter> Setters(Profile& profile) {
  return {
      {"device_name", [&](const std::string& text) { profile.device_name = text; }},
      {"compute_major", Number(profile.compute_major)},
      {"compute_minor", Number(profile.compute_minor)},
      {"multiprocessors", Number(profile.multiprocessors)},
      {"core_clock_khz", Number(profile.core_clock_khz)},
      {"memory_clock_khz", Number(profile.memory_clock_khz)},
      {"memory_bus_bits", Number(profile.memory_bus_bits)},
      {"l2_cache_bytes", Number(profile.l2_cache_bytes)},
      {"shared_per_block_optin_bytes", Number(profile.shared_per_block_optin_bytes)},
      {"shared_per_multiprocessor_bytes", Number(profile.shared_per_multiprocessor_bytes)},
      {"threads_per_multiprocessor", Number(profile.threads_per_multiprocessor)},
      {"capacity_bytes", Number(profile.capacity_bytes)},
      {"memory_bytes_per_second", Number(profile.memory_bytes_per_second)},
      {"fp32_flops_per_second", Number(profile.fp32_flops_per_second)},
      {"h2d_bytes_per_second", Number(profile.h2d_bytes_per_second)},
      {"d2h_bytes_per_second", Number(profile.d2h_bytes_per_second)},
      {"h2d_both_bytes_per_second", Number(profile.h2d_both_bytes_per_second)},
      {"d2h_both_bytes_per_second", Number(profile.d2h_both_bytes_per_second)},
      {"launch_overhead_ns", Number(profile.launch_overhead_ns)},
      {"copy_overhead_ns", Number(profile.copy_overhead_ns)},
      {"api_call_ns", Number(profile.api_call_ns)},
      {"vmm_create_ns", Number(profile.vmm_create_ns)},
      {"vmm_map_ns", Number(profile.vmm_map_ns)},
      {"vmm_set_access_ns", Number(profile.vmm_set_access_ns)},
      {"vmm_unmap_ns", Number(profile.vmm_unmap_ns)},
      {"vmm_release_ns", Number(profile.vmm_release_ns)},
      {"pin_ns_per_mebibyte", Number(profile.pin_ns_per_mebibyte)},
  };
}

// Every key must appear once: a profile with a forgotten line is an error, not a device with zero bandwidth.
std::string Parse(std::istream& input, Profile& profile) {
  auto setters = Setters(profile);
  std::string line;
  for (int number = 1; std::getline(input, line); ++number) {
    line = Trimmed(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    const auto equals = line.find('=');
    const std::string key = Trimmed(line.substr(0, equals));
    const auto setter = setters.find(key);
    const std::string where = "line " + std::to_string(number) + ": ";
    if (equals == std::string::npos || setter == setters.end()) return where + "unknown key '" + key + "'";
    try {
      setter->second(Trimmed(line.substr(equals + 1)));
    } catch (const std::exception&) {
      return where + "the value of '" + key + "' is not a number";
    }
    setters.erase(setter);
  }
  return setters.empty() ? "" : "'" + setters.begin()->first + "' is missing";
}

}  // namespace

bool LoadProfile(const std::string& name_or_path, const std::string& folder, Profile& profile,
                 std::string& error) {
  const bool is_path = name_or_path.find('/') != std::string::npos;
  const fs::path path = is_path ? fs::path(name_or_path) : fs::path(folder) / (name_or_path + ".profile");
  std::ifstream input(path);
  if (!input) {
    error =
        "no device profile '" + name_or_path + "' (" + path.string() + "); known:" + KnownProfiles(folder);
    return false;
  }
  profile.name = path.stem();
  if (const std::string problem = Parse(input, profile); !problem.empty()) {
    error = path.string() + ": " + problem;
    return false;
  }
  return true;
}

}  // namespace spillway::simulator
