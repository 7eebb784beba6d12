// The file in which the agent keeps what operators have set while it is away: text, a line per job,
// and a sum over all of it.
//
// Called by the agent, on the loop's thread: read once, written whenever something has changed. A
// file is replaced as a whole, so that a killed agent leaves the old one or the new one. It is not
// synced: it is about running jobs, which a dead machine does not have.
//
// Never: believes a file that is not whole, or a value that the configuration could not have.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "agent/node/saved_state.h"

namespace spillway::agent {

// False: another user can have written it, which then says nothing; or it is no file, and could
// make the agent wait.
bool IsOnlyOurs(int file);

std::string EncodeState(const SavedState& state);
// Nothing when the text is not what EncodeState makes.
std::optional<SavedState> DecodeState(std::string_view text);

// An empty state where there is no file. An error: why a file that is there was discarded.
base::Result<SavedState> LoadState(const std::string& path);
// After an error the earlier file stays as it was.
base::Status SaveState(const std::string& path, const SavedState& state);

}  // namespace spillway::agent
