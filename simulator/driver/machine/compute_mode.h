// How this process's operations compute: with real arithmetic, or with tags only (tags.h).
//
// cuInit sets it once, before any memory exists; it is read under the engine's mutex.
#pragma once

namespace spillway::simulator {

enum class ComputeMode {
  kFull,
  kTags,  // device memory is sparse: only written pages exist
};

ComputeMode TheComputeMode();
void SetComputeMode(ComputeMode mode);

}  // namespace spillway::simulator
