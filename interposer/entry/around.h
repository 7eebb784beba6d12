// The seam between the hooks and the job's memory: what every hook that names device memory does around its call.
//
// A hook says which addresses the call names; Around finds them, makes them resident, makes the driver's call and
// notes its place in the stream. Without a job yet, or inside another hook, it is the driver's call alone.
#pragma once

#include "interposer/entry/reentry_guard.h"
#include "interposer/runtime.h"

namespace spillway::entry {

using interposer::Addresses;
using interposer::Effect;
using interposer::Job;
using interposer::JobMemory;
using interposer::StreamName;

// Collects what may be managed addresses; a word that is none costs two comparisons.
class Collector {
 public:
  explicit Collector(const JobMemory& job) : job_(job) {}
  void operator()(CUdeviceptr word) {
    if (job_.MightBeManaged(word)) addresses_.push_back(word);
  }
  void operator()(const void* pointer) { (*this)(reinterpret_cast<CUdeviceptr>(pointer)); }
  const Addresses& addresses() const { return addresses_; }

 private:
  const JobMemory& job_;
  Addresses addresses_;
};

// `collect(add)` calls add(address) for each address that the call names; `call()` is the driver's function.
template <class Collect, class Call>
CUresult Around(StreamName stream, Effect effect, Collect collect, Call call) {
  const ReentryGuard guard;
  JobMemory* const job = Job();
  if (!job || !guard.IsOutermost()) return call();
  Collector collector(*job);
  collect(collector);
  interposer::TouchSet set;
  const CUresult begun = job->Begin(collector.addresses(), stream, effect, &set);
  if (begun != CUDA_SUCCESS) return begun;
  const CUresult result = call();
  job->End(&set, effect);
  return result;
}

}  // namespace spillway::entry
