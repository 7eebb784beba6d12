// After a free that did not wait, an answer about the device's progress is as if it had waited.
// (Note [What a free promises] in execute/state/deferred_waits.h)
#include "interposer/driver/driver_api.h"
#include "interposer/entry/around.h"
#include "interposer/entry/export.h"
#include "interposer/entry/wrong_results.h"

namespace spillway::entry {
namespace {

using driver::Driver;

// The answer "ready" is right whatever frees have promised.
template <class Call>
CUresult AroundQuery(Call call) {
  const ReentryGuard guard;
  const CUresult result = call();
  if (!guard.IsOutermost()) return result;
  if (result != CUDA_ERROR_NOT_READY) return UnlessWrong(result);
  bool awaited = false;
  ForEachJob(
      [&awaited](JobMemory* job) { awaited = job->free_waits().AwaitPromises() || awaited; });
  return awaited ? UnlessWrong(call()) : result;
}

// An event recorded after a free must also come after the work enqueued before that free.
template <class Call>
CUresult AroundRecord(StreamName stream, Call call) {
  const ReentryGuard guard;
  if (guard.IsOutermost())
    ForEachJob([stream](JobMemory* job) { job->free_waits().KeepPromises(stream); });
  return call();
}

}  // namespace
}  // namespace spillway::entry

using spillway::driver::Driver;
using spillway::entry::AroundQuery;
using spillway::entry::AroundRecord;
using spillway::entry::UnlessWrong;

SPILLWAY_EXPORT CUresult cuEventQuery(CUevent event) {
  return AroundQuery([event] { return Driver().cuEventQuery(event); });
}
// What the wait covers is asked of events of our own when it matters.
SPILLWAY_EXPORT CUresult cuEventSynchronize(CUevent event) {
  return UnlessWrong(Driver().cuEventSynchronize(event));
}
SPILLWAY_EXPORT CUresult cuEventElapsedTime(float* milliseconds, CUevent begin, CUevent end) {
  return AroundQuery([&] { return Driver().cuEventElapsedTime(milliseconds, begin, end); });
}
SPILLWAY_EXPORT CUresult cuEventElapsedTime_v2(float* milliseconds, CUevent begin, CUevent end) {
  return AroundQuery([&] { return Driver().cuEventElapsedTime_v2(milliseconds, begin, end); });
}

#define SPILLWAY_PROGRESS(suffix, per_thread)                                             \
  SPILLWAY_EXPORT CUresult cuStreamQuery##suffix(CUstream stream) {                       \
    return AroundQuery([stream] { return Driver().cuStreamQuery##suffix(stream); });      \
  }                                                                                       \
  SPILLWAY_EXPORT CUresult cuEventRecord##suffix(CUevent event, CUstream stream) {        \
    return AroundRecord({stream, per_thread},                                             \
                        [&] { return Driver().cuEventRecord##suffix(event, stream); });   \
  }                                                                                       \
  SPILLWAY_EXPORT CUresult cuEventRecordWithFlags##suffix(CUevent event, CUstream stream, \
                                                          unsigned int flags) {           \
    return AroundRecord({stream, per_thread}, [&] {                                       \
      return Driver().cuEventRecordWithFlags##suffix(event, stream, flags);               \
    });                                                                                   \
  }
SPILLWAY_PROGRESS(, false)
SPILLWAY_PROGRESS(_ptsz, true)
