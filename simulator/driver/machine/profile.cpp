#include "simulator/driver/machine/profile.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <functional>
#include <map>

#include "base/file.h"
#include "base/lines.h"

namespace spillway::simulator {
namespace {

namespace fs = std::filesystem;
using base::Error;
using base::Status;

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

using Setter = std::function<bool(const std::string&)>;

template <class Integer>
Setter Number(Integer& target) {
  return [&target](const std::string& text) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), target);
    return error == std::errc() && end == text.data() + text.size();
  };
}

std::map<std::string, Setter> Setters(Profile& profile) {
  return {
      {"device_name", [&](const std::string& text) { return profile.device_name = text, true; }},
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
      {"register_ns_per_mebibyte", Number(profile.register_ns_per_mebibyte)},
  };
}

// A forgotten line is an error and not a zero bandwidth.
Status Parse(const std::string& text, Profile& profile) {
  auto setters = Setters(profile);
  std::string_view rest = text;
  for (int number = 1; const auto written = base::TakeLine(rest); ++number) {
    const std::string line = Trimmed(std::string(written->substr(0, written->find('#'))));
    if (line.empty()) continue;
    const auto equals = line.find('=');
    const std::string key = Trimmed(line.substr(0, equals));
    const auto setter = setters.find(key);
    const std::string where = "line " + std::to_string(number) + ": ";
    if (equals == std::string::npos || setter == setters.end())
      return Error{where + "unknown key '" + key + "'"};
    if (!setter->second(Trimmed(line.substr(equals + 1))))
      return Error{where + "the value of '" + key + "' is not a number"};
    setters.erase(setter);
  }
  if (!setters.empty()) return Error{"'" + setters.begin()->first + "' is missing"};
  return base::Ok();
}

}  // namespace

base::Result<Profile> LoadProfile(const std::string& name_or_path, const std::string& folder) {
  const bool is_path = name_or_path.find('/') != std::string::npos;
  const fs::path path =
      is_path ? fs::path(name_or_path) : fs::path(folder) / (name_or_path + ".profile");
  const base::Result<std::string> text = base::ReadFile(path);
  if (!text)
    return Error{"no device profile '" + name_or_path + "' (" + path.string() + ")",
                 {},
                 "known:" + KnownProfiles(folder)};
  Profile profile;
  profile.name = path.stem();
  if (Status parsed = Parse(*text, profile); !parsed.ok())
    return std::move(parsed).Annotate(path.string());
  return profile;
}

}  // namespace spillway::simulator
