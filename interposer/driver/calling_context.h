// Sets a thread's CUDA state for calls of our own, for the length of a scope.
//
// CurrentContext makes the job's context current: our events, copies and pinned memory belong to
// it. RelaxedCapture lets a thread make calls that would end a global capture. Both restore the
// former state, and call the driver on the launch path only if something must change.
#pragma once

#include <atomic>

#include "interposer/driver/driver_api.h"

namespace spillway::driver {

// Only after a second context must a default stream's context be queried.
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
  // Null keeps the current context.
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

// -1 for a context that no longer exists.
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
