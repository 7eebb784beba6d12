// Tells what Spillway did: the JSON report, the remembered peak, the summary line and the progress
// line.
//
// Called by runtime when a job's memory is made, and by synchronising hooks (progress). Writes now
// and then, and at exit, from counters alone: of all jobs of the process, one after the other
// (after a device reset there is a new one), with counters summed and peaks the highest.
//
// Ownership: jobs live until the process ends; they are only read.
//
// Invariants
//  1. Nothing is written unless the launcher asked for it (config.h).
//  2. Files appear whole or not at all: written beside and renamed. What is no regular file (a
//  pipe, a device), or is
//     this process' own output, stays what it is: the text is written to it.
//  3. Makes no CUDA call.
//  4. The report of a process that is killed, or leaves by _exit, is the one last kept: Note [What
//  a killed process leaves].
//  5. At exit it allocates nothing and waits for no lock or reader for long: exit() may be called
//  in a signal handler,
//     whose thread holds what it held. Figures that cannot be read are said to be missing.
// The report's fields are stated in docs/architecture.md.
#pragma once

#include "interposer/execute/job_memory.h"

namespace spillway::interposer {

// From now on the process reports this job's memory, too, when it exits.
void ReportAtExit(JobMemory* job);

// The process has come to exit(); the driver may shut down at any moment.
bool ExitBegan();

// Called when the program has waited for the device. Now and then, and only when asked for: the
// report as it is up to now, and one line on the terminal, rewritten in place.
void ShowProgress();

}  // namespace spillway::interposer
