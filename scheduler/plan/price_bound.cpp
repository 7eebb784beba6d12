#include "scheduler/plan/price_bound.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/units.h"
#include "scheduler/plan/cost_model.h"
#include "scheduler/plan/least_recompute.h"
#include "scheduler/plan/price_lives.h"
#include "scheduler/plan/price_purchase.h"

namespace spillway::scheduler {
namespace {

using prices::Gap;
using prices::kNever;
using prices::Life;
using prices::Lives;
using prices::Purchase;
using prices::Segments;

constexpr double kFirstStep = 0.1, kStepDecay = 0.05;

// Evicted after segment `left` until `back`, where the restore or rerun begins.
struct Way {
  double cost = kNever;
  int32_t left = -1, back = -1;
};

struct Ways {
  double stay = 0;
  Way swap, swap_copied, again;  // swap_copied: the host copy is already valid
};

enum class How : uint8_t { kStay, kSwap, kSwapCopied, kAgain, kDead };

// The two states after a gap: without and with a valid host copy.
struct Reached {
  How plain = How::kStay, copied = How::kStay;
  bool plain_from_copied = false, copied_from_plain = false;
  Ways ways;
};

// One direction of the link.
struct Lane {
  double rate = 0;  // bytes per ns, alone
  double both = 0;  // the fraction of it while both directions copy
  std::vector<double> price, bought_bytes, squares;
};

class Ascent {
 public:
  Ascent(const Problem& problem, const PriceSearch& search)
      : problem_(problem),
        profile_(problem.iteration()),
        segments_(static_cast<int32_t>(profile_.operations.size()),
                  prices::ChooseChecks(profile_, search.most_checks)),
        lives_(prices::MeasureLives(problem, segments_)),
        rounds_(search.rounds),
        memory_price_(At(segments_.check_count()), 0),
        memory_squares_(memory_price_),
        capacity_ns_(At(segments_.count()), 0) {
    const DeviceModel& device = problem.device;
    SetUp(out_, device.to_host_bytes_per_second, device.to_host_both_bytes_per_second);
    SetUp(in_, device.to_device_bytes_per_second, device.to_device_both_bytes_per_second);
    // While nothing runs, both directions share the wait.
    for (size_t s = 0; s < capacity_ns_.size(); s += 2) {
      capacity_ns_[s] = kNever;
      out_.price[s] = in_.price[s] = 1 / std::max(1.0, out_.both + in_.both);
    }
    for (size_t k = 0; k < profile_.operations.size(); ++k) {
      fastest_ns_.push_back(static_cast<double>(FastestWithin(
          problem, profile_.operations[k], static_cast<int64_t>(lives_.room_bytes[k]))));
      capacity_ns_[SegmentOf(k)] += fastest_ns_.back();
    }
  }

  int64_t Run() {
    double best = 0;
    for (int32_t round = 0; round < rounds_; ++round) {
      best = std::max(best, Evaluate());
      Step(kFirstStep / std::sqrt(1 + round * kStepDecay));
    }
    // Rounding errors of the sums.
    return static_cast<int64_t>(std::max(0.0, std::floor(best * (1 - 1e-9) - 8)));
  }

 private:
  void SetUp(Lane& lane, int64_t alone, int64_t both) const {
    const int64_t permille = problem_.device.link_share_permille;
    lane.rate = static_cast<double>(base::scale(alone, permille, 1000)) / 1e9;
    lane.both = static_cast<double>(base::scale(both, permille, 1000)) / 1e9 / lane.rate;
    lane.price.assign(capacity_ns_.size(), 0);
    lane.squares.assign(capacity_ns_.size(), 0);
  }

  size_t SegmentOf(size_t operation) const {
    return At(2 * segments_.GroupOf(static_cast<int32_t>(operation)) + 1);
  }
  size_t Cyclic(int32_t segment) const { return At(segment % segments_.count()); }

  double PriceOf(size_t segment) const {
    const double out = out_.price[segment], in = in_.price[segment];
    return std::max({out, in, out_.both * out + in_.both * in});
  }

  // Also computes how far they violate the constraints.
  double Evaluate() {
    excess_bytes_ = lives_.live_bytes;
    time_ns_.assign(capacity_ns_.size(), 0);
    away_bytes_.assign(capacity_ns_.size() + 1, 0);
    out_.bought_bytes.assign(capacity_ns_.size(), 0);
    in_.bought_bytes.assign(capacity_ns_.size(), 0);
    double value = 0;
    for (size_t b = 0; b < memory_price_.size(); ++b) {
      excess_bytes_[b] -= static_cast<double>(problem_.budget_bytes);
      value += memory_price_[b] / out_.rate * excess_bytes_[b];
    }
    for (size_t k = 0; k < profile_.operations.size(); ++k) value += RunOperation(k);
    for (const Life& life : lives_.lives) value += Live(life);
    double away_bytes = 0;
    for (size_t s = 0; s < capacity_ns_.size(); ++s) {
      away_bytes += away_bytes_[s];
      if (s % 2 == 1) excess_bytes_[s / 2] -= away_bytes;
    }
    return value;
  }

  // The fastest algorithm's time, plus the cheapest trade of time for a smaller workspace.
  double RunOperation(size_t k) {
    const Operation& operation = profile_.operations[k];
    const size_t segment = SegmentOf(k), next = (segment + 1) % capacity_ns_.size();
    const bool is_check = segments_.IsCheck(static_cast<int32_t>(k));
    const double memory = is_check ? memory_price_[segment / 2] / out_.rate : 0;
    double best = kNever, best_ns = 0, best_bytes = 0;
    for (const WorkspaceChoice& choice : operation.workspaces) {
      const auto bytes = static_cast<double>(FootprintOf(problem_, choice.size_bytes));
      if (bytes > lives_.room_bytes[k]) continue;
      const double extra_ns = static_cast<double>(choice.duration_ns) - fastest_ns_[k];
      const double cost = (1 - PriceOf(next)) * extra_ns + memory * bytes;
      if (cost >= best) continue;
      best = cost;
      best_ns = extra_ns;
      best_bytes = bytes;
    }
    time_ns_[segment] += fastest_ns_[k];
    time_ns_[next] += best_ns;
    if (is_check) excess_bytes_[segment / 2] += best_bytes;
    return (1 - PriceOf(segment)) * fastest_ns_[k] + (best < kNever ? best : 0);
  }

  double ChargeOf(const Life& life, const Gap& gap, int32_t s) const {
    if (s % 2 == 0 || (s == gap.first && gap.starts_in_group)) return 0;
    return memory_price_[Cyclic(s) / 2] / out_.rate * life.held_bytes;
  }
  void Offer(Purchase& purchase, const Lane& lane, int32_t s) const {
    const size_t segment = Cyclic(s);
    purchase.Offer(lane.price[segment] / lane.rate, capacity_ns_[segment] * lane.rate, segment);
  }

  // Copies out from the gap's start and back before its end. The buffer is held until it has left
  // and after it returns.
  Ways Explore(const Life& life, const Gap& gap) {
    Ways ways;
    Way left;
    best_left_.clear();
    purchase_.Restart(life.out_work);
    for (int32_t s = gap.first; s <= gap.last; ++s) {
      ways.stay += ChargeOf(life, gap, s);
      Offer(purchase_, out_, s);
      const double cost = ways.stay + purchase_.cost();
      if (cost < left.cost) left = {cost, s, -1};
      best_left_.push_back(left);
    }
    double held = 0;
    purchase_.Restart(life.in_work);
    for (int32_t s = gap.last; s >= gap.first; --s) {
      Offer(purchase_, in_, s);
      const double back = held + purchase_.cost();
      const Way& out = best_left_[At(s - gap.first)];
      if (out.cost + back < ways.swap.cost) ways.swap = {out.cost + back, out.left, s};
      if (back < ways.swap_copied.cost) ways.swap_copied = {back, gap.first - 1, s};
      // An operation reruns only within its own iteration.
      const double again = held + gap.again_ns * (1 - PriceOf(Cyclic(s)));
      if (s % 2 == 0 && s <= segments_.count() && again < ways.again.cost)
        ways.again = {again, gap.first - 1, s};
      held += ChargeOf(life, gap, s);
    }
    return ways;
  }

  // Relative to staying, with two states after each touch.
  double Live(const Life& life) {
    double plain = life.starts_copied ? kNever : 0, copied = life.starts_copied ? 0 : kNever;
    reached_.clear();
    for (const Gap& gap : life.gaps) Pass(gap, Explore(life, gap), plain, copied);
    bool on_copied = copied < plain;
    const double cost = std::min(plain, copied);
    for (size_t i = life.gaps.size(); i-- > 0;) {
      const Reached& reached = reached_[i];
      if (!on_copied && reached.plain_from_copied && reached.plain != How::kDead) on_copied = true;
      Account(life, life.gaps[i], reached, on_copied ? reached.copied : reached.plain);
      on_copied = on_copied ? !reached.copied_from_plain
                            : reached.plain == How::kDead && reached.plain_from_copied;
    }
    return cost;
  }

  void Pass(const Gap& gap, Ways ways, double& plain, double& copied) {
    Reached reached;
    reached.ways = ways;
    if (gap.dead)
      Die(ways, plain, copied, reached);
    else if (gap.new_content)
      Arrive(ways, plain, copied, reached);
    else
      Choose(gap, ways, plain, copied, reached);
    reached_.push_back(reached);
  }

  static void Die(const Ways& ways, double& plain, double& copied, Reached& reached) {
    reached.plain = How::kDead;
    reached.plain_from_copied = copied < plain;
    plain = std::min(plain, copied) - ways.stay;
    copied = kNever;
  }

  // The first gap of an input's life: it stays, or arrives with a copy.
  static void Arrive(const Ways& ways, double plain, double& copied, Reached& reached) {
    reached.copied = How::kSwapCopied;
    reached.copied_from_plain = true;
    copied = plain + ways.swap_copied.cost - ways.stay;
  }

  static void Choose(const Gap& gap, const Ways& ways, double& plain, double& copied,
                     Reached& reached) {
    double next_copied = copied;
    const auto reach = [&](double cost, How how, bool from_plain) {
      if (cost >= next_copied) return;
      next_copied = cost;
      reached.copied = how;
      reached.copied_from_plain = from_plain;
    };
    reach(copied + ways.swap_copied.cost - ways.stay, How::kSwapCopied, false);
    reach(copied + ways.again.cost - ways.stay, How::kAgain, false);
    reach(plain + ways.swap.cost - ways.stay, How::kSwap, true);
    if (ways.again.cost < ways.stay) reached.plain = How::kAgain;
    plain += std::min(0.0, ways.again.cost - ways.stay);
    copied = next_copied;
    if (!gap.write_after) return;
    reached.plain_from_copied = copied < plain;
    plain = std::min(plain, copied);
    copied = kNever;
  }

  void Account(const Life& life, const Gap& gap, const Reached& reached, How how) {
    if (how == How::kStay) return;
    if (how == How::kDead) {
      MarkAway(life, gap, {0, gap.first - 1, gap.last});
      return;
    }
    const Way& way = how == How::kSwap         ? reached.ways.swap
                     : how == How::kSwapCopied ? reached.ways.swap_copied
                                               : reached.ways.again;
    if (way.cost == kNever) return;
    MarkAway(life, gap, way);
    if (how == How::kAgain) {
      time_ns_[Cyclic(way.back)] += gap.again_ns;
      return;
    }
    if (how == How::kSwap) {
      purchase_.Restart(life.out_work);
      for (int32_t s = gap.first; s <= way.left; ++s) Offer(purchase_, out_, s);
      purchase_.AddTo(out_.bought_bytes);
    }
    purchase_.Restart(life.in_work);
    for (int32_t s = gap.last; s >= way.back; --s) Offer(purchase_, in_, s);
    purchase_.AddTo(in_.bought_bytes);
  }

  void MarkAway(const Life& life, const Gap& gap, const Way& way) {
    int32_t from = std::max(way.left + 1, gap.first + (gap.starts_in_group ? 1 : 0)),
            until = way.back;
    const int32_t count = segments_.count();
    if (until < from) return;
    if (from >= count) {
      from -= count;
      until -= count;
    }
    away_bytes_[At(from)] += life.held_bytes;
    if (until >= count) {
      away_bytes_[0] += life.held_bytes;
      until -= count;
    }
    away_bytes_[At(until) + 1] -= life.held_bytes;
  }

  static double Moved(double step, double gradient, double& squares) {
    squares += gradient * gradient;
    return squares > 0 ? step * gradient / std::sqrt(squares) : 0;
  }

  void Step(double step) {
    for (size_t b = 0; b < memory_price_.size(); ++b)
      memory_price_[b] = std::max(
          0.0, memory_price_[b] + Moved(step, excess_bytes_[b] / out_.rate, memory_squares_[b]));
    for (size_t s = 0; s < capacity_ns_.size(); ++s) {
      double &out = out_.price[s], &in = in_.price[s];
      const bool both = out_.both * out + in_.both * in >= std::max(out, in);
      const double out_ns = both ? out_.both * time_ns_[s] : out >= in ? time_ns_[s] : 0;
      const double in_ns = both ? in_.both * time_ns_[s] : out >= in ? 0 : time_ns_[s];
      out += Moved(step, out_.bought_bytes[s] / out_.rate - out_ns, out_.squares[s]);
      in += Moved(step, in_.bought_bytes[s] / in_.rate - in_ns, in_.squares[s]);
      Project(out, in);
    }
  }

  // A nanosecond is worth at most a nanosecond.
  void Project(double& out, double& in) const {
    out = std::clamp(out, 0.0, 1.0);
    in = std::clamp(in, 0.0, 1.0);
    const double over = out_.both * out + in_.both * in - 1;
    if (over <= 0) return;
    const double norm = out_.both * out_.both + in_.both * in_.both;
    out = std::max(0.0, out - over * out_.both / norm);
    in = std::max(0.0, in - over * in_.both / norm);
    const double price = std::max({1.0, out, in, out_.both * out + in_.both * in});
    out /= price;
    in /= price;
  }

  const Problem& problem_;
  const IterationProfile& profile_;
  const Segments segments_;
  const Lives lives_;
  const int32_t rounds_;
  std::vector<double> memory_price_,
      memory_squares_;               // by check, in link time per byte
  std::vector<double> capacity_ns_;  // by segment: the time available to one copy
  std::vector<double> fastest_ns_;   // by operation
  Lane out_, in_;
  std::vector<double> excess_bytes_, time_ns_, away_bytes_;
  std::vector<Way> best_left_;
  std::vector<Reached> reached_;
  Purchase purchase_;
};

}  // namespace

int64_t BoundByPrices(const Problem& problem, const PriceSearch& search) {
  return problem.iteration().operations.empty() ? 0 : Ascent(problem, search).Run();
}

}  // namespace spillway::scheduler
