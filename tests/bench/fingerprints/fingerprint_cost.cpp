// Measures a fingerprint of device memory beside the copy that it may save, by the device's clock,
// and checks each against the definition.
//
// Runs on the driver that SPILLWAY_DRIVER names, or on the machine's (tests/gpu/run). --quick:
// small sizes. Ends with 1 if a fingerprint is wrong, or if one of 16 MiB or more costs more than
// an eighth of its copy; over PCIe it should cost a fortieth or less.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/prng.h"
#include "interposer/driver/driver_api.h"
#include "tests/unit/fingerprints/reference.h"

namespace {

using spillway::driver::Driver;
using spillway::interposer::Fingerprints;
using Piece = Fingerprints::Piece;

constexpr std::size_t kMiB = 1 << 20;
constexpr std::size_t kAccumulatorBytes = 2 * kMiB;
constexpr std::size_t kPaysFromBytes = 16 * kMiB;

Fingerprints::Key RandomKey() {
  Fingerprints::Key key;
  spillway::base::Prng random(1);
  for (auto& lane : key.lanes) {
    for (auto* part : {&lane.low, &lane.low_step, &lane.high, &lane.high_step, &lane.last})
      *part = random.Next() | 1;
  }
  return key;
}

void Check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "fingerprint_cost: %s: error %d\n", what, static_cast<int>(result));
  std::exit(1);
}

struct Measured {
  std::string name;
  std::size_t bytes;
  double fingerprint_us;
  double copy_us;
  bool is_right;

  bool Pays() const { return bytes < kPaysFromBytes || 8 * fingerprint_us <= copy_us; }
};

class Bench {
 public:
  explicit Bench(std::size_t most_bytes) : host_(most_bytes + kMiB) {
    CUcontext context = nullptr;
    Check(Driver().cuInit(0), "cuInit");
    Check(Driver().cuDevicePrimaryCtxRetain(&context, 0), "a context");
    Check(Driver().cuCtxSetCurrent(context), "a context");
    Check(Driver().cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), "a stream");
    for (CUevent& event : events_) Check(Driver().cuEventCreate(&event, 0), "an event");
    Check(Driver().cuMemAlloc_v2(&device_, host_.size()), "device memory");
    Check(Driver().cuMemHostAlloc(&pinned_, host_.size(), 0), "pinned memory");
    Fill();
    CUdeviceptr accumulators = 0;
    Check(Driver().cuMemAlloc_v2(&accumulators, kAccumulatorBytes), "accumulators");
    if (!fingerprints_.Prepare(accumulators, kAccumulatorBytes))
      Check(CUDA_ERROR_NOT_SUPPORTED, "the driver does not take the kernel");
  }

  // Side by side from byte `at` on.
  Measured Measure(const std::string& name, std::size_t at, std::size_t bytes, std::size_t count) {
    std::vector<Piece> pieces;
    for (std::size_t i = 0; i < count; ++i)
      pieces.push_back({device_ + at + i * bytes, bytes, fingerprints_.TakeSlot()});
    Measured measured{name, count * bytes, 0, 0, true};
    measured.fingerprint_us =
        MedianUs([&] { return fingerprints_.Compute(stream_, pieces) ? CUDA_SUCCESS : kRefused; });
    measured.copy_us = MedianUs([&] {
      return Driver().cuMemcpyDtoHAsync_v2(pinned_, device_ + at, count * bytes, stream_);
    });
    for (const Piece& piece : pieces) {
      const auto offset = static_cast<std::size_t>(piece.begin - device_);
      measured.is_right &=
          fingerprints_.Read(piece.to) ==
          spillway::test::ReferenceFingerprint(key_, std::span(host_).subspan(offset, piece.bytes));
      fingerprints_.GiveSlot(piece.to);
    }
    return measured;
  }

 private:
  static constexpr CUresult kRefused = CUDA_ERROR_NOT_SUPPORTED;

  void Fill() {
    spillway::base::Prng random(2);
    for (std::size_t at = 0; at + 8 <= host_.size(); at += 8) {
      const std::uint64_t word = random.Next();
      std::memcpy(&host_[at], &word, sizeof word);
    }
    Check(Driver().cuMemcpyHtoD_v2(device_, host_.data(), host_.size()), "a copy");
  }

  // On the device, from the work's beginning to its end.
  template <class Work>
  double MedianUs(Work work) {
    std::vector<double> all_us;
    for (int i = 0; i < 7; ++i) {
      float ms = 0;
      Check(Driver().cuEventRecord(events_[0], stream_), "an event");
      Check(work(), "the measured work");
      Check(Driver().cuEventRecord(events_[1], stream_), "an event");
      Check(Driver().cuStreamSynchronize(stream_), "the measured work");
      Check(Driver().cuEventElapsedTime(&ms, events_[0], events_[1]), "an event");
      all_us.push_back(ms * 1e3);
    }
    std::sort(all_us.begin(), all_us.end());
    return all_us[all_us.size() / 2];
  }

  const Fingerprints::Key key_ = RandomKey();
  std::vector<unsigned char> host_;
  CUstream stream_ = nullptr;
  CUevent events_[2] = {};
  CUdeviceptr device_ = 0;
  void* pinned_ = nullptr;
  Fingerprints fingerprints_{key_};
};

void Print(const Measured& row) {
  std::printf("%-22s %10.1f us %8.0f GB/s  copy %10.1f us  ratio %6.1f  %s%s\n", row.name.c_str(),
              row.fingerprint_us, static_cast<double>(row.bytes) / row.fingerprint_us / 1e3,
              row.copy_us, row.copy_us / row.fingerprint_us, row.is_right ? "right" : "WRONG",
              row.Pays() ? "" : ", TOO SLOW");
}

}  // namespace

int main(int count, char** arguments) {
  const bool quick = count > 1 && std::string(arguments[1]) == "--quick";
  const std::size_t most_mib = quick ? 16 : 1024;
  Bench bench(most_mib * kMiB);
  std::vector<Measured> rows;
  for (std::size_t mib = 1; mib <= most_mib; mib *= 4)
    rows.push_back(bench.Measure(std::to_string(mib) + " MiB", 0, mib * kMiB, 1));
  rows.push_back(bench.Measure("at an odd address", 1, most_mib * kMiB, 1));
  rows.push_back(bench.Measure("64 pieces", 0, most_mib * kMiB / 64, 64));
  bool all_good = true;
  for (const Measured& row : rows) {
    Print(row);
    all_good = all_good && row.is_right && row.Pays();
  }
  return all_good ? 0 : 1;
}
