// Profiles and traces as JSON, with the field names of scheduler/trace/profile.h. Network
// generators' form, {tensors: [{name, kind, bytes}], ops: [{name, phase, reads, writes, flops,
// bytes, ws}]}, is read too. It has work instead of durations.
#pragma once

#include <string>

#include "scheduler/networks/training_step.h"
#include "scheduler/trace/event.h"
#include "scheduler/trace/file/trace_file.h"

namespace spillway::cli {

std::string ProfileToJson(const scheduler::IterationProfile& profile);
std::string TraceToJson(const scheduler::EventTrace& trace);

// `rates` turn work into durations, and then `modelled` is set.
base::Result<scheduler::IterationProfile> ProfileFromJson(
    const std::string& text, const scheduler::networks::ComputeRates& rates, bool& modelled);

}  // namespace spillway::cli
