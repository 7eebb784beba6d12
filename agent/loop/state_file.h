// The file of the operators' settings: text, one line per job, and a checksum.
//
// Called by the agent on the loop's thread: read once, written after changes. The file is replaced
// as a whole, so a killed agent leaves the old or the new one. It is not synced: it concerns
// running jobs, and none survives a machine's crash.
//
// Never: accepts an incomplete file, or a value that the configuration would refuse.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "agent/node/saved_state.h"

namespace spillway::agent {

// False: another user can write it, or it is no regular file and could block a read.
bool IsOnlyOurs(int file);

std::string EncodeState(const SavedState& state);
// Nullopt: not the output of EncodeState.
std::optional<SavedState> DecodeState(std::string_view text);

// No file: an empty state. An error: why the file was discarded.
base::Result<SavedState> LoadState(const std::string& path);
base::Status SaveState(const std::string& path, const SavedState& state);

}  // namespace spillway::agent
