#include "scheduler/plan/strategies/annealing.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "scheduler/plan/strategies/relief.h"

namespace spillway::scheduler {
namespace {

constexpr double kFirstTemperature = 0.004, kLastTemperature = 0.0001;  // of the iteration's time
constexpr int32_t kLongestShift = 12;  // operations by which a prefetch's trigger moves
constexpr uint64_t kRefitPercent = 30, kRetimePercent = 10;  // of attempts

class Annealing {
 public:
  Annealing(Workbench& bench, Priced start, int64_t evaluations, Refits refits, base::Prng& random)
      : bench_(bench),
        best_(std::move(start)),
        now_(best_),
        evaluations_(evaluations),
        refits_(refits),
        random_(random) {
    for (size_t i = 0; i < bench.profile().operations.size(); ++i) {
      if (bench.profile().operations[i].workspaces.size() > 1)
        choosing_.push_back(static_cast<int32_t>(i));
    }
  }

  Priced Run() {
    if (bench_.interval_count() == 0) return std::move(best_);
    const auto start_ns = static_cast<double>(now_.prediction.iteration_ns);
    for (int64_t i = 0; i < evaluations_ && best_.prediction.iteration_ns > bench_.fastest_ns();
         ++i) {
      if (bench_.is_spent()) break;
      const double done = static_cast<double>(i) / static_cast<double>(evaluations_);
      Attempt(start_ns * kFirstTemperature * std::pow(kLastTemperature / kFirstTemperature, done));
    }
    return std::move(best_);
  }

 private:
  void Attempt(double temperature_ns) {
    Priced next{now_.choices, {}};
    for (uint64_t changes = 1 + random_.Below(3); changes > 0; --changes) Change(next.choices);
    if (refits_ == Refits::kYes) Refit(next.choices);
    if (next.choices == now_.choices) return;
    next.prediction = bench_.Price(bench_.Lower(next.choices));
    if (!next.prediction.runs() || !Accepts(next.prediction, temperature_ns)) return;
    if (RunsBetter(next.prediction, best_.prediction)) best_ = next;
    now_ = std::move(next);
  }

  // A buffer that stays may take the memory of many algorithms.
  void Refit(Choices& choices) {
    if (random_.Below(100) < kRefitPercent) choices.workspaces = WorkspacesThatFit(bench_, choices);
    if (random_.Below(100) < kRetimePercent) SetTriggers(bench_, choices);
  }

  bool Accepts(const Prediction& prediction, double temperature_ns) {
    const auto loss_ns =
        static_cast<double>(prediction.iteration_ns - now_.prediction.iteration_ns);
    if (loss_ns <= 0) return true;
    return std::exp(-loss_ns / temperature_ns) * 4294967296.0 >
           static_cast<double>(random_.Below(uint64_t{1} << 32));
  }

  void Change(Choices& choices) {
    const uint64_t kind = random_.Below(10);
    if (kind < 3 && !choosing_.empty()) {
      ChangeWorkspace(choices);
    } else {
      Decision& decision = choices.decisions[random_.Below(choices.decisions.size())];
      if (kind < 6 && decision.treatment == Treatment::kSwap && decision.prefetch_at.index >= 0)
        ShiftTrigger(decision);
      else
        ChangeTreatment(decision);
    }
  }

  void ChangeWorkspace(Choices& choices) {
    const auto operation = static_cast<size_t>(choosing_[random_.Below(choosing_.size())]);
    choices.workspaces[operation] = static_cast<int32_t>(
        random_.Below(bench_.profile().operations[operation].workspaces.size()));
  }

  void ShiftTrigger(Decision& decision) {
    const IdleInterval& interval = bench_.interval(decision.interval);
    const int32_t count = bench_.timetable().operation_count();
    const int32_t end = bench_.timetable().EndOf(interval);
    int32_t at = decision.prefetch_at.index;
    if (interval.wraps && at <= interval.from.index) at += count;
    const auto shift = static_cast<int32_t>(1 + random_.Below(kLongestShift));
    at += random_.Below(2) == 0 ? shift : -shift;
    decision.prefetch_at.index = std::clamp(at, Timetable::BeginOf(interval), end) % count;
  }

  void ChangeTreatment(Decision& decision) {
    const IdleInterval& interval = bench_.interval(decision.interval);
    const bool can_repeat = bench_.ChainNs(decision.interval) >= 0;
    decision.reason = Reason::kImprovement;
    decision.prefetch_at = {};
    decision.keep_when_rebuilt = random_.Below(4) != 0;
    const uint64_t kind = random_.Below(can_repeat ? 3 : 2);
    decision.treatment = kind == 0   ? Treatment::kStay
                         : kind == 1 ? Treatment::kSwap
                                     : Treatment::kRecompute;
    if (decision.treatment != Treatment::kSwap || interval.content_dead) return;
    // The timetable is at least as slow as the chosen algorithms.
    const Timetable& timetable = bench_.timetable();
    const int32_t end = timetable.EndOf(interval);
    const int64_t start_ns = timetable.start_ns(end) - timetable.to_device_ns(interval.buffer);
    const int32_t trigger = timetable.FirstEndingAfter(std::max<int64_t>(0, start_ns));
    decision.prefetch_at.index =
        std::clamp(trigger, Timetable::BeginOf(interval), end) % timetable.operation_count();
  }

  Workbench& bench_;
  Priced best_, now_;
  const int64_t evaluations_;
  const Refits refits_;
  base::Prng& random_;
  std::vector<int32_t> choosing_;  // operations with more than one algorithm
};

}  // namespace

Priced Anneal(Workbench& bench, Priced start, int64_t evaluations, Refits refits,
              base::Prng& random) {
  return Annealing(bench, std::move(start), evaluations, refits, random).Run();
}

}  // namespace spillway::scheduler
