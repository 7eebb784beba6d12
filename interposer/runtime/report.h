// Writes the JSON report, the remembered peak, the summary line and the progress line.
//
// It writes now and then, and at exit, from counters alone. Ownership: jobs live until the process
// ends; they are only read.
// Invariants
//  1. Nothing is written unless the launcher asked for it (config.h).
//  2. Files appear whole or not at all: they are written beside and renamed. A pipe, a device, or
//     the process's own output file is written in place.
//  3. Makes no CUDA call.
//  4. A killed process leaves its last kept report: Note [What a killed process leaves].
//  5. At exit it allocates nothing, and waits only briefly for locks and readers: exit() may run in
//     a signal handler whose thread holds locks. Unreadable figures are reported as missing.
// docs/architecture.md describes the report's fields.
#pragma once

#include "interposer/driver/device_budget.h"
#include "interposer/execute/job_memory.h"

namespace spillway::interposer {

// `budget`: without an agent.
void ReportAtExit(JobMemory* job, const base::DeviceBudget& budget);

// Whether exit() has begun: the driver may shut down at any moment.
bool ExitBegan();

// Called after the program waited for the device. Keeps the report and the progress line.
void ShowProgress();

}  // namespace spillway::interposer
