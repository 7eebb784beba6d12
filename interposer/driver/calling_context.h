// What of a thread's CUDA state our own calls need set, for the length of a scope.
//
// CurrentContext makes the job's context current where the calling thread has another one or none:
// events, copies and pinned memory of ours belong to it. RelaxedCapture lets a thread make calls
// that would end a global capture. Neither survives its scope; neither is kept on the launch path
// when nothing is to be done.
#pragma once

#include <atomic>

#include "interposer/driver/driver_api.h"

namespace spillway::driver {

// Whether the process has ever had more than one context: only then must a default stream's owner
// be asked for.
class KnownContexts {
 public:
  static void Note(CUcontext context) {
    CUcontext none = nullptr;
    if (first_.compare_exchange_strong(none, context) || none == context) return;
    several_.store(true, std::memory_order_relaxed);
  }
  static bool HasSeveral() { return several_.load(std::memory_order_relaxed); }

 private:
  inline static constinit std::atomic<CUcontext> first_{nullptr};
  inline static constinit std::atomic<bool> several_{false};
};

class CurrentContext {
 public:
  // Null: whichever is current stays so.
  explicit CurrentContext(CUcontext context) {
    if (!context) return;
    CUcontext current = nullptr;
    Driver().cuCtxGetCurrent(&current);
    pushed_ = current != context && Driver().cuCtxPushCurrent_v2(context) == CUDA_SUCCESS;
  }
  ~CurrentContext() {
    CUcontext context;
    if (pushed_) Driver().cuCtxPopCurrent_v2(&context);
  }
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;

 private:
  bool pushed_ = false;
};

// -1 for a context that has none any more.
inline CUdevice DeviceOf(CUcontext context) {
  const CurrentContext current(context);
  CUdevice device = -1;
  return Driver().cuCtxGetDevice(&device) == CUDA_SUCCESS ? device : -1;
}

// Source: cuThreadExchangeStreamCaptureMode.
class RelaxedCapture {
 public:
  explicit RelaxedCapture(bool needed) : needed_(needed) { Exchange(); }
  ~RelaxedCapture() { Exchange(); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  void Exchange() {
    if (needed_) Driver().cuThreadExchangeStreamCaptureMode(&mode_);
  }
  const bool needed_;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

}  // namespace spillway::driver
