// How operations compute, for the whole process: with real arithmetic, or with tags only (tags.h).
//
// Set once, by cuInit, before any memory exists; read under the engine's mutex.
#pragma once

namespace spillway::simulator {

enum class ComputeMode {
  kFull,
  kTags,  // device memory is sparse: only pages that were written exist
};

ComputeMode TheComputeMode();
void SetComputeMode(ComputeMode mode);

}  // namespace spillway::simulator
