#include "interposer/execute/residency/fingerprints.h"

#include <sys/random.h>

#include <algorithm>
#include <new>

#include "interposer/driver/calling_context.h"
#include "interposer/driver/driver_api.h"
#include "interposer/kernels/embedded_ptx.h"

namespace spillway::interposer {

using driver::Driver;
using fingerprint_kernel::DeviceRecord;

namespace {

// One for all devices, so that their fingerprints may be compared.
bool ProcessKey(fingerprint_kernel::Key* out) {
  static fingerprint_kernel::Key key;
  static const bool is_made = getrandom(&key, sizeof key, 0) == static_cast<ssize_t>(sizeof key);
  *out = key;
  return is_made;
}

}  // namespace

bool Fingerprints::TakeKey() {
  if (!has_key_) has_key_ = ProcessKey(&key_);
  for (auto& lane : key_.lanes) {
    lane.low_step |= 1;
    lane.high_step |= 1;
  }
  return has_key_;
}

bool Fingerprints::LoadKernel() {
  if (Driver().cuModuleLoadData(&module_, spillway_fingerprint_ptx) != CUDA_SUCCESS) return false;
  return Driver().cuModuleGetFunction(&function_, module_, fingerprint_kernel::kName) ==
         CUDA_SUCCESS;
}

bool Fingerprints::MakeResults(std::size_t count) {
  void* memory = nullptr;
  constexpr unsigned kFlags = CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_PORTABLE;
  if (Driver().cuMemHostAlloc(&memory, count * sizeof(HostRecord), kFlags) != CUDA_SUCCESS)
    return false;
  results_ = new (memory) HostRecord[count]{};
  return Driver().cuMemHostGetDevicePointer_v2(&results_on_device_, memory, 0) == CUDA_SUCCESS;
}

// On a stream of ours, because a set on the default stream would wait for the program's streams.
bool Fingerprints::ZeroAccumulators(std::size_t bytes) {
  return Driver().cuStreamCreate(&zeroing_, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS &&
         Driver().cuEventCreate(&zeroed_, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS &&
         Driver().cuMemsetD8Async(accumulators_, 0, bytes, zeroing_) == CUDA_SUCCESS &&
         Driver().cuEventRecord(zeroed_, zeroing_) == CUDA_SUCCESS;
}

bool Fingerprints::Prepare(CUdeviceptr accumulators, std::size_t bytes) {
  const driver::RelaxedCapture relaxed(true);
  const std::size_t count = bytes / sizeof(DeviceRecord);
  accumulators_ = accumulators;
  if (count < 2 || !TakeKey() || !LoadKernel() || !MakeResults(count) || !ZeroAccumulators(bytes)) {
    Release();
    return false;
  }
  free_slots_.resize(count - 1);
  std::generate(free_slots_.rbegin(), free_slots_.rend(),
                [slot = Slot{0}]() mutable { return slot++; });
  return true;
}

void Fingerprints::Release() {
  const driver::RelaxedCapture relaxed(true);
  if (module_ != nullptr) Driver().cuModuleUnload(module_);
  if (zeroed_ != nullptr) Driver().cuEventDestroy_v2(zeroed_);
  if (zeroing_ != nullptr) Driver().cuStreamDestroy_v2(zeroing_);
  if (results_ != nullptr) Driver().cuMemFreeHost(const_cast<HostRecord*>(results_));
  module_ = nullptr;
  function_ = nullptr;
  zeroed_ = nullptr;
  zeroing_ = nullptr;
  results_ = nullptr;
  free_slots_.clear();
}

Fingerprints::Slot Fingerprints::TakeSlot() {
  if (free_slots_.empty()) return kNoSlot;
  const Slot slot = free_slots_.back();
  free_slots_.pop_back();
  return slot;
}

// Only until the set is seen to be complete.
void Fingerprints::WaitForZeroes(CUstream stream) {
  if (zeroed_ == nullptr) return;
  const driver::RelaxedCapture relaxed(true);
  if (Driver().cuEventQuery(zeroed_) != CUDA_SUCCESS) {
    Driver().cuStreamWaitEvent(stream, zeroed_, 0);
    return;
  }
  Driver().cuEventDestroy_v2(zeroed_);
  zeroed_ = nullptr;
}

bool Fingerprints::LaunchSome(CUstream stream, std::span<const Piece> pieces) {
  Launch launch{};
  launch.key = key_;
  launch.device_records = accumulators_;
  launch.host_records = results_on_device_;
  launch.piece_count = static_cast<std::uint32_t>(pieces.size());
  std::uint32_t blocks = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const Piece& piece = pieces[i];
    const auto own = static_cast<std::uint32_t>(fingerprint_kernel::BlocksOf(piece.bytes));
    const std::uint32_t expected =
        piece.expected == kNoSlot ? fingerprint_kernel::kNone : piece.expected + 1;
    launch.pieces[i] = {piece.begin, piece.bytes, piece.to + 1, expected, blocks, own};
    blocks += own;
  }
  void* parameters[] = {&launch};
  return Driver().cuLaunchKernel(function_, blocks, 1, 1, fingerprint_kernel::kThreads, 1, 1, 0,
                                 stream, parameters, nullptr) == CUDA_SUCCESS;
}

bool Fingerprints::Compute(CUstream stream, std::span<const Piece> pieces) {
  WaitForZeroes(stream);
  while (!pieces.empty()) {
    const std::size_t count = std::min<std::size_t>(pieces.size(), fingerprint_kernel::kMostPieces);
    if (!LaunchSome(stream, pieces.first(count))) return false;
    pieces = pieces.subspan(count);
  }
  return true;
}

Fingerprint Fingerprints::Read(Slot slot) const {
  const volatile HostRecord& record = results_[slot + 1];
  return {{record.words[0], record.words[1]}};
}

bool Fingerprints::Differs(Slot slot) const { return results_[slot + 1].differs != 0; }

std::uint32_t Fingerprints::Mismatches() const { return results_[0].mismatches; }

}  // namespace spillway::interposer
