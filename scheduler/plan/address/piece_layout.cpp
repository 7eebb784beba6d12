#include "scheduler/plan/address/piece_layout.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

namespace spillway::scheduler::address {
namespace {

struct Span {
  int64_t begin, end;  // granules
  int64_t length() const { return end - begin; }
};

bool OverlapInTime(const Residence& one, const Residence& other, int64_t period) {
  for (const int64_t shift : {int64_t{0}, period, -period}) {
    if (one.begin < other.end + shift && other.begin + shift < one.end) return true;
  }
  return false;
}

// One by one, where they cut the fewest pieces.
class Placement {
 public:
  Placement(const std::vector<Residence>& residences, int64_t period, int64_t capacity)
      : residences_(residences),
        period_(period),
        capacity_(capacity),
        spans_(residences.size()),
        cuts_{0, capacity} {}

  void Place(size_t residence) {
    const int64_t granules = residences_[residence].granules;
    const std::vector<Span> gaps = GapsFor(residence);
    std::vector<Span> spans = LikeTwin(residence, gaps);
    if (spans.empty()) spans = InOneGap(gaps, granules);
    if (spans.empty()) spans = InSeveral(gaps, granules);
    if (spans.empty()) return;
    for (const Span& span : spans) {
      AddCut(span.begin);
      AddCut(span.end);
    }
    spans_[residence] = std::move(spans);
    placed_.push_back(residence);
  }

  void CutPieces(int64_t most_granules) {
    for (size_t i = 0; i + 1 < cuts_.size(); ++i) {
      if (cuts_[i + 1] - cuts_[i] > most_granules) AddCut(cuts_[i] + most_granules);
    }
  }

  PieceLayout Layout() const {
    PieceLayout layout;
    for (size_t i = 0; i + 1 < cuts_.size(); ++i)
      layout.piece_granules.push_back(cuts_[i + 1] - cuts_[i]);
    for (const std::vector<Span>& spans : spans_) {
      std::vector<int32_t>& pieces = layout.pieces.emplace_back();
      for (const Span& span : spans) {
        for (size_t i = IndexOf(span.begin); cuts_[i] < span.end; ++i)
          pieces.push_back(static_cast<int32_t>(i));
      }
    }
    return layout;
  }

 private:
  size_t IndexOf(int64_t cut) const {
    return static_cast<size_t>(std::lower_bound(cuts_.begin(), cuts_.end(), cut) - cuts_.begin());
  }
  void AddCut(int64_t at) {
    const auto place = std::lower_bound(cuts_.begin(), cuts_.end(), at);
    if (*place != at) cuts_.insert(place, at);
  }

  std::vector<Span> GapsFor(size_t residence) const {
    std::vector<Span> taken;
    for (const size_t other : placed_) {
      if (OverlapInTime(residences_[residence], residences_[other], period_))
        taken.insert(taken.end(), spans_[other].begin(), spans_[other].end());
    }
    std::sort(taken.begin(), taken.end(),
              [](const Span& one, const Span& other) { return one.begin < other.begin; });
    std::vector<Span> gaps;
    int64_t at = 0;
    for (const Span& span : taken) {
      if (span.begin > at) gaps.push_back({at, span.begin});
      at = std::max(at, span.end);
    }
    if (at < capacity_) gaps.push_back({at, capacity_});
    return gaps;
  }

  std::vector<Span> LikeTwin(size_t residence, const std::vector<Span>& gaps) const {
    const int32_t twin = residences_[residence].twin;
    const bool is_equal = twin >= 0 && residences_[static_cast<size_t>(twin)].granules ==
                                           residences_[residence].granules;
    if (!is_equal) return {};
    const std::vector<Span>& spans = spans_[static_cast<size_t>(twin)];
    const bool are_free = std::all_of(spans.begin(), spans.end(), [&](const Span& span) {
      return std::any_of(gaps.begin(), gaps.end(), [&](const Span& gap) {
        return gap.begin <= span.begin && span.end <= gap.end;
      });
    });
    return are_free ? spans : std::vector<Span>();
  }

  // Where it consists of, and makes, the fewest pieces; then where it leaves the fewest gaps.
  struct Fit {
    std::tuple<int64_t, int64_t, int64_t> cost = {kNowhere, 0, 0};
    Span span = {0, 0};
  };
  static constexpr int64_t kNowhere = INT64_MAX;

  void Consider(const Span& gap, const Span& span, size_t first, size_t last, Fit* best) const {
    if (span.begin < gap.begin || span.end > gap.end) return;
    const bool begins_at_cut = cuts_[first] == span.begin, ends_at_cut = cuts_[last] == span.end;
    const auto inner = static_cast<int64_t>(last - first) - begins_at_cut;
    const std::tuple cost(inner + !begins_at_cut + !ends_at_cut,
                          int64_t{span.begin > gap.begin} + (span.end < gap.end), span.begin);
    if (cost < best->cost) *best = {cost, span};
  }

  std::vector<Span> InOneGap(const std::vector<Span>& gaps, int64_t granules) const {
    Fit best;
    for (const Span& gap : gaps) {
      if (gap.length() < granules) continue;
      const size_t from = IndexOf(gap.begin), to = IndexOf(gap.end);
      size_t first = from, last = IndexOf(gap.begin + granules);
      Consider(gap, {gap.begin, gap.begin + granules}, from, last, &best);
      Consider(gap, {gap.end - granules, gap.end}, IndexOf(gap.end - granules), to, &best);
      for (size_t i = from; i < cuts_.size() && cuts_[i] <= gap.end; ++i) {
        const Span begins = {cuts_[i], cuts_[i] + granules};
        while (last + 1 < cuts_.size() && cuts_[last] < begins.end) ++last;
        Consider(gap, begins, i, last, &best);
        const Span ends = {cuts_[i] - granules, cuts_[i]};
        while (cuts_[first] < ends.begin) ++first;
        Consider(gap, ends, first, i, &best);
      }
    }
    if (std::get<0>(best.cost) == kNowhere) return {};
    return {best.span};
  }

  static std::vector<Span> InSeveral(std::vector<Span> gaps, int64_t granules) {
    std::stable_sort(gaps.begin(), gaps.end(), [](const Span& one, const Span& other) {
      return one.length() > other.length();
    });
    std::vector<Span> spans;
    for (const Span& gap : gaps) {
      const int64_t length = std::min(gap.length(), granules);
      spans.push_back({gap.begin, gap.begin + length});
      granules -= length;
      if (granules == 0) return spans;
    }
    return {};
  }

  const std::vector<Residence>& residences_;
  const int64_t period_;
  const int64_t capacity_;
  std::vector<std::vector<Span>> spans_;  // by residence
  std::vector<size_t> placed_;
  std::vector<int64_t> cuts_;  // ascending
};

enum class Order : uint8_t { kByArea, kByLength, kBySize };

PieceLayout PlaceAll(const std::vector<Residence>& residences, int64_t period,
                     int64_t most_granules, Order by) {
  const auto weight_of = [by](const Residence& one) {
    const int64_t length = one.end - one.begin;
    if (by == Order::kByLength) return std::pair(length, one.granules);
    const int64_t area = length * one.granules;
    return by == Order::kByArea ? std::pair(area, length) : std::pair(area * one.granules, length);
  };
  std::vector<size_t> order(residences.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t one, size_t other) {
    return weight_of(residences[one]) > weight_of(residences[other]);
  });
  Placement placement(residences, period, PeakGranules(residences, period));
  for (const size_t residence : order) placement.Place(residence);
  placement.CutPieces(most_granules);
  return placement.Layout();
}

// In pieces that each iteration maps or unmaps. Without pieces of its own, a residence takes those
// of others, which then lack theirs.
int64_t CostOf(const std::vector<Residence>& residences, const PieceLayout& layout) {
  constexpr int64_t kWithoutPieces = 40;
  int64_t cost = 0;
  for (size_t i = 0; i < residences.size(); ++i) {
    const auto pieces = static_cast<int64_t>(layout.pieces[i].size());
    cost += pieces == 0 ? kWithoutPieces : residences[i].moves ? pieces : 0;
  }
  return cost;
}

bool AllHavePieces(const PieceLayout& layout) {
  return std::none_of(layout.pieces.begin(), layout.pieces.end(),
                      [](const std::vector<int32_t>& pieces) { return pieces.empty(); });
}

}  // namespace

int64_t PeakGranules(const std::vector<Residence>& residences, int64_t period) {
  std::vector<std::pair<int64_t, int64_t>> changes;
  for (const Residence& one : residences) {
    changes.emplace_back(one.begin, one.granules);
    changes.emplace_back(one.end, -one.granules);
    if (one.end <= period) continue;
    changes.emplace_back(0, one.granules);
    changes.emplace_back(one.end - period, -one.granules);
  }
  std::sort(changes.begin(), changes.end());
  int64_t now = 0, peak = 0;
  for (const auto& [at, granules] : changes) {
    now += granules;
    peak = std::max(peak, now);
  }
  return peak;
}

PieceLayout LayOutPieces(const std::vector<Residence>& residences, int64_t period,
                         int64_t most_granules) {
  PieceLayout best;
  int64_t best_cost = 0;
  for (const Order order : {Order::kByArea, Order::kByLength, Order::kBySize}) {
    PieceLayout layout = PlaceAll(residences, period, most_granules, order);
    const int64_t cost = CostOf(residences, layout);
    if (best.pieces.empty() || cost < best_cost) {
      best = std::move(layout);
      best_cost = cost;
    }
    if (AllHavePieces(best)) break;
  }
  return best;
}

}  // namespace spillway::scheduler::address
