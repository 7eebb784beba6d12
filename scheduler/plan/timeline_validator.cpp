#include <algorithm>
#include <map>

#include "scheduler/plan/plan_validator.h"

#include "scheduler/plan/lifetimes.h"

namespace spillway::scheduler {
namespace {

using Offence = std::optional<PlanOffence>;
__extension__ using Wide = __int128;

constexpr int64_t kNotYet = INT64_MAX;
constexpr int64_t kRoundingNs = 2;

struct Place {
  bool on_device = false;
  bool host_equal = false;     // the host copy equals the device's latest content
  int64_t usable_from_ns = 0;  // on the device: when its copy back ended
  int64_t left_at_ns = 0;      // on the host: when its copy out ended
};

class Reading {
 public:
  Reading(const Problem& problem, const Plan& plan, const Timeline& timeline)
      : problem_(problem),
        profile_(problem.iteration()),
        plan_(plan),
        timeline_(timeline),
        places_(profile_.buffers.size()),
        lives_(profile_) {}

  Offence Run() {
    if (Offence offence = CheckSteps()) return offence;
    for (const auto* copies : {&timeline_.to_host, &timeline_.to_device}) {
      if (Offence offence = CheckOneByOne(*copies)) return offence;
    }
    for (const auto* copies : {&timeline_.to_host, &timeline_.to_device}) {
      if (Offence offence = CheckRates(*copies)) return offence;
    }
    Start();
    const size_t iterations = timeline_.iteration_start_ns.size();
    for (size_t i = 0; i < iterations; ++i) {
      OverwriteInputs();
      size_t action = 0;
      for (size_t step = 0; step < plan_.steps.size(); ++step) {
        if (Offence offence =
                ReadStep(i * plan_.steps.size() + step, static_cast<int32_t>(step), action))
          return offence;
      }
    }
    if (next_out_ < timeline_.to_host.size())
      return MakeOffence(PlanFault::kCopyUnplanned, -1, timeline_.to_host[next_out_].buffer,
                         "more offloads than planned");
    if (next_in_ < timeline_.to_device.size())
      return MakeOffence(PlanFault::kCopyUnplanned, -1, timeline_.to_device[next_in_].buffer,
                         "more prefetches than planned");
    if (Offence offence = CheckHost()) return offence;
    return CheckBudget();
  }

 private:
  static Offence MakeOffence(PlanFault fault, int32_t step, BufferId buffer, std::string what) {
    return PlanOffence{fault, step, buffer, 0, std::move(what)};
  }
  const std::string& name(BufferId id) const { return profile_.at(id).name; }
  Place& place(BufferId id) { return places_[static_cast<size_t>(id.index)]; }

  int64_t footprint(int64_t size_bytes) const {
    const bool small = size_bytes < problem_.min_movable_bytes;
    const int64_t unit =
        std::max<int64_t>(1, small ? problem_.device.slab_unit_bytes : problem_.device.chunk_bytes);
    return (size_bytes + unit - 1) / unit * unit;
  }

  const WorkspaceChoice* workspace(const Step& step) const {
    const Operation& operation = profile_.at(step.operation);
    return operation.workspaces.empty()
               ? nullptr
               : &operation.workspaces[static_cast<size_t>(step.workspace)];
  }

  Offence CheckSteps() const {
    const size_t count = plan_.steps.size() * timeline_.iteration_start_ns.size();
    if (count == 0 || timeline_.step_start_ns.size() != count ||
        timeline_.step_end_ns.size() != count)
      return MakeOffence(PlanFault::kTimelineShape, -1, {},
                         "the timeline does not have the plan's steps");
    for (size_t i = 0; i < count; ++i) {
      const auto at = static_cast<int32_t>(i % plan_.steps.size());
      const Step& step = plan_.steps[i % plan_.steps.size()];
      const int64_t needed_ns =
          workspace(step) ? workspace(step)->duration_ns : profile_.at(step.operation).duration_ns;
      if (timeline_.step_end_ns[i] - timeline_.step_start_ns[i] < needed_ns)
        return MakeOffence(PlanFault::kStepTooShort, at, {},
                           "a step ends before its operation can have ended");
      if (timeline_.step_start_ns[i] < (i == 0 ? 0 : timeline_.step_end_ns[i - 1]))
        return MakeOffence(PlanFault::kStepsOverlap, at, {},
                           "a step starts before the one before it has ended");
    }
    return std::nullopt;
  }

  static Offence CheckOneByOne(const std::vector<CopyTime>& copies) {
    for (size_t i = 0; i < copies.size(); ++i) {
      const bool overlaps = i > 0 && copies[i].start_ns < copies[i - 1].end_ns;
      if (overlaps || copies[i].end_ns < copies[i].start_ns)
        return MakeOffence(PlanFault::kCopiesOverlap, -1, copies[i].buffer,
                           "two copies run at once on one engine");
    }
    return std::nullopt;
  }

  // Of copies one by one, so that both engines are read side by side.
  Offence CheckRates(const std::vector<CopyTime>& copies) const {
    const bool out = &copies == &timeline_.to_host;
    const std::vector<CopyTime>& opposite = out ? timeline_.to_device : timeline_.to_host;
    const DeviceModel& device = problem_.device;
    const int64_t alone = out ? device.to_host_bytes_per_second : device.to_device_bytes_per_second;
    const int64_t both =
        out ? device.to_host_both_bytes_per_second : device.to_device_both_bytes_per_second;
    size_t first = 0;  // of the opposite copies that end later
    for (const CopyTime& copy : copies) {
      // The timeline lacks unfinished copies the other way; this only weakens the check.
      while (first < opposite.size() && opposite[first].end_ns <= copy.start_ns) ++first;
      int64_t shared_ns = 0;
      for (size_t i = first; i < opposite.size() && opposite[i].start_ns < copy.end_ns; ++i)
        shared_ns += std::max<int64_t>(0, std::min(copy.end_ns, opposite[i].end_ns) -
                                              std::max(copy.start_ns, opposite[i].start_ns));
      const int64_t whole_ns = copy.end_ns - copy.start_ns - device.copy_latency_ns + kRoundingNs;
      const int64_t both_ns =
          std::max<int64_t>(0, std::min(whole_ns, shared_ns - device.copy_latency_ns));
      const Wide possible =
          (Wide{alone} * (whole_ns - both_ns) + Wide{both} * both_ns) * device.link_share_permille;
      if (whole_ns < 0 ||
          Wide{profile_.at(copy.buffer).size_bytes} * 1'000'000'000 * 1000 > possible)
        return MakeOffence(PlanFault::kCopyTooFast, -1, copy.buffer,
                           "'" + name(copy.buffer) + "' is copied faster than the link");
    }
    return std::nullopt;
  }

  void Start() {
    for (size_t i = 0; i < places_.size(); ++i) places_[i].on_device = IsPersistent(i);
    size_t next = 0;
    for (size_t i = 0; i < plan_.steps.size(); ++i) {
      for (BufferId id : profile_.at(plan_.steps[i].operation).writes) {
        if (IsPersistent(At(id)))
          place(id) = {.on_device = true,
                       .host_equal = plan_.steps[i].recomputes && place(id).host_equal};
      }
      for (; next < plan_.actions.size() && plan_.actions[next].step == static_cast<int32_t>(i);
           ++next)
        LeaveAtEnd(plan_.actions[next]);
    }
    for (size_t i = 0; i < places_.size(); ++i) {
      if (places_[i].on_device) Take({static_cast<int32_t>(i)}, INT64_MIN);
    }
  }

  bool IsPersistent(size_t buffer) const { return profile_.buffers[buffer].persistent; }

  void LeaveAtEnd(const Action& action) {
    if (!IsPersistent(At(action.buffer))) return;
    Place& it = place(action.buffer);
    it = {.on_device = action.kind == ActionKind::kPrefetch,
          .host_equal = it.host_equal || action.kind == ActionKind::kOffload};
  }

  void OverwriteInputs() {
    for (size_t i = 0; i < places_.size(); ++i) {
      if (profile_.buffers[i].kind == BufferKind::kInput && places_[i].on_device)
        places_[i].host_equal = false;
    }
  }

  // Its memory is taken when the calls begin.
  int64_t MapNs(BufferId id) const {
    if (profile_.at(id).size_bytes < problem_.min_movable_bytes) return 0;
    return problem_.device.mapping.MapNs(footprint(profile_.at(id).size_bytes));
  }

  void TakeMapped(BufferId id, int64_t usable_ns) {
    const int64_t map_ns = MapNs(id);
    if (map_ns > 0) host_calls_.emplace_back(usable_ns, map_ns);
    Take(id, usable_ns - map_ns);
  }

  // One call at a time, none before the first iteration.
  Offence CheckHost() {
    std::sort(host_calls_.begin(), host_calls_.end());
    int64_t busy_ns = 0;
    for (const auto& [usable_ns, map_ns] : host_calls_) {
      busy_ns += map_ns;
      if (busy_ns > usable_ns)
        return MakeOffence(
            PlanFault::kMapsTooFast, -1, {},
            "memory is used at " + std::to_string(usable_ns) + " ns that cannot be mapped by then");
    }
    return std::nullopt;
  }

  void Take(BufferId id, int64_t at_ns) {
    change_[at_ns].taken += footprint(profile_.at(id).size_bytes);
  }
  void Give(BufferId id, int64_t at_ns) {
    change_[at_ns].given += footprint(profile_.at(id).size_bytes);
  }

  Offence ReadStep(size_t entry, int32_t at, size_t& action) {
    const Step& step = plan_.steps[static_cast<size_t>(at)];
    const int64_t reached_ns = entry == 0 ? 0 : timeline_.step_end_ns[entry - 1];
    const int64_t start_ns = timeline_.step_start_ns[entry], end_ns = timeline_.step_end_ns[entry];
    size_t after = action;
    while (after < plan_.actions.size() && plan_.actions[after].step == at) ++after;
    for (size_t i = action; i < after; ++i) {
      if (plan_.actions[i].kind != ActionKind::kPrefetch) continue;
      if (Offence offence = ReadPrefetch(plan_.actions[i], reached_ns)) return offence;
    }
    if (Offence offence = ReadTouches(at, step, start_ns)) return offence;
    if (const WorkspaceChoice* choice = workspace(step)) {
      change_[start_ns].taken += footprint(choice->size_bytes);
      change_[end_ns].given += footprint(choice->size_bytes);
    }
    if (!step.recomputes) ReadDeaths(step.operation, end_ns);
    for (; action < after; ++action) {
      if (plan_.actions[action].kind == ActionKind::kPrefetch) continue;
      if (Offence offence = ReadLeave(plan_.actions[action], end_ns)) return offence;
    }
    return std::nullopt;
  }

  Offence ReadPrefetch(const Action& action, int64_t reached_ns) {
    Place& it = place(action.buffer);
    if (it.on_device) return std::nullopt;
    it.on_device = true;
    it.usable_from_ns = kNotYet;
    if (next_in_ == timeline_.to_device.size())
      // Unfinished when the timeline ended.
      return std::nullopt;
    const CopyTime& copy = timeline_.to_device[next_in_];
    if (copy.buffer != action.buffer)
      return MakeOffence(PlanFault::kCopyUnplanned, action.step, copy.buffer,
                         "prefetches run in another order than planned");
    ++next_in_;
    if (copy.start_ns < reached_ns || copy.start_ns < it.left_at_ns)
      return MakeOffence(
          PlanFault::kCopyTooEarly, action.step, action.buffer,
          "'" + name(action.buffer) + "' is prefetched before its trigger or before it has left");
    it.usable_from_ns = copy.end_ns;
    TakeMapped(action.buffer, copy.start_ns);
    return std::nullopt;
  }

  Offence ReadLeave(const Action& action, int64_t end_ns) {
    Place& it = place(action.buffer);
    it.on_device = false;
    it.left_at_ns = end_ns;
    if (action.kind == ActionKind::kDrop || it.host_equal) {
      Give(action.buffer, end_ns);
      return std::nullopt;
    }
    it.host_equal = true;
    it.left_at_ns = kNotYet;
    if (next_out_ == timeline_.to_host.size()) return std::nullopt;
    const CopyTime& copy = timeline_.to_host[next_out_];
    if (copy.buffer != action.buffer)
      return MakeOffence(PlanFault::kCopyUnplanned, action.step, copy.buffer,
                         "offloads run in another order than planned");
    ++next_out_;
    if (copy.start_ns < end_ns)
      return MakeOffence(PlanFault::kCopyTooEarly, action.step, action.buffer,
                         "'" + name(action.buffer) + "' is offloaded before its step has ended");
    it.left_at_ns = copy.end_ns;
    Give(action.buffer, copy.end_ns);
    return std::nullopt;
  }

  Offence ReadTouches(int32_t at, const Step& step, int64_t start_ns) {
    const Operation& operation = profile_.at(step.operation);
    const auto away = [&](BufferId id) {
      return MakeOffence(PlanFault::kTouchesNonResident, at, id,
                         "operation '" + operation.name + "' runs while '" + name(id) +
                             "' is away or being copied");
    };
    for (BufferId id : operation.reads) {
      if (!place(id).on_device || place(id).usable_from_ns > start_ns) return away(id);
    }
    for (BufferId id : operation.writes) {
      Place& it = place(id);
      if (it.on_device ? it.usable_from_ns > start_ns : it.left_at_ns > start_ns) return away(id);
      Bring(id, start_ns);
      if (!step.recomputes) it.host_equal = false;
    }
    if (step.recomputes) return std::nullopt;
    for (BufferId id : lives_.born_at[static_cast<size_t>(step.operation.index)])
      Bring(id, start_ns);
    return std::nullopt;
  }

  void Bring(BufferId id, int64_t start_ns) {
    if (place(id).on_device) return;
    place(id).on_device = true;
    place(id).usable_from_ns = start_ns;
    const bool is_new = !place(id).host_equal;
    is_new&& ReusesDeadMemory(id) ? Take(id, start_ns) : TakeMapped(id, start_ns);
  }

  bool ReusesDeadMemory(BufferId id) {
    int32_t& dead = dead_[footprint(profile_.at(id).size_bytes)];
    return dead > 0 && dead-- > 0;
  }

  void ReadDeaths(OperationId operation, int64_t end_ns) {
    for (BufferId id : lives_.dies_at[static_cast<size_t>(operation.index)]) {
      Place& it = place(id);
      if (it.on_device && it.usable_from_ns != kNotYet) {
        Give(id, std::max(end_ns, it.usable_from_ns));
        ++dead_[footprint(profile_.at(id).size_bytes)];
      }
      it = {};
    }
  }

  Offence CheckBudget() const {
    int64_t used_bytes = 0;
    for (const auto& [time_ns, change] : change_) {
      used_bytes += change.taken - change.given;
      if (used_bytes <= problem_.budget_bytes) continue;
      PlanOffence over{PlanFault::kOverBudget, -1, {}, used_bytes, ""};
      over.what = std::to_string(used_bytes) + " bytes are in use at " + std::to_string(time_ns) +
                  " ns, of " + std::to_string(problem_.budget_bytes);
      return over;
    }
    return std::nullopt;
  }

  struct Change {
    int64_t taken = 0;
    int64_t given = 0;
  };

  const Problem& problem_;
  const IterationProfile& profile_;
  const Plan& plan_;
  const Timeline& timeline_;
  std::vector<Place> places_;
  const Lifetimes lives_;
  std::vector<std::pair<int64_t, int64_t>> host_calls_;  // (deadline, duration) of each call
  std::map<int64_t, int32_t> dead_;                      // dead buffers still mapped
  // Changes of bytes in use, by time. Bytes freed at a time can be taken at that time.
  std::map<int64_t, Change> change_;
  size_t next_out_ = 0, next_in_ = 0;
};

}  // namespace

std::optional<PlanOffence> ValidateTimeline(const Problem& problem, const Plan& plan,
                                            const Timeline& timeline) {
  return Reading(problem, plan, timeline).Run();
}

}  // namespace spillway::scheduler
