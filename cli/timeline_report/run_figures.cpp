#include "cli/timeline_report/run_figures.h"

#include <algorithm>
#include <unordered_map>

namespace spillway::cli {
namespace {

constexpr std::size_t kListed = 10;

// The spans are sorted by their beginning.
std::vector<RecordedSpan> Merged(const std::vector<RecordedSpan>& spans) {
  std::vector<RecordedSpan> merged;
  for (const RecordedSpan& span : spans) {
    if (merged.empty() || span.begin_ns > merged.back().end_ns)
      merged.push_back(span);
    else
      merged.back().end_ns = std::max(merged.back().end_ns, span.end_ns);
  }
  return merged;
}

std::int64_t Overlap(const std::vector<RecordedSpan>& merged, const RecordedSpan& with) {
  auto at = std::lower_bound(
      merged.begin(), merged.end(), with.begin_ns,
      [](const RecordedSpan& span, std::int64_t time_ns) { return span.end_ns <= time_ns; });
  std::int64_t total_ns = 0;
  for (; at != merged.end() && at->begin_ns < with.end_ns; ++at)
    total_ns += std::min(at->end_ns, with.end_ns) - std::max(at->begin_ns, with.begin_ns);
  return total_ns;
}

template <class Item, class Weight>
void KeepMost(std::vector<Item>* items, Weight weight) {
  const auto by_weight = [&](const Item& a, const Item& b) {
    return weight(a) != weight(b) ? weight(a) > weight(b) : a.begin_ns < b.begin_ns;
  };
  std::sort(items->begin(), items->end(), by_weight);
  if (items->size() > kListed) items->resize(kListed);
}

class Computation {
 public:
  explicit Computation(const RecordedDevice& device) : device_(device) {}

  RunFigures Run() {
    FindSpan();
    SumMemory();
    SumMoved();
    SumStalls();
    FindEmpty();
    FindIdleDevice();
    FindIdleBuffers();
    MeasureIterations();
    return std::move(figures_);
  }

 private:
  void Include(std::int64_t begin_ns, std::int64_t end_ns) {
    RecordedSpan& span = figures_.span;
    span.begin_ns = any_ ? std::min(span.begin_ns, begin_ns) : begin_ns;
    span.end_ns = any_ ? std::max(span.end_ns, end_ns) : end_ns;
    any_ = true;
  }

  void FindSpan() {
    for (const RecordedMemory& point : device_.memory) Include(point.time_ns, point.time_ns);
    for (const RecordedSpan& span : device_.operations) Include(span.begin_ns, span.end_ns);
    for (const RecordedSpan& span : device_.copies) Include(span.begin_ns, span.end_ns);
    for (const RecordedSpan& span : device_.stalls) Include(span.begin_ns, span.end_ns);
  }

  void SumMemory() {
    for (const RecordedMemory& point : device_.memory) {
      figures_.budget_bytes = point.budget_bytes;
      figures_.resident_peak_bytes = std::max(figures_.resident_peak_bytes, point.resident_bytes);
      figures_.wanted_peak_bytes = std::max(figures_.wanted_peak_bytes, point.wanted_bytes);
      figures_.host_peak_bytes = std::max(figures_.host_peak_bytes, point.host_bytes);
    }
  }

  void NoteCopy(const RecordedCopy& copy, MovedBuffer* moved) const {
    (copy.is_out ? moved->out_bytes : moved->in_bytes) += copy.size_bytes;
    ++(copy.is_out ? moved->times_out : moved->times_in);
    moved->late += copy.cause == "late prefetch";
    moved->copy_ns += copy.end_ns - copy.begin_ns;
    moved->size_bytes = copy.size_bytes;
  }

  static void NoteMoment(const RecordedMoment& moment, MovedBuffer* moved) {
    moved->dropped += moment.name == "dropped";
    moved->hits += moment.name == "prefetch hit";
    moved->unused += moment.name == "prefetch unused";
  }

  void SumMoved() {
    std::map<std::uint64_t, MovedBuffer> buffers;
    for (const RecordedCopy& copy : device_.copies) {
      MovedByCause& by_cause =
          (copy.is_out ? figures_.out_by_cause : figures_.in_by_cause)[copy.cause];
      ++by_cause.times;
      by_cause.bytes += copy.size_bytes;
      by_cause.copy_ns += copy.end_ns - copy.begin_ns;
      NoteCopy(copy, &buffers[copy.buffer]);
      NoteCopy(copy, &figures_.moved);
    }
    for (const RecordedMoment& moment : device_.moments) {
      const auto at = buffers.find(moment.buffer);
      if (at != buffers.end()) NoteMoment(moment, &at->second);
      NoteMoment(moment, &figures_.moved);
    }
    for (auto& [number, moved] : buffers) {
      moved.buffer = number;
      figures_.buffers.push_back(moved);
    }
    std::stable_sort(figures_.buffers.begin(), figures_.buffers.end(), MovedMore);
    SumSizes();
  }

  static bool MovedMore(const MovedBuffer& a, const MovedBuffer& b) {
    return a.out_bytes + a.in_bytes > b.out_bytes + b.in_bytes;
  }

  static void Include(const MovedBuffer& one, MovedBuffer* all) {
    all->size_bytes = one.size_bytes;
    all->out_bytes += one.out_bytes;
    all->in_bytes += one.in_bytes;
    all->times_out += one.times_out;
    all->times_in += one.times_in;
    all->dropped += one.dropped;
    all->hits += one.hits;
    all->late += one.late;
    all->unused += one.unused;
    all->copy_ns += one.copy_ns;
  }

  void SumSizes() {
    std::map<std::int64_t, MovedSize> sizes;
    for (const MovedBuffer& buffer : figures_.buffers) {
      MovedSize& size = sizes[buffer.size_bytes];
      ++size.allocations;
      Include(buffer, &size.moved);
    }
    for (const auto& [bytes, size] : sizes) figures_.sizes.push_back(size);
    std::stable_sort(
        figures_.sizes.begin(), figures_.sizes.end(),
        [](const MovedSize& a, const MovedSize& b) { return MovedMore(a.moved, b.moved); });
  }

  void SumStalls() {
    for (const RecordedStall& stall : device_.stalls) {
      StalledByCause& by_cause = figures_.stalls[stall.cause];
      const std::int64_t length_ns = stall.end_ns - stall.begin_ns;
      ++by_cause.times;
      by_cause.total_ns += length_ns;
      by_cause.longest_ns = std::max(by_cause.longest_ns, length_ns);
    }
  }

  std::vector<RecordedSpan> Copies(bool out) const {
    std::vector<RecordedSpan> spans;
    for (const RecordedCopy& copy : device_.copies) {
      if (copy.is_out == out) spans.push_back(copy);
    }
    return Merged(spans);
  }

  void FindEmpty() {
    constexpr std::int64_t kLeastPart = 20;  // a twentieth
    std::vector<RecordedSpan> all = SpansOf(device_.operations);
    all.insert(all.end(), device_.copies.begin(), device_.copies.end());
    all.insert(all.end(), device_.stalls.begin(), device_.stalls.end());
    const std::int64_t length_ns = figures_.span.end_ns - figures_.span.begin_ns;
    figures_.empty =
        StretchesWithout(all, figures_.span, std::max<std::int64_t>(1, length_ns / kLeastPart));
  }

  void FindIdleDevice() {
    const auto computing = Merged(SpansOf(device_.operations));
    const auto copies_in = Copies(false), copies_out = Copies(true),
               stalls = Merged(SpansOf(device_.stalls));
    for (std::size_t i = 0; i < computing.size(); ++i) {
      figures_.computing_ns += computing[i].end_ns - computing[i].begin_ns;
      if (i + 1 == computing.size()) break;
      IdleDevice idle;
      idle.begin_ns = computing[i].end_ns;
      idle.end_ns = computing[i + 1].begin_ns;
      idle.copy_in_ns = Overlap(copies_in, idle);
      idle.copy_out_ns = Overlap(copies_out, idle);
      idle.stall_ns = Overlap(stalls, idle);
      figures_.idle_device.push_back(idle);
    }
    KeepMost(&figures_.idle_device,
             [](const IdleDevice& idle) { return idle.end_ns - idle.begin_ns; });
  }

  bool WentAwayWithin(std::uint64_t buffer, const RecordedSpan& span) const {
    const auto begins_later = [](const RecordedCopy& copy, std::int64_t time_ns) {
      return copy.begin_ns < time_ns;
    };
    for (auto at = std::lower_bound(device_.copies.begin(), device_.copies.end(), span.begin_ns,
                                    begins_later);
         at != device_.copies.end() && at->begin_ns < span.end_ns; ++at) {
      if (at->buffer == buffer && at->is_out) return true;
    }
    return false;
  }

  void FindIdleBuffers() {
    std::unordered_map<std::uint64_t, std::int64_t> size_bytes, last_end_ns;
    for (const RecordedMoment& moment : device_.moments) {
      if (moment.name == "allocated") size_bytes[moment.buffer] = moment.size_bytes;
    }
    const auto weight = [](const IdleBuffer& idle) {
      return static_cast<double>(idle.size_bytes) *
             static_cast<double>(idle.end_ns - idle.begin_ns);
    };
    for (const RecordedOperation& operation : device_.operations) {
      for (const std::uint64_t buffer : operation.touches) {
        const auto [at, is_first] = last_end_ns.try_emplace(buffer, operation.end_ns);
        if (!is_first && operation.begin_ns > at->second) {
          IdleBuffer idle;
          idle.begin_ns = at->second;
          idle.end_ns = operation.begin_ns;
          idle.buffer = buffer;
          idle.size_bytes = size_bytes[buffer];
          figures_.idle_buffers.push_back(idle);
        }
        at->second = std::max(at->second, operation.end_ns);
      }
      if (figures_.idle_buffers.size() > 4096) KeepMost(&figures_.idle_buffers, weight);
    }
    KeepMost(&figures_.idle_buffers, weight);
    for (IdleBuffer& idle : figures_.idle_buffers)
      idle.was_away = WentAwayWithin(idle.buffer, idle);
  }

  void MeasureIterations() {
    const std::int64_t since_ns = device_.plans.empty() ? INT64_MIN : device_.plans.back().time_ns;
    std::vector<std::int64_t> lengths;
    for (const RecordedIteration& iteration : device_.iterations) {
      if (iteration.begin_ns >= since_ns) lengths.push_back(iteration.end_ns - iteration.begin_ns);
    }
    if (lengths.empty()) return;
    std::nth_element(lengths.begin(),
                     lengths.begin() + static_cast<std::ptrdiff_t>(lengths.size() / 2),
                     lengths.end());
    figures_.measured_iteration_ns = lengths[lengths.size() / 2];
    for (const RecordedIteration& iteration : device_.iterations) {
      if (iteration.end_ns - iteration.begin_ns <= figures_.measured_iteration_ns &&
          iteration.begin_ns >= since_ns)
        figures_.typical_iteration = iteration;
    }
  }

  const RecordedDevice& device_;
  RunFigures figures_;
  bool any_ = false;
};

}  // namespace

RunFigures ComputeFigures(const RecordedDevice& device) { return Computation(device).Run(); }

std::vector<RecordedSpan> StretchesWithout(std::vector<RecordedSpan> spans,
                                           const RecordedSpan& within, std::int64_t least_ns) {
  std::sort(spans.begin(), spans.end(),
            [](const RecordedSpan& a, const RecordedSpan& b) { return a.begin_ns < b.begin_ns; });
  std::vector<RecordedSpan> stretches;
  std::int64_t busy_until_ns = within.begin_ns;
  const auto end_at = [&](std::int64_t time_ns) {
    const std::int64_t end_ns = std::min(time_ns, within.end_ns);
    if (end_ns - busy_until_ns >= least_ns) stretches.push_back({busy_until_ns, end_ns});
  };
  for (const RecordedSpan& span : spans) {
    end_at(span.begin_ns);
    busy_until_ns = std::max(busy_until_ns, span.end_ns);
  }
  end_at(within.end_ns);
  return stretches;
}

std::vector<double> BusyShares(std::vector<RecordedSpan> spans, const RecordedSpan& within,
                               int columns) {
  std::vector<double> shares(static_cast<std::size_t>(columns));
  const double column_ns = static_cast<double>(within.end_ns - within.begin_ns) / columns;
  if (column_ns <= 0) return shares;
  std::sort(spans.begin(), spans.end(),
            [](const RecordedSpan& a, const RecordedSpan& b) { return a.begin_ns < b.begin_ns; });
  for (const RecordedSpan& span : Merged(spans)) {
    const double begin =
        std::max<double>(0, static_cast<double>(span.begin_ns - within.begin_ns) / column_ns);
    const double end =
        std::min<double>(columns, static_cast<double>(span.end_ns - within.begin_ns) / column_ns);
    for (auto column = static_cast<int>(begin); column < end; ++column)
      shares[static_cast<std::size_t>(column)] +=
          std::min<double>(end, column + 1) - std::max<double>(begin, column);
  }
  return shares;
}

}  // namespace spillway::cli
