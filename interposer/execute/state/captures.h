// How many stream captures are in progress in this process. They may begin before a job exists.
#pragma once

#include <atomic>

#include "interposer/execute/state/timeline.h"

namespace spillway::interposer {

namespace internal {
inline constinit std::atomic<int> captures{0};
}

inline void CaptureBegan() { internal::captures.fetch_add(1, std::memory_order_relaxed); }
inline void CaptureEnded() { internal::captures.fetch_sub(1, std::memory_order_relaxed); }
inline bool CapturesGoOn() { return internal::captures.load(std::memory_order_relaxed) > 0; }

bool IsCapturing(StreamName name);

}  // namespace spillway::interposer
