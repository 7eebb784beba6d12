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
  const ReadResult<IterationProfile> profile = ReadProfile(bytes);
  Demand(profile.value.has_value() == profile.error.empty(),
         "a refused profile without a reason, or the reverse");
  if (profile.value) {
    Demand(!CheckProfile(*profile.value), "an invalid profile was accepted");
    Demand(ReadProfile(WriteProfile(*profile.value)).value == profile.value, "a profile changed on its way");
    IdleIntervals(*profile.value, 1);
    LiveBytesByOperation(*profile.value);
  }
  const ReadResult<EventTrace> trace = ReadTrace(bytes);
  Demand(trace.value.has_value() == trace.error.empty(), "a refused trace without a reason, or the reverse");
  if (trace.value) {
    Demand(!CheckTrace(*trace.value), "an invalid trace was accepted");
    Demand(ReadTrace(WriteTrace(*trace.value)).value == trace.value, "a trace changed on its way");
    Demand(!CheckProfile(ProfileFromTrace(*trace.value)), "a valid trace made an invalid profile");
    CutTrace(*trace.value, 1, 2);
  }
  return 0;
}
