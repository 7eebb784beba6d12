// Feeds the readers of profile and trace files: whatever they accept keeps its invariants and survives a round trip.
#include <cstdio>
#include <cstdlib>

#include "scheduler/trace/file/trace_file.h"

namespace {

void Demand(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "trace_reader_fuzzer: %s\n", what);
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace spillway::scheduler;
  const std::vector<uint8_t> bytes(data, data + size);  // aligned, as readers get them from files
  const ReadResult<IterationProfile> profile = read_profile(bytes);
  Demand(profile.value.has_value() == profile.error.empty(),
         "a refused profile without a reason, or the reverse");
  if (profile.value) {
    Demand(!check_profile(*profile.value), "an invalid profile was accepted");
    Demand(read_profile(write_profile(*profile.value)).value == profile.value,
           "a profile changed on its way");
    idle_intervals(*profile.value, 1);
    live_bytes_by_operation(*profile.value);
  }
  const ReadResult<EventTrace> trace = read_trace(bytes);
  Demand(trace.value.has_value() == trace.error.empty(), "a refused trace without a reason, or the reverse");
  if (trace.value) {
    Demand(!check_trace(*trace.value), "an invalid trace was accepted");
    Demand(read_trace(write_trace(*trace.value)).value == trace.value, "a trace changed on its way");
    Demand(!check_profile(profile_from_trace(*trace.value)), "a valid trace made an invalid profile");
    cut_trace(*trace.value, 1, 2);
  }
  return 0;
}
