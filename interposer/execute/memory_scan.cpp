#include "interposer/execute/memory_scan.h"

#include <algorithm>

#include "interposer/execute/state/ordering_rules.h"
#include "interposer/ledger/host_regions.h"
#include "interposer/ledger/tensor_maps.h"

namespace spillway::interposer {

namespace {

constexpr size_t kStagingBytes = 4 * kMiB;
constexpr size_t kWholeInFullScanBytes = 16 * kMiB;
constexpr size_t kWholeAfterLaunchBytes = kStagingBytes;
constexpr size_t kStrideBytes = 64 << 10;
constexpr size_t kRows = kStagingBytes / kScanPageBytes;

// One read: rows of `width_bytes`, a stride apart in memory, adjacent in the staging buffer.
struct Piece {
  size_t offset;
  size_t width_bytes;
  size_t rows;
};

std::vector<Piece> PiecesOf(size_t bytes, size_t whole_bytes) {
  std::vector<Piece> pieces;
  if (bytes <= whole_bytes) {
    for (size_t offset = 0; offset < bytes; offset += kStagingBytes)
      pieces.push_back({offset, std::min(kStagingBytes, bytes - offset), 1});
    return pieces;
  }
  const size_t rows = bytes / kStrideBytes;  // each has a whole page
  for (size_t row = 0; row < rows; row += kRows)
    pieces.push_back({row * kStrideBytes, kScanPageBytes, std::min(kRows, rows - row)});
  return pieces;
}

}  // namespace

void MemoryScan::ScanAll() {
  stored_.FindVariables();
  std::vector<Part> parts;
  HostBuffer staging;
  {
    const StateLock lock(state_.locks);
    ++state_.counters.full_scans;
    if (!TakeStaging(&staging)) return;
    parts = PartsOnDevice();
  }
  bool found = HostCopiesHoldUnexplained();
  for (const Part& part : parts) found = found || HoldsUnexplained(part, staging, Depth::kFull);
  const StateLock lock(state_.locks);
  state_.residency.host().Give(&staging);
  LetGo(parts);
  state_.pointer_safety.FullScanDone(state_.timeline.Sum().launches, found);
}

bool MemoryScan::HoldsUnexplained(const Part& part, const HostBuffer& staging, Depth depth) {
  for (const Piece& piece : PiecesOf(part.bytes, WholeBytes(depth))) {
    CUDA_MEMCPY2D copy{};
    copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = part.base + piece.offset;
    copy.srcPitch = piece.rows == 1 ? piece.width_bytes : kStrideBytes;
    copy.dstMemoryType = CU_MEMORYTYPE_HOST;
    copy.dstHost = staging.data;
    copy.dstPitch = copy.WidthInBytes = piece.width_bytes;
    copy.Height = piece.rows;
    if (!AwaitReadBack(copy)) continue;
    const StateLock lock(state_.locks);
    state_.counters.full_scan_bytes += piece.rows * piece.width_bytes;
    for (size_t row = 0; row < piece.rows; ++row) {
      const auto* const data =
          static_cast<const std::byte*>(staging.data) + row * piece.width_bytes;
      if (AnyUnexplained(data, piece.width_bytes, copy.srcDevice + row * copy.srcPitch))
        return true;
    }
  }
  return false;
}

// False without a host copy.
bool MemoryScan::HostCopyHoldsUnexplained(Range& range, Depth depth) {
  const auto* const bytes = static_cast<const std::byte*>(state_.residency.HostCopy(&range));
  if (!bytes) return false;
  for (const Piece& piece : PiecesOf(range.requested_bytes, WholeBytes(depth))) {
    for (size_t row = 0; row < piece.rows; ++row) {
      const size_t offset = piece.offset + row * kStrideBytes;
      if (AnyUnexplained(bytes + offset, piece.width_bytes, range.base + offset)) return true;
    }
  }
  return false;
}

bool MemoryScan::TakeStaging(HostBuffer* out) {
  return state_.residency.host().TakeIdle(kStagingBytes, out);
}

void MemoryScan::LetGo(const std::vector<Part>& parts) {
  for (const Part& part : parts) {
    if (part.range) state_.residency.Unpin(part.range);
  }
}

// Ranges are pinned: their memory stays until the scan is over, even if they are freed meanwhile.
std::vector<MemoryScan::Part> MemoryScan::PartsOnDevice() {
  std::vector<Part> parts;
  state_.slabs.ForEachSlab([&](CUdeviceptr base) {
    parts.push_back({base, kGranuleBytes, nullptr});
  });
  for (const StoredAddresses::Global& global : stored_.globals())
    parts.push_back({global.base, global.bytes, nullptr});
  for (Range* range : state_.residency.LiveRanges()) {
    if (!IsMapped(range) || range->empty) continue;
    state_.residency.Pin(range);
    parts.push_back({range->base, range->requested_bytes, range});
  }
  return parts;
}

size_t MemoryScan::WholeBytes(Depth depth) {
  return depth == Depth::kFull ? kWholeInFullScanBytes : kWholeAfterLaunchBytes;
}

bool MemoryScan::AwaitReadBack(const CUDA_MEMCPY2D& copy) {
  Use use;
  CUevent event = nullptr;
  {
    const StateLock lock(state_.locks);
    use = state_.residency.copies().OnOwnStream(copy);
    if (!use.stream) return false;
    event = state_.timeline.EventFor(use);
  }
  waits_.Await(use, event, StallCause::kIdle);
  return true;
}

bool MemoryScan::HostCopiesHoldUnexplained() {
  const StateLock lock(state_.locks);
  const std::vector<Range*> live = state_.residency.LiveRanges();
  return std::any_of(live.begin(), live.end(), [this](Range* range) SPILLWAY_REQUIRES(kStateLock) {
    return HostCopyHoldsUnexplained(*range, Depth::kFull);
  });
}

bool MemoryScan::AnyUnexplained(const std::byte* data, size_t bytes, CUdeviceptr at) {
  std::vector<HeldWord> found;
  ScanWords(data, bytes, at, state_.Bounds(), [&](const HeldWord& held) { found.push_back(held); });
  ForEachTensorMap(data, bytes, -at % kTensorMapAlignment, [&](size_t offset, CUdeviceptr address) {
    found.push_back({at + offset, address});
  });
  for (const HeldWord& held : found) {
    if (IsUnexplained(held)) return true;
  }
  found.clear();
  ScanWords(data, bytes, at, HostRegions::Bounds(),
            [&](const HeldWord& held) { found.push_back(held); });
  for (const HeldWord& held : found) {
    if (stored_.LeadsToHeldWords(held.word) && !stored_.ContentsAt(held.at).Explains(held))
      return true;
  }
  return false;
}

bool MemoryScan::LeadsToAnother(CUdeviceptr word, const Allocation* holder) const {
  if (const Allocation* const target = state_.ledger.Find(word)) return target != holder;
  if (!ordering_rules::kStraysAreFound) return false;
  const auto beside = state_.ledger.Beside(word);
  return std::any_of(beside.begin(), beside.end(),
                     [&](CUdeviceptr address) { return state_.ledger.Find(address) != holder; });
}

// An address of another live allocation, stored in live memory, that no copy explains. An
// allocation's own address leads nowhere new.
bool MemoryScan::IsUnexplained(const HeldWord& held) {
  const Allocation* const holder = state_.ledger.Find(held.at);
  if (!LeadsToAnother(held.word, holder)) return false;
  const bool in_slab_gap = !holder && state_.residency.mappings().OwnsAddress(held.at);
  if (in_slab_gap ||
      (holder && held.at + sizeof held.word > holder->base + holder->requested_bytes))
    return false;
  return !stored_.ContentsAt(held.at).Explains(held);
}

}  // namespace spillway::interposer
