// Profiles and traces as JSON, also written by hand or by other tools. Field names are those of
// scheduler/trace/profile.h. Network generators' form {tensors: [{name, kind, bytes}], ops: [{name,
// phase, reads, writes, flops, bytes, ws}]} is read too. It has work instead of durations.
#pragma once

#include <string>

#include "scheduler/networks/training_step.h"
#include "scheduler/trace/event.h"
#include "scheduler/trace/file/trace_file.h"

namespace spillway::cli {

std::string ProfileToJson(const scheduler::IterationProfile& profile);
std::string TraceToJson(const scheduler::EventTrace& trace);

// Where the text has work instead of durations, `rates` give durations, and `modelled` is set.
base::Result<scheduler::IterationProfile> ProfileFromJson(
    const std::string& text, const scheduler::networks::ComputeRates& rates, bool& modelled);

}  // namespace spillway::cli
