#include <algorithm>

#include "scheduler/plan/plan_validator.h"

namespace spillway::scheduler {
namespace {

using Offence = std::optional<PlanOffence>;

bool Covers(const Placement& it, int32_t step) {
  if (it.from_step <= it.until_step) return it.from_step <= step && step <= it.until_step;
  return step >= it.from_step || step <= it.until_step;
}

class PlacementCheck {
 public:
  PlacementCheck(const Problem& problem, const Plan& plan, const Timeline& timeline)
      : profile_(problem.iteration()), plan_(plan), timeline_(timeline) {}

  Offence Run() const {
    if (plan_.placements.empty()) return std::nullopt;
    for (const Placement& it : plan_.placements) {
      if (it.offset_bytes < 0 || it.offset_bytes + SizeBytes(it) > plan_.arena_bytes)
        return Blame(PlanFault::kOutsideTheArena, it.from_step, it.buffer,
                     "lies outside the arena");
    }
    for (size_t i = 0; i < plan_.steps.size(); ++i) {
      const auto step = static_cast<int32_t>(i);
      if (Offence offence = CheckStep(step)) return offence;
      if (Offence offence = CheckPairs(step)) return offence;
    }
    return CheckCopies();
  }

 private:
  int64_t SizeBytes(const Placement& it) const { return profile_.at(it.buffer).size_bytes; }

  Offence Blame(PlanFault fault, int32_t step, BufferId id, const char* what) const {
    return PlanOffence{fault, step, id, 0, "buffer '" + profile_.at(id).name + "' " + what};
  }

  bool IsPlaced(BufferId id, int32_t step) const {
    return std::any_of(plan_.placements.begin(), plan_.placements.end(),
                       [&](const Placement& it) { return it.buffer == id && Covers(it, step); });
  }

  Offence CheckStep(int32_t step) const {
    const Operation& operation = profile_.at(plan_.steps[static_cast<size_t>(step)].operation);
    for (const auto* touched : {&operation.reads, &operation.writes}) {
      for (BufferId id : *touched) {
        if (!IsPlaced(id, step))
          return Blame(PlanFault::kNotPlaced, step, id, "is touched where it has no place");
      }
    }
    return std::nullopt;
  }

  Offence CheckPairs(int32_t step) const {
    std::vector<const Placement*> there;
    for (const Placement& it : plan_.placements) {
      if (Covers(it, step)) there.push_back(&it);
    }
    for (const Placement* one : there) {
      for (const Placement* other : there) {
        if (one == other) continue;
        if (one->offset_bytes < other->offset_bytes + SizeBytes(*other) &&
            other->offset_bytes < one->offset_bytes + SizeBytes(*one))
          return Blame(PlanFault::kPlacementsOverlap, step, one->buffer,
                       "shares its bytes with another");
      }
    }
    return std::nullopt;
  }

  // A copy occupies its buffer's bytes during every step it overlaps.
  Offence CheckCopies() const {
    const size_t first = timeline_.last_iteration_step();
    for (const auto* copies : {&timeline_.to_host, &timeline_.to_device}) {
      for (const CopyTime& copy : *copies) {
        for (size_t i = 0; i < plan_.steps.size(); ++i) {
          const bool overlaps = copy.start_ns < timeline_.step_end_ns[first + i] &&
                                timeline_.step_start_ns[first + i] < copy.end_ns;
          if (overlaps && !IsPlaced(copy.buffer, static_cast<int32_t>(i)))
            return Blame(PlanFault::kNotPlaced, static_cast<int32_t>(i), copy.buffer,
                         "is copied where it has no place");
        }
      }
    }
    return std::nullopt;
  }

  const IterationProfile& profile_;
  const Plan& plan_;
  const Timeline& timeline_;
};

}  // namespace

std::optional<PlanOffence> ValidatePlacements(const Problem& problem, const Plan& plan,
                                              const Timeline& timeline) {
  return PlacementCheck(problem, plan, timeline).Run();
}

}  // namespace spillway::scheduler
