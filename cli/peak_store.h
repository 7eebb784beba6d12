// Remembers each command's peak device memory, so that a budget can be a share of it. One-line
// files in $XDG_STATE_HOME/spillway/peaks (default ~/.local/state/...). The preload library writes
// them (SPILLWAY_PEAK_FILE); the launcher names and reads them.
//
// Invariants
//  1. A file belongs to one resolved program path, argument list and device profile.
//  2. A file with anything but one positive decimal number is ignored.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace spillway::cli {

// Nullopt: neither XDG_STATE_HOME nor HOME is an absolute path.
std::optional<std::string> StateFolder(const std::string& name);

std::optional<std::string> PeakFolder();

// 32 hex digits from the resolved program path, arguments without argv[0], and device profile.
std::string PeakKey(const std::string& program_path, const std::vector<std::string>& arguments,
                    const std::string& profile);

std::optional<std::uint64_t> ReadPeakBytes(const std::string& peak_file);

}  // namespace spillway::cli
