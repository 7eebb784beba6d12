#include "scheduler/plan/mapping_host.h"

#include <algorithm>

namespace spillway::scheduler {

MappingCosts::MappingCosts(const Problem& problem, const std::vector<int64_t>& footprints_bytes) {
  const MappingPrices& prices = problem.device.mapping;
  size_of_.assign(footprints_bytes.size(), -1);
  if (!prices.AnyIsPaid()) return;
  const std::vector<Buffer>& buffers = problem.iteration().buffers;
  std::vector<int64_t> movable_bytes;
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (buffers[i].size_bytes >= problem.min_movable_bytes)
      movable_bytes.push_back(footprints_bytes[i]);
  }
  std::sort(movable_bytes.begin(), movable_bytes.end());
  movable_bytes.erase(std::unique(movable_bytes.begin(), movable_bytes.end()), movable_bytes.end());
  for (int64_t bytes : movable_bytes)
    sizes_.push_back({bytes, prices.MapNs(bytes), prices.UnmapNs(bytes)});
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (buffers[i].size_bytes < problem.min_movable_bytes) continue;
    const auto at =
        std::lower_bound(movable_bytes.begin(), movable_bytes.end(), footprints_bytes[i]);
    size_of_[i] = static_cast<int32_t>(at - movable_bytes.begin());
  }
}

MappingHost::MappingHost(const MappingCosts& costs)
    : costs_(costs),
      is_paid_(costs.AnyIsPaid()),
      backlog_{0, std::vector<int32_t>(costs.sizes().size())} {}

void MappingHost::Note(Release release) { releases_[next_release_++ % releases_.size()] = release; }

void MappingHost::Left(BufferId id, int64_t bytes, int64_t now_ns) {
  if (!is_paid_) return;
  Note({now_ns, bytes, -1});
  const int32_t size = costs_.size_of(id);
  if (size < 0) return;
  const int64_t unmap_ns = costs_.sizes()[static_cast<size_t>(size)].unmap_ns;
  backlog_.to_unmap_ns += unmap_ns;
  left_.push_back({now_ns, unmap_ns});
}

void MappingHost::Died(BufferId id, int64_t bytes, int64_t now_ns) {
  if (!is_paid_) return;
  const int32_t size = costs_.size_of(id);
  Note({now_ns, bytes, size});
  if (size < 0) return;
  ++backlog_.still_mapped[static_cast<size_t>(size)];
  still_mapped_bytes_ += bytes;
}

void MappingHost::Give(BufferId id, int64_t free_bytes, Content content) {
  if (!is_paid_) return;
  const int32_t size = costs_.size_of(id);
  if (size < 0 || (content == Content::kNew && TakeMapped(size))) return;
  const MappingCosts::Size& wanted = costs_.sizes()[static_cast<size_t>(size)];
  const int64_t available_ns = AvailableNs(free_bytes - wanted.bytes);
  UnmapEvictedBy(available_ns);
  const int64_t calls_ns = UnmapNs(wanted.bytes, free_bytes) + wanted.map_ns;
  ready_ns_ = std::max(ready_ns_, available_ns) + calls_ns;
}

void MappingHost::UnmapEvictedBy(int64_t time_ns) {
  auto next = left_.begin();
  for (; next != left_.end() && next->time_ns <= std::max(ready_ns_, time_ns); ++next) {
    ready_ns_ = std::max(ready_ns_, next->time_ns) + next->unmap_ns;
    backlog_.to_unmap_ns -= next->unmap_ns;
  }
  left_.erase(left_.begin(), next);
}

// Any dead buffer will do, as the stream orders their uses; takes the latest.
bool MappingHost::TakeMapped(int32_t size) {
  int32_t& mapped = backlog_.still_mapped[static_cast<size_t>(size)];
  if (mapped == 0) return false;
  --mapped;
  still_mapped_bytes_ -= costs_.sizes()[static_cast<size_t>(size)].bytes;
  for (size_t back = 1; back <= releases_.size(); ++back) {
    Release& release = releases_[(next_release_ - back) % releases_.size()];
    if (release.time_ns <= ready_ns_) break;  // AvailableNs looks no further
    if (release.mapped_size != size || release.bytes == 0) continue;
    release.bytes = 0;
    break;
  }
  return true;
}

// The largest first.
int64_t MappingHost::UnmapNs(int64_t wanted_bytes, int64_t free_bytes) {
  int64_t unmap_ns = 0;
  int64_t chunk_bytes = free_bytes - still_mapped_bytes_;
  for (size_t size = backlog_.still_mapped.size(); size-- > 0 && chunk_bytes < wanted_bytes;) {
    const MappingCosts::Size& dead = costs_.sizes()[size];
    for (; backlog_.still_mapped[size] > 0 && chunk_bytes < wanted_bytes;
         --backlog_.still_mapped[size]) {
      chunk_bytes += dead.bytes;
      still_mapped_bytes_ -= dead.bytes;
      unmap_ns += dead.unmap_ns;
    }
  }
  return unmap_ns;
}

// Since when this many bytes were free: bytes left over now were never needed. For times older
// than the ring, its oldest entry.
int64_t MappingHost::AvailableNs(int64_t slack_bytes) const {
  for (size_t back = 1; back <= releases_.size(); ++back) {
    const Release& release = releases_[(next_release_ - back) % releases_.size()];
    if (release.time_ns <= ready_ns_) return 0;
    if (slack_bytes < release.bytes) return release.time_ns;
    slack_bytes -= release.bytes;
  }
  return releases_[next_release_ % releases_.size()].time_ns;
}

}  // namespace spillway::scheduler
