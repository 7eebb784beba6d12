// Destroyable streams on which a capture began: destroying one ends its capture.
//
// A stream that joined another stream's capture is not listed. When it is destroyed, that capture
// continues, broken, until its end.
#pragma once

#include <algorithm>
#include <vector>

#include "base/mutex.h"
#include "interposer/driver/cuda_abi.h"

namespace spillway::entry {

class CaptureOrigins {
 public:
  static CaptureOrigins& Instance() {
    static CaptureOrigins* const origins = new CaptureOrigins;
    return *origins;
  }

  void Add(CUstream stream) {
    if (!stream || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD) return;
    const base::MutexLock lock(mutex_);
    streams_.push_back(stream);
  }
  bool Remove(CUstream stream) {
    const base::MutexLock lock(mutex_);
    const auto at = std::find(streams_.begin(), streams_.end(), stream);
    if (at == streams_.end()) return false;
    streams_.erase(at);
    return true;
  }

 private:
  base::Mutex mutex_{base::LockRank::kGraphs};
  std::vector<CUstream> streams_ SPILLWAY_GUARDED_BY(mutex_);
};

}  // namespace spillway::entry
