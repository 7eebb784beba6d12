// Tells what Spillway did: the JSON report, the remembered peak, the summary line and the progress line.
//
// Called by runtime when a job's memory is made, and by synchronising hooks now and then (progress). Writes at exit
// from counters alone.
//
// Invariants
//  1. Nothing is written unless the launcher asked for it (config.h).
//  2. Files appear whole or not at all: written beside and renamed.
//  3. Makes no CUDA call.
// The report's fields are stated in docs/architecture.md.
#pragma once

#include "interposer/execute/job_memory.h"

namespace spillway::interposer {

// From now on the process reports this job's memory when it exits.
void ReportAtExit(JobMemory* job);

// At most once a second, and only when asked for: one line on the terminal, rewritten in place.
void ShowProgress(JobMemory* job);

}  // namespace spillway::interposer
