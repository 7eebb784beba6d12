#include "scheduler/plan/placing.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "scheduler/plan/address/address_planner.h"

namespace spillway::scheduler {
namespace {

// Steps x buffers; larger plans leave addresses to the pool.
constexpr int64_t kMostWork = 50'000'000;

enum class Happening : uint8_t { kFetch, kTouch, kEnd, kLeave };

struct BufferEvent {
  int32_t step = 0;
  Happening what = Happening::kTouch;
  bool copies = false;  // kLeave: offloaded, not dropped
};

// As the iteration repeats for ever. Steps count on past the iteration's end.
class Residences {
 public:
  Residences(const Problem& problem, const Timeline& timeline, const Plan& plan)
      : profile_(problem.iteration()),
        plan_(plan),
        timeline_(timeline),
        begin_ns_(timeline.iteration_start_ns.back()),
        first_(timeline.last_iteration_step()),
        out_(ByBuffer(timeline.to_host)),
        in_(ByBuffer(timeline.to_device)),
        events_(profile_.buffers.size()) {
    size_t action = 0;
    for (int32_t s = 0; s < Count(); ++s) {
      const size_t first_action = action;
      for (; action < plan.actions.size() && plan.actions[action].step == s; ++action) {
        if (plan.actions[action].kind == ActionKind::kPrefetch)
          Add(plan.actions[action].buffer, s, Happening::kFetch);
      }
      const Operation& operation = profile_.at(plan.steps[At(s)].operation);
      for (BufferId id : operation.reads) Add(id, s, Happening::kTouch);
      for (BufferId id : operation.writes) Add(id, s, Happening::kTouch);
      if (!plan.steps[At(s)].recomputes) original_.push_back(s);
      for (size_t i = first_action; i < action; ++i) {
        if (plan.actions[i].kind == ActionKind::kPrefetch) continue;
        events_[At(plan.actions[i].buffer)].push_back(
            {s, Happening::kLeave, plan.actions[i].kind == ActionKind::kOffload});
      }
    }
    AddLifetimes();
  }

  void Cover(BufferId id, std::vector<uint8_t>& covered) const {
    std::fill(covered.begin(), covered.end(), 0);
    if (events_[At(id)].empty()) {
      if (profile_.at(id).persistent) std::fill(covered.begin(), covered.end(), 1);
      return;
    }
    int32_t open = profile_.at(id).persistent ? 0 : kClosed;
    for (int32_t cycle = 0; cycle < 3; ++cycle) {
      for (const BufferEvent& event : events_[At(id)])
        Walk(id, event, cycle * Count(), open, covered);
    }
    if (open != kClosed) Mark(open, 3 * Count() - 1, covered);
    // The last iteration may differ slightly from the one before; adds its actual copies.
    for (const Copies* copies : {&out_, &in_}) {
      for (const CopyTime& copy : (*copies)[At(id)])
        Mark(Count() + StepAt(copy.start_ns), Count() + LastBefore(copy.end_ns), covered);
    }
  }

 private:
  static constexpr int32_t kClosed = std::numeric_limits<int32_t>::max();
  using Copies = std::vector<std::vector<CopyTime>>;

  int32_t Count() const { return static_cast<int32_t>(plan_.steps.size()); }
  void Add(BufferId id, int32_t step, Happening what) { events_[At(id)].push_back({step, what}); }

  Copies ByBuffer(const std::vector<CopyTime>& copies) const {
    Copies result(profile_.buffers.size());
    for (const CopyTime& copy : copies) {
      if (copy.end_ns > begin_ns_) result[At(copy.buffer)].push_back(copy);
    }
    return result;
  }

  void AddLifetimes() {
    for (size_t i = 0; i < profile_.buffers.size(); ++i) {
      const Buffer& buffer = profile_.buffers[i];
      if (buffer.persistent) continue;
      std::vector<BufferEvent>& events = events_[i];
      events.push_back({original_[At(buffer.born.index)], Happening::kTouch});
      events.push_back({original_[At(buffer.dies.index)], Happening::kEnd});
      std::stable_sort(events.begin(), events.end(),
                       [](const BufferEvent& a, const BufferEvent& b) {
                         return std::pair(a.step, a.what) < std::pair(b.step, b.what);
                       });
    }
  }

  void Walk(BufferId id, const BufferEvent& event, int32_t offset, int32_t& open,
            std::vector<uint8_t>& covered) const {
    const int32_t at = offset + event.step;
    if (event.what == Happening::kTouch) open = std::min(open, at);
    if (event.what == Happening::kFetch && open == kClosed)
      open = offset + FetchStep(id, event.step);
    const bool ends = event.what == Happening::kEnd || event.what == Happening::kLeave;
    if (!ends || open == kClosed) return;
    Mark(open, std::max(at, event.copies ? offset + LeaveStep(id, event.step) : at), covered);
    open = kClosed;
  }

  // Possibly in the next iteration.
  int32_t FetchStep(BufferId id, int32_t step) const {
    const int64_t reached_ns = step > 0 ? timeline_.step_end_ns[first_ + At(step - 1)] : begin_ns_;
    for (const CopyTime& copy : in_[At(id)]) {
      if (copy.start_ns >= reached_ns) return std::max(step, StepAt(copy.start_ns));
    }
    for (const CopyTime& copy : in_[At(id)]) {
      if (copy.start_ns >= begin_ns_) return Count() + StepAt(copy.start_ns);
    }
    return step;
  }

  // The last step that starts before the copy out ends. A valid host copy needs no copy.
  int32_t LeaveStep(BufferId id, int32_t step) const {
    const int64_t end_ns = timeline_.step_end_ns[first_ + At(step)];
    for (const CopyTime& copy : out_[At(id)]) {
      if (copy.start_ns >= end_ns) return LastBefore(copy.end_ns);
    }
    return out_[At(id)].empty() ? step : Count() + LastBefore(out_[At(id)].front().end_ns);
  }

  int32_t StepAt(int64_t time_ns) const {
    const auto begin = timeline_.step_end_ns.begin() + static_cast<ptrdiff_t>(first_);
    const auto found = std::upper_bound(begin, timeline_.step_end_ns.end(), time_ns);
    return std::min(Count() - 1, static_cast<int32_t>(found - begin));
  }
  int32_t LastBefore(int64_t time_ns) const {
    const auto begin = timeline_.step_start_ns.begin() + static_cast<ptrdiff_t>(first_);
    const auto found = std::lower_bound(begin, timeline_.step_start_ns.end(), time_ns);
    return std::max(0, static_cast<int32_t>(found - begin) - 1);
  }

  void Mark(int32_t from, int32_t until, std::vector<uint8_t>& covered) const {
    if (until < Count()) return;  // the first cycle's starting state is unknown
    from = std::max(from, until - Count() + 1);
    for (int32_t s = from; s <= until; ++s) covered[At(s % Count())] = 1;
  }

  const IterationProfile& profile_;
  const Plan& plan_;
  const Timeline& timeline_;
  const int64_t begin_ns_;
  const size_t first_;  // the last iteration's first step in the timeline
  const Copies out_, in_;
  std::vector<std::vector<BufferEvent>> events_;  // by buffer, in step order
  std::vector<int32_t> original_;                 // step of each operation
};

// Buffers resident at the iteration's start are stacked first; the rest fills gaps.
class Placer {
 public:
  Placer(const Problem& problem, Plan& plan) : problem_(problem), plan_(plan) {}

  void AddRuns(BufferId id, const std::vector<uint8_t>& covered) {
    const auto count = static_cast<int32_t>(covered.size());
    const auto gap = std::find(covered.begin(), covered.end(), 0);
    if (gap == covered.end()) {
      plan_.placements.push_back({id, 0, count - 1, 0});
      return;
    }
    const auto start = static_cast<int32_t>(gap - covered.begin());
    for (int32_t k = 1; k <= count; ++k) {
      if (!covered[At((start + k) % count)]) continue;
      const int32_t from = (start + k) % count;
      while (k < count && covered[At((start + k + 1) % count)]) ++k;
      plan_.placements.push_back({id, from, (start + k) % count, 0});
    }
  }

  void Place(int64_t node_limit) {
    const auto count = static_cast<int64_t>(plan_.steps.size());
    std::vector<size_t> placement_of;
    int64_t stacked_bytes = 0;
    address::Problem layout;
    const auto add = [&](size_t i, int64_t lower, int64_t upper, std::optional<int64_t> fixed) {
      const BufferId id = plan_.placements[i].buffer;
      const int64_t size_bytes = FootprintOf(problem_, problem_.iteration().at(id).size_bytes);
      layout.buffers.push_back({lower, upper, size_bytes, 1, fixed});
      placement_of.push_back(i);
    };
    for (size_t i = 0; i < plan_.placements.size(); ++i) {
      const Placement& it = plan_.placements[i];
      const bool wraps = it.until_step < it.from_step;
      const bool at_begin = wraps || it.from_step == 0;
      const std::optional<int64_t> fixed = at_begin ? std::optional(stacked_bytes) : std::nullopt;
      if (at_begin)
        stacked_bytes += FootprintOf(problem_, problem_.iteration().at(it.buffer).size_bytes);
      add(i, wraps ? 0 : it.from_step, it.until_step + 1, fixed);
      if (wraps) add(i, it.from_step, count, fixed);
    }
    layout.capacity_bytes = problem_.budget_bytes;
    const address::AddressPlan found = address::PlanAddresses(layout, node_limit);
    for (size_t i = 0; i < placement_of.size(); ++i)
      plan_.placements[placement_of[i]].offset_bytes = found.layout.offsets_bytes[i];
    plan_.arena_bytes = found.layout.height_bytes;
  }

 private:
  const Problem& problem_;
  Plan& plan_;
};

}  // namespace

void PlaceBuffers(const Problem& problem, const Timeline& timeline, int64_t node_limit,
                  Plan& plan) {
  plan.placements.clear();
  plan.arena_bytes = 0;
  const size_t buffers = problem.iteration().buffers.size();
  if (static_cast<int64_t>(buffers * plan.steps.size()) > kMostWork || plan.steps.empty()) return;
  const Residences residences(problem, timeline, plan);
  Placer placer(problem, plan);
  std::vector<uint8_t> covered(plan.steps.size());
  for (size_t i = 0; i < buffers; ++i) {
    const BufferId id{static_cast<int32_t>(i)};
    residences.Cover(id, covered);
    placer.AddRuns(id, covered);
  }
  placer.Place(node_limit);
}

}  // namespace spillway::scheduler
