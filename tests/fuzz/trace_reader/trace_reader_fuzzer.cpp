// What the readers of profile and trace files accept keeps its invariants and survives a round
// trip.
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
  const spillway::base::Result<IterationProfile> profile = ReadProfile(bytes);
  Demand(profile.ok() == profile.text().empty(),
         "a refused profile without a reason, or the reverse");
  if (profile) {
    Demand(CheckProfile(*profile).ok(), "an invalid profile was accepted");
    Demand(*ReadProfile(WriteProfile(*profile)) == *profile, "a profile changed on its way");
    IdleIntervals(*profile, 1);
    LiveBytesByOperation(*profile);
  }
  const spillway::base::Result<EventTrace> trace = ReadTrace(bytes);
  Demand(trace.ok() == trace.text().empty(), "a refused trace without a reason, or the reverse");
  if (trace) {
    Demand(CheckTrace(*trace).ok(), "an invalid trace was accepted");
    Demand(*ReadTrace(WriteTrace(*trace)) == *trace, "a trace changed on its way");
    Demand(CheckProfile(ProfileFromTrace(*trace)).ok(), "a valid trace made an invalid profile");
    CutTrace(*trace, 1, 2);
  }
  return 0;
}
