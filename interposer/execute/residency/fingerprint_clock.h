// How long the device takes for fingerprints. One launch of several is measured by events around
// it, and stands for the others by its bytes.
//
// Called with the job's state lock held. Owns two events.
// Never: waits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "interposer/driver/cuda_abi.h"

namespace spillway::interposer {

class FingerprintClock {
 public:
  static constexpr std::uint64_t kEvery = 8;  // launches

  FingerprintClock() = default;
  FingerprintClock(const FingerprintClock&) = delete;
  FingerprintClock& operator=(const FingerprintClock&) = delete;

  // Around the launches for so many bytes, on a stream that does not capture.
  void Begin(CUstream stream, std::size_t bytes);
  void End(CUstream stream);
  // An estimate: what was measured, by bytes. 0 before the first measurement.
  std::uint64_t TotalNs() const;
  void Release();

 private:
  bool MakeEvents();
  void Collect();

  CUevent begin_ = nullptr, end_ = nullptr;
  bool is_measuring_ = false, is_under_way_ = false;
  std::size_t measuring_bytes_ = 0;
  std::uint64_t calls_ = 0, all_bytes_ = 0, measured_bytes_ = 0, measured_ns_ = 0;
};

}  // namespace spillway::interposer
