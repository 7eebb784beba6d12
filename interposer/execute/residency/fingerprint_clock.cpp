#include "interposer/execute/residency/fingerprint_clock.h"

#include "interposer/driver/calling_context.h"
#include "interposer/driver/driver_api.h"

namespace spillway::interposer {

using driver::Driver;

bool FingerprintClock::MakeEvents() {
  if (end_) return true;
  return (begin_ || Driver().cuEventCreate(&begin_, CU_EVENT_DEFAULT) == CUDA_SUCCESS) &&
         Driver().cuEventCreate(&end_, CU_EVENT_DEFAULT) == CUDA_SUCCESS;
}

void FingerprintClock::Collect() {
  if (!is_under_way_ || Driver().cuEventQuery(end_) != CUDA_SUCCESS) return;
  is_under_way_ = false;
  float ms = 0;
  if (Driver().cuEventElapsedTime(&ms, begin_, end_) != CUDA_SUCCESS) return;
  measured_bytes_ += measuring_bytes_;
  measured_ns_ += static_cast<std::uint64_t>(static_cast<double>(ms) * 1e6);
}

void FingerprintClock::Begin(CUstream stream, std::size_t bytes) {
  all_bytes_ += bytes;
  const driver::RelaxedCapture relaxed(true);
  Collect();
  if (calls_++ % kEvery != 0 || is_under_way_ || !MakeEvents()) return;
  is_measuring_ = Driver().cuEventRecord(begin_, stream) == CUDA_SUCCESS;
  measuring_bytes_ = bytes;
}

void FingerprintClock::End(CUstream stream) {
  if (!is_measuring_) return;
  is_measuring_ = false;
  is_under_way_ = Driver().cuEventRecord(end_, stream) == CUDA_SUCCESS;
}

std::uint64_t FingerprintClock::TotalNs() const {
  if (measured_bytes_ == 0) return 0;
  return static_cast<std::uint64_t>(static_cast<double>(measured_ns_) *
                                    static_cast<double>(all_bytes_) /
                                    static_cast<double>(measured_bytes_));
}

void FingerprintClock::Release() {
  const driver::RelaxedCapture relaxed(true);
  if (begin_) Driver().cuEventDestroy_v2(begin_);
  if (end_) Driver().cuEventDestroy_v2(end_);
  begin_ = end_ = nullptr;
  is_under_way_ = is_measuring_ = false;
}

}  // namespace spillway::interposer
