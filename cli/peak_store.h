// Remembers how much device memory each command wanted at its peak, so that a budget can be a share
// of it.
//
// One thread. The store is a folder of one-line files, $XDG_STATE_HOME/spillway/peaks (default
// ~/.local/state/...); the preload library writes them (SPILLWAY_PEAK_FILE), the launcher names and
// reads them.
//
// Invariants
//  1. A file belongs to exactly one resolved program path, argument list and device profile.
//  2. A file that holds anything but one positive decimal number is as good as none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace spillway::cli {

// The folder of that name in the user's state folder; nothing when neither XDG_STATE_HOME nor HOME
// is set to an absolute path.
std::optional<std::string> StateFolder(const std::string& name);

// The folder of peaks; nothing when neither XDG_STATE_HOME nor HOME is set to an absolute path.
std::optional<std::string> PeakFolder();

// 32 hex digits from the program's resolved path, its arguments (without argv[0]) and the device
// profile.
std::string PeakKey(const std::string& program_path, const std::vector<std::string>& arguments,
                    const std::string& profile);

std::optional<std::uint64_t> ReadPeakBytes(const std::string& peak_file);

}  // namespace spillway::cli
