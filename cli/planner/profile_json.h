// Profiles and traces as JSON: to read, to write by hand, to take over from other tools.
//
// Pure. Profiles use the field names of scheduler/trace/profile.h. A profile may
// also come as {tensors: [{name, kind, bytes}], ops: [{name, phase, reads, writes, flops, bytes,
// ws}]}, the form of network generators: such a one has work instead of durations.
#pragma once

#include <string>

#include "scheduler/networks/training_step.h"
#include "scheduler/trace/event.h"
#include "scheduler/trace/file/trace_file.h"

namespace spillway::cli {

std::string ProfileToJson(const scheduler::IterationProfile& profile);
std::string TraceToJson(const scheduler::EventTrace& trace);

// Where the text has work instead of durations, `rates` turn it into durations and `modelled`
// becomes true.
base::Result<scheduler::IterationProfile> ProfileFromJson(
    const std::string& text, const scheduler::networks::ComputeRates& rates, bool& modelled);

}  // namespace spillway::cli
