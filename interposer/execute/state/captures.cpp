#include "interposer/execute/state/captures.h"

#include "interposer/driver/driver_api.h"

namespace spillway::interposer {

bool IsCapturing(StreamName name) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return driver::Driver().cuStreamIsCapturing(HandleOf(name), &status) == CUDA_SUCCESS &&
         status != CU_STREAM_CAPTURE_STATUS_NONE;
}

}  // namespace spillway::interposer
