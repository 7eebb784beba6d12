#include "interposer/ledger/host_regions.h"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>

namespace spillway::interposer {

using base::MutexLock;

namespace {

// Growth within such steps needs no further scan in full.
constexpr CUdeviceptr kBoundsStep = CUdeviceptr{1} << 40;

WordBounds Widened(WordBounds bounds) {
  return {bounds.lowest() / kBoundsStep * kBoundsStep,
          (bounds.highest() / kBoundsStep + 1) * kBoundsStep};
}

}  // namespace

HostRegions& HostRegions::Instance() {
  static HostRegions* const regions = new HostRegions;
  return *regions;
}

const HostRegions::Region* HostRegions::Find(CUdeviceptr word) const {
  const auto behind = regions_.upper_bound(word);
  if (behind == regions_.begin()) return nullptr;
  const Region& region = std::prev(behind)->second;
  return word - region.base < region.bytes ? &region : nullptr;
}

HostRegions::Bases HostRegions::FindNear(CUdeviceptr word) const {
  Bases found;
  for (auto at = regions_.upper_bound(word + kBesideOnHostBytes); at != regions_.begin();) {
    const HostRegion& region = (--at)->second;
    if (word >= region.base + region.bytes + kBesideOnHostBytes) break;
    found.push_back(region.base);
  }
  return found;
}

HostRegions::Bases HostRegions::BasesNear(CUdeviceptr word) {
  if (!MightHold(word)) return {};
  const MutexLock lock(mutex_);
  return FindNear(word);
}

CUdeviceptr HostRegions::BaseOf(CUdeviceptr word) {
  if (!MightHold(word)) return 0;
  const MutexLock lock(mutex_);
  const Region* const region = Find(word);
  return region ? region->base : 0;
}

// The span grows first: bounds read in between are never too narrow.
void HostRegions::WidenBounds(const HostRegion& region) {
  const bool is_first = span_.load() == 0;
  const CUdeviceptr first = region.base - kBesideOnHostBytes;
  const CUdeviceptr begin = is_first ? first : std::min(lowest_.load(), first);
  const CUdeviceptr end =
      std::max(lowest_.load() + span_.load(), region.base + region.bytes + kBesideOnHostBytes);
  span_.store(end - begin);
  lowest_.store(begin);
}

bool HostRegions::AreBroughtBy(const Transfers& transfers) {
  bool any = false;
  for (const Transfer& transfer : transfers) {
    if (transfer.source != Transfer::Source::kHost) continue;
    for (std::size_t row = 0; row < transfer.rows; ++row) {
      const auto* const payload =
          reinterpret_cast<const void*>(transfer.from + row * transfer.from_pitch_bytes);
      ScanPayload(payload, transfer.width_bytes, transfer.to + row * transfer.to_pitch_bytes,
                  Bounds(), [&](const HeldWord& held) { any = any || Holds(held.word); });
    }
  }
  return any;
}

void HostRegions::Add(const HostRegion& region) {
  const MutexLock lock(mutex_);
  regions_.insert_or_assign(region.base, Region{region});
  WidenBounds(region);
  for (auto& [base, each] : regions_) each.scanned_for = {};
}

std::optional<HostRegion> HostRegions::Take(const void* data) {
  const MutexLock lock(mutex_);
  const auto at = std::find_if(regions_.begin(), regions_.end(),
                               [data](const auto& one) { return one.second.data == data; });
  if (at == regions_.end()) return {};
  const HostRegion taken = at->second;
  regions_.erase(at);
  return taken;
}

void HostRegions::ContextEnded(CUcontext context) {
  const MutexLock lock(mutex_);
  std::erase_if(regions_, [context](const auto& one) { return one.second.context == context; });
}

void HostRegions::ReadPage(const Region& region, std::size_t offset, WordBounds bounds,
                           Scan* out) const {
  alignas(kScanPageBytes) std::byte copy[kScanPageBytes];
  const std::size_t bytes = std::min(kScanPageBytes, region.bytes - offset);
  const std::byte* data = region.data + offset;
  if (region.reading == HostRegion::Reading::kRegistered) {
    const iovec from{const_cast<std::byte*>(data), bytes}, to{copy, bytes};
    if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) != static_cast<ssize_t>(bytes)) {
      out->is_readable = false;
      return;
    }
    data = copy;
  }
  const CUdeviceptr at = region.base + offset;
  ScanWords(data, bytes, at, bounds, [&](const HeldWord& held) { out->held.push_back(held); });
  std::vector<CUdeviceptr> on_host;
  ScanWords(data, bytes, at, Bounds(), [&](const HeldWord& held) { on_host.push_back(held.word); });
  for (const CUdeviceptr word : on_host) {
    for (const CUdeviceptr next : FindNear(word)) {
      if (next != region.base) out->leads_on.push_back({next, word});
    }
  }
}

void HostRegions::ReadPart(const Region& region, const Part& part, WordBounds bounds,
                           Scan* out) const {
  for (std::size_t offset = part.begin; offset < part.end; offset += kScanPageBytes)
    ReadPage(region, offset, bounds, out);
}

bool HostRegions::MustReadWhole(const Region& region, WordBounds bounds) {
  const bool was_scanned = region.scanned_for.lowest() <= bounds.lowest() &&
                           region.scanned_for.highest() >= bounds.highest();
  return region.bytes <= kWholeOnHostBytes || region.holds_addresses || !was_scanned ||
         region.scans >= region.whole_at_scan;
}

void HostRegions::ReadWhole(WordBounds bounds, Region* region, Scan* out) {
  const WordBounds wide = WordBounds::Around(region->scanned_for, Widened(bounds));
  ReadPart(*region, {0, region->bytes}, wide, out);
  out->is_whole = true;
  region->holds_addresses = region->holds_addresses || !out->held.empty() || !out->leads_on.empty();
  std::erase_if(out->held, [bounds](const HeldWord& held) { return !bounds.Contain(held.word); });
  region->is_readable = out->is_readable;
  region->scanned_for = wide;
  region->whole_at_scan = 2 * region->scans;
}

// In whole pages. The word may lie beside the region.
HostRegions::Part HostRegions::Near(const Region& region, CUdeviceptr word) {
  const std::size_t at =
      word < region.base ? 0 : std::min<std::size_t>(word - region.base, region.bytes);
  const std::size_t begin = at < kNearBytes ? 0 : at - kNearBytes;
  return {begin - begin % kScanPageBytes, std::min(at + kNearBytes, region.bytes)};
}

void HostRegions::ReadSample(const Region& region, const Place& place, WordBounds bounds,
                             Scan* out) const {
  ReadPart(region, Near(region, place.word), bounds, out);
  if (place.is_sampled) return;
  for (std::size_t offset = 0; offset < region.bytes; offset += kScanPageBytes * kPagesPerSample)
    ReadPage(region, offset, bounds, out);
}

HostRegions::Scan HostRegions::Read(const Place& place, WordBounds bounds) {
  Scan scan;
  const MutexLock lock(mutex_);
  const auto at = regions_.find(place.base);
  if (at == regions_.end()) return scan;
  Region& region = at->second;
  scan.is_readable = region.is_readable && region.reading != HostRegion::Reading::kNone;
  if (region.reading == HostRegion::Reading::kNone) return scan;
  ++region.scans;
  if (!place.in_full && !MustReadWhole(region, bounds)) {
    ReadSample(region, place, bounds, &scan);
    if (scan.held.empty() && scan.leads_on.empty()) return scan;
    scan.held.clear();
    scan.leads_on.clear();
  }
  ReadWhole(bounds, &region, &scan);
  return scan;
}

}  // namespace spillway::interposer
