// The file of the operators' settings: text, one line per job, and a checksum.
//
// The file is replaced as a whole. It is not synced: it concerns running jobs, and none survives a
// machine's crash.
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
std::optional<SavedState> DecodeState(std::string_view text);

base::Result<SavedState> LoadState(const std::string& path);
base::Status SaveState(const std::string& path, const SavedState& state);

}  // namespace spillway::agent
