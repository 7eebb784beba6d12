#include "agent/turns/turns.h"

#include <algorithm>
#include <iterator>
#include <tuple>

#include "agent/arbiter/amounts.h"
#include "base/units.h"

namespace spillway::agent {

namespace {

constexpr int64_t kSecondNs = 1'000'000'000;
constexpr int64_t kAssumedLink = 16'000'000'000;  // bytes per second
constexpr int64_t kLookNs = 50'000'000;
// An idle job still counts so long, and longer where turns have begun.
constexpr int64_t kRecentNs = 10 * kSecondNs, kRecentInTurnsNs = 60 * kSecondNs;
constexpr int64_t kWindowNs = kSecondNs, kNoNewsNs = 60 * kSecondNs;
constexpr int64_t kLeastStarvingNs = 30 * kSecondNs;
constexpr int64_t kMostWeight = 8;
// A job with so much time of turns behind it is on the next level.
constexpr std::array<int64_t, Turns::kLevels - 1> kLevelNs = {8 * kSecondNs, 24 * kSecondNs,
                                                              56 * kSecondNs, 120 * kSecondNs};

const TurnPart* PartOn(const TurnJob& job, DeviceId device) {
  for (const TurnPart& part : job.parts) {
    if (part.device == device) return &part;
  }
  return nullptr;
}

int64_t NeedOf(const TurnPart& part, const TurnDevice& device) {
  return part.is_need_known ? part.need_bytes : std::max(part.need_bytes, device.memory_bytes);
}

// Its memory comes, and as much of others' leaves at the same time.
int64_t SwapNsOf(const TurnPart& part, const TurnDevice& device) {
  const int64_t rate =
      device.link_bytes_per_second > 0 ? device.link_bytes_per_second : kAssumedLink;
  return base::scale(2 * std::min(part.need_bytes, device.memory_bytes), kSecondNs, rate);
}

// The time between two readings, of the device's clock, that they tell of.
int64_t ToldNs(const TimeLoss& now, const TimeLoss& before) {
  return std::max(now.waited_of_ns - before.waited_of_ns, now.steps_of_ns - before.steps_of_ns);
}

void Follow(int64_t& mean, int64_t last) { mean = (mean + last) / 2; }

int64_t Permille(int64_t part_ns, int64_t of_ns) {
  return of_ns <= 0 ? 0 : base::scale(1000, std::clamp<int64_t>(part_ns, 0, of_ns), of_ns);
}

bool IsTaker(const TurnPart& part) { return part.may_take && part.choice != TurnsChoice::kNever; }

}  // namespace

const char* TextOf(TurnReason reason) {
  constexpr const char* texts[] = {
      "all jobs fit together",
      "turns are forbidden by the operator's settings",
      "too little time is lost to movement",
      "its library is older, or it has a guarantee",
      "the operator's settings ask for turns",
      "a job's pointers are opaque",
      "more time is lost to movement than turns cost",
      "it was its turn",
      "no other job wants the memory",
      "it had waited for too long",
      "it is another job's turn",
      "its turn is over",
      "a job of higher priority, or a lower level, wants the device",
      "it did nothing",
      "its process is stopped, or its agent session is lost",
      "it made no progress in its turn",
      "another of its devices is not free yet",
  };
  static_assert(std::size(texts) == static_cast<size_t>(TurnReason::kOtherDevice) + 1);
  return texts[static_cast<size_t>(reason)];
}

TurnView Turns::ViewOf(JobId job, DeviceId device) const {
  const auto found = views_.find({job, device});
  return found == views_.end() ? TurnView{} : found->second;
}

DeviceTurnView Turns::ViewOf(DeviceId device) const {
  const auto found = devices_.find(device);
  if (found == devices_.end()) return {};
  const Device& known = found->second;
  return {.is_on = known.is_on,
          .is_cheap = known.cheap_ns >= 0 && last_ns_ - known.cheap_ns >= kMovesNs,
          .reason = known.reason,
          .since_ns = known.since_ns,
          .next = known.next,
          .lost_permille = known.lost_permille,
          .turns_permille = known.turns_permille};
}

int64_t Turns::starving_ns() const { return std::max(kLeastStarvingNs, 4 * longest_turn_ns_); }

int Turns::LevelOf(const Entry& entry) const {
  return static_cast<int>(std::count_if(kLevelNs.begin(), kLevelNs.end(),
                                        [&](int64_t ns) { return entry.used_ns >= ns; }));
}

bool Turns::Learns(const TurnPart& part, int64_t now_ns, const Rate& rate) {
  return rate.learns_from_ns && part.loss.waited_of_ns - *rate.learns_from_ns < kLearningNs &&
         now_ns - rate.learns_since_ns < kMostLearningNs;
}

bool Turns::IsSilent(const TurnJob& job, int64_t now_ns) const {
  return now_ns - job.heard_ns > std::max(rules_.silent_ns, job.silent_ns);
}

// Windows are of the device's clock. A job that tells of no such time for long loses nothing.
void Turns::Measure(const TurnPart& part, int64_t now_ns, Rate& rate) {
  if (!part.is_learning) rate.learns_from_ns.reset();
  if (part.is_learning && !rate.learns_from_ns) {
    rate.learns_from_ns = part.loss.waited_of_ns;
    rate.learns_since_ns = now_ns;
  }
  if (rate.calls.at_ns == 0 || Learns(part, now_ns, rate))
    rate = {.calls = {part.loss, now_ns},
            .steps = {part.loss, now_ns},
            .learns_from_ns = rate.learns_from_ns,
            .learns_since_ns = rate.learns_since_ns};
  MeasureCalls(part.loss, now_ns, rate);
  MeasureSteps(part.loss, now_ns, rate);
}

void Turns::MeasureCalls(const TimeLoss& now, int64_t now_ns, Rate& rate) {
  const TimeLoss& before = rate.calls.loss;
  const bool is_told = ToldNs(now, before) >= kWindowNs;
  if (!is_told && now_ns - rate.calls.at_ns < kNoNewsNs) return;
  const int64_t calls_permille =
      Permille(now.waited_ns - before.waited_ns, now.waited_of_ns - before.waited_of_ns);
  Follow(rate.calls_permille, is_told ? calls_permille : 0);
  rate.is_known = true;
  rate.calls = {now, now_ns};
}

// Plans tell at an iteration's end only, which may be seconds after the last one.
void Turns::MeasureSteps(const TimeLoss& now, int64_t now_ns, Rate& rate) {
  const TimeLoss& before = rate.steps.loss;
  const int64_t steps_ns = now.steps_of_ns - before.steps_of_ns;
  const bool is_told = steps_ns >= kWindowNs;
  if (!is_told && now_ns - rate.steps.at_ns < kNoNewsNs) return;
  rate.follows_plan = is_told;
  const int64_t of_ns = is_told ? steps_ns : 0;
  const int64_t repeats_permille =
      Permille(now.steps_repeated_ns - before.steps_repeated_ns, of_ns);
  const int64_t lost_permille = Permille(now.steps_lost_ns - before.steps_lost_ns, of_ns);
  Follow(rate.repeats_permille, repeats_permille);
  Follow(rate.stalls_permille, std::max<int64_t>(lost_permille - repeats_permille, 0));
  rate.steps = {now, now_ns};
}

int64_t Turns::PermilleOfTurns(const TurnPart& part, const TurnDevice& device) const {
  const int64_t swap_ns = SwapNsOf(part, device);
  return base::scale(500, swap_ns,
                     swap_ns + std::max(rules_.quantum_ns, rules_.cost_factor * swap_ns));
}

void Turns::Meet(std::span<const TurnJob> jobs, int64_t now_ns) {
  std::set<JobId> present;
  const int64_t passed_ns = last_ns_ == 0 ? 0 : std::max<int64_t>(now_ns - last_ns_, 0);
  for (const TurnJob& job : jobs) {
    present.insert(job.id);
    const bool is_new = entries_.find(job.id) == entries_.end();
    Entry& entry = entries_[job.id];
    if (is_new) entry.since_ns = entry.waiting_ns = entry.progress_ns = now_ns;
    if ((job.active && !IsSilent(job, now_ns)) || is_new) entry.active_ns = now_ns;
    if (job.operations != entry.operations || !entry.runs || !job.active)
      entry.progress_ns = now_ns;
    entry.operations = job.operations;
    if (entry.runs && entry.takes && job.active) entry.used_ns += passed_ns;
    if (!job.active) entry.used_ns = std::max<int64_t>(entry.used_ns - passed_ns, 0);
    for (const TurnPart& part : job.parts) Measure(part, now_ns, entry.rates[part.device]);
  }
  std::erase_if(entries_, [&](const auto& one) { return present.count(one.first) == 0; });
  last_ns_ = now_ns;
}

// What the takers of a device lose of its time. Note [Turns or shares]
class Turns::LostTogether {
 public:
  void Add(const Rate& rate) {
    repeats_permille_ += rate.repeats_permille;
    waits_.Add(std::max(rate.calls_permille, rate.stalls_permille));
    stalls_.Add(rate.follows_plan ? rate.stalls_permille : rate.calls_permille);
    is_known_ = is_known_ && rate.is_known;
  }
  bool is_known() const { return is_known_; }
  int64_t PermilleOf(std::optional<int64_t> idle_permille) const {
    const int64_t idle_for_memory_permille = idle_permille ? std::min(*idle_permille, waits_.second)
                                                           : stalls_.first * stalls_.second / 1000;
    return std::min<int64_t>(repeats_permille_ + idle_for_memory_permille, 1000);
  }

 private:
  struct TwoLargest {
    int64_t first = 0, second = 0;
    void Add(int64_t permille) {
      second = std::max(second, std::min(first, permille));
      first = std::max(first, permille);
    }
  };

  bool is_known_ = true;
  int64_t repeats_permille_ = 0;
  TwoLargest waits_, stalls_;
};

// Note [Turns or shares]
void Turns::Choose(DeviceId id, const TurnDevice& facts, std::span<const TurnJob> jobs,
                   int64_t now_ns) {
  Device& device = devices_[id];
  int64_t needed = 0, free_bytes = facts.memory_bytes;
  int64_t turns_permille = 0;  // of all takers together
  LostTogether lost;
  int takers = 0, all = 0, forbidden = 0;
  bool is_asked = false, parks = false, learns = false;
  for (const TurnJob& job : jobs) {
    const TurnPart* const part = PartOn(job, id);
    if (part == nullptr) continue;
    const Entry& entry = entries_.at(job.id);
    ++all;
    if (!IsTaker(*part)) {
      forbidden += part->choice == TurnsChoice::kNever;
      free_bytes -= part->budgeted_bytes;
      continue;
    }
    if (now_ns - entry.active_ns > (device.is_on ? kRecentInTurnsNs : kRecentNs)) continue;
    if (!part->is_need_known && !device.is_on) continue;
    ++takers;
    AddTo(needed, NeedOf(*part, facts));
    is_asked = is_asked || part->choice == TurnsChoice::kAlways;
    parks = parks || part->parks;
    const Rate& rate = entry.rates.at(id);
    learns = learns || Learns(*part, now_ns, rate);
    lost.Add(rate);
    turns_permille += PermilleOfTurns(*part, facts);
  }
  const int64_t most_bytes = device.is_on ? free_bytes - free_bytes / 16 : free_bytes;
  const bool fits = takers < 2 || needed <= most_bytes;
  const int64_t lost_permille = lost.PermilleOf(facts.idle_permille);
  turns_permille /= std::max(takers, 1);
  const bool moves = !learns && lost_permille >= std::max(kLeastLostPermille, turns_permille);
  const bool wants = !fits && (device.is_on || is_asked || parks || moves);
  const TurnReason why = fits && takers >= 2     ? TurnReason::kFits
                         : fits && forbidden > 0 ? TurnReason::kForbidden
                         : fits && all > takers  ? TurnReason::kCannot
                         : fits                  ? TurnReason::kFits
                         : is_asked              ? TurnReason::kAsked
                         : parks                 ? TurnReason::kParks
                         : moves                 ? TurnReason::kMoves
                                                 : TurnReason::kCheap;
  device.is_tight = !fits;
  if (!device.is_on) device.lost_permille = lost_permille;
  device.turns_permille = turns_permille;
  if (wants == device.is_on) {
    device.changing_ns = -1;
    if (device.is_on) return;
    device.reason = why;
    const bool is_cheap = why == TurnReason::kCheap && !learns && lost.is_known();
    device.cheap_ns = !is_cheap ? -1 : device.cheap_ns < 0 ? now_ns : device.cheap_ns;
    return;
  }
  device.cheap_ns = -1;
  if (device.changing_ns < 0) device.changing_ns = now_ns;
  const bool is_settled =
      now_ns - device.changing_ns >= (wants && why == TurnReason::kMoves ? kMovesNs : kSettleNs);
  if (!is_settled && !(wants && (is_asked || parks)) && takers >= 2) return;
  device.is_on = wants;
  device.reason = why;
  device.since_ns = now_ns;
  device.changing_ns = -1;
  device.next = {};
}

// One division of the turns. Note [Order of turns]
class Turns::Round {
 public:
  Round(Turns& turns, std::span<const TurnDevice> devices, std::span<const TurnJob> jobs,
        int64_t now_ns)
      : turns_(turns), devices_(devices), jobs_(jobs), now_ns_(now_ns) {}

  void Run() {
    FindTakers();
    EndTurns();
    Preempt();
    KeepTurns();
    GiveTurns();
    for (const Taker& taker : takers_) NoteWait(taker);
  }

 private:
  struct Taker {
    const TurnJob* job;
    Entry* entry;
    std::vector<const TurnPart*> parts;  // on devices in turns
    bool wants;
    TurnReason lost = TurnReason::kAnothers;  // why it does not run
    bool is_blocked = false;                  // one of its devices was free
  };

  void FindTakers() {
    int64_t least_weight = INT64_MAX;
    for (const TurnJob& job : jobs_) {
      Taker taker{&job, &turns_.entries_.at(job.id), {}, job.active};
      for (const TurnPart& part : job.parts) {
        if (IsTaker(part) && turns_.IsOn(part.device)) taker.parts.push_back(&part);
      }
      if (std::exchange(taker.entry->takes, !taker.parts.empty()) == false) Enter(*taker.entry);
      if (taker.parts.empty()) continue;
      least_weight = std::min<int64_t>(least_weight, job.weight);
      takers_.push_back(taker);
    }
    turns_.longest_turn_ns_ = 0;
    for (Taker& taker : takers_) {
      taker.entry->swap_ns = SwapNs(taker);
      const int64_t weight = std::min(taker.job->weight / least_weight, kMostWeight);
      taker.entry->length_ns = taker.entry->swap_ns +
                               weight * std::max(turns_.rules_.quantum_ns,
                                                 turns_.rules_.cost_factor * taker.entry->swap_ns);
      turns_.longest_turn_ns_ = std::max(turns_.longest_turn_ns_, taker.entry->length_ns);
      for (const TurnPart* part : taker.parts) Count(*part);
    }
  }

  // Whoever held memory when turns begin may hold it on.
  void Enter(Entry& entry) const {
    entry.runs = entry.is_privileged = false;
    entry.waiting_ns = entry.since_ns = now_ns_;
    entry.reason = TurnReason::kAnothers;
  }

  const TurnDevice& FactsOf(DeviceId device) const { return devices_[static_cast<size_t>(device)]; }

  int64_t SwapNs(const Taker& taker) const {
    int64_t most_ns = 0;
    for (const TurnPart* part : taker.parts)
      most_ns = std::max(most_ns, SwapNsOf(*part, FactsOf(part->device)));
    return most_ns;
  }

  // What waiting takers keep is not to be had.
  void Count(const TurnPart& part) {
    const auto [place, is_new] = free_.try_emplace(part.device, 0);
    if (is_new) {
      place->second = FactsOf(part.device).memory_bytes;
      for (const TurnJob& job : jobs_) {
        const TurnPart* const other = PartOn(job, part.device);
        if (other != nullptr && !IsTaker(*other)) place->second -= other->budgeted_bytes;
      }
    }
    place->second -= part.stays_bytes;
  }

  void EndTurns() {
    for (Taker& taker : takers_) {
      const bool is_silent = turns_.IsSilent(*taker.job, now_ns_);
      const bool is_stuck =
          taker.entry->runs && now_ns_ - taker.entry->progress_ns > turns_.rules_.stuck_ns;
      taker.wants = taker.wants && !is_silent;
      if (!taker.wants || is_stuck)
        taker.lost = is_silent  ? TurnReason::kSilent
                     : is_stuck ? TurnReason::kStuck
                                : TurnReason::kIdle;
      else if (taker.entry->runs && now_ns_ >= taker.entry->until_ns)
        taker.lost = TurnReason::kEnded;
      if (taker.lost == TurnReason::kStuck || taker.lost == TurnReason::kEnded)
        taker.entry->waiting_ns = now_ns_;
    }
  }

  bool KeepsTurn(const Taker& taker) const {
    return taker.entry->runs && taker.wants && taker.lost == TurnReason::kAnothers;
  }
  bool IsStarving(const Taker& taker) const {
    return !taker.entry->runs && now_ns_ - taker.entry->waiting_ns >= turns_.starving_ns();
  }
  std::tuple<int, int> RankOf(const Taker& taker) const {
    return {-taker.job->priority, turns_.LevelOf(*taker.entry)};
  }
  static bool ShareDevice(const Taker& a, const Taker& b) {
    for (const TurnPart* one : a.parts) {
      for (const TurnPart* other : b.parts) {
        if (one->device == other->device) return true;
      }
    }
    return false;
  }

  void Preempt() {
    for (Taker& runner : takers_) {
      const Entry& entry = *runner.entry;
      if (!KeepsTurn(runner) || entry.is_privileged) continue;
      if (now_ns_ - entry.begun_ns < 2 * entry.swap_ns) continue;
      for (const Taker& other : takers_) {
        const bool wants = other.wants && !other.entry->runs && !other.job->is_overdue &&
                           ShareDevice(runner, other);
        if (!wants || RankOf(other) >= RankOf(runner)) continue;
        runner.lost = TurnReason::kPreempted;
        runner.entry->waiting_ns = now_ns_;
        break;
      }
    }
  }

  bool Fits(const Taker& taker) const {
    return std::all_of(taker.parts.begin(), taker.parts.end(), [&](const TurnPart* part) {
      if (reserved_.count(part->device) != 0) return false;
      const int64_t need_bytes = NeedOf(*part, FactsOf(part->device));
      const int64_t more_bytes = std::max<int64_t>(need_bytes - part->stays_bytes, 0);
      return running_.count(part->device) == 0 || more_bytes <= free_.at(part->device);
    });
  }
  void Take(Taker& taker) {
    for (const TurnPart* part : taker.parts) {
      int64_t& free_bytes = free_[part->device];
      const int64_t most_bytes = part->stays_bytes + std::max<int64_t>(free_bytes, 0);
      taker.entry->start_bytes[part->device] = std::min(part->need_bytes, most_bytes);
      free_bytes -= std::max<int64_t>(NeedOf(*part, FactsOf(part->device)) - part->stays_bytes, 0);
      running_.insert(part->device);
    }
    given_.insert(taker.job->id);
  }

  // Needs may have grown: then the one with the shorter wait behind it goes.
  void KeepTurns() {
    std::vector<Taker*> runners;
    for (Taker& taker : takers_) {
      if (KeepsTurn(taker)) runners.push_back(&taker);
    }
    std::sort(runners.begin(), runners.end(), [](const Taker* a, const Taker* b) {
      return std::tuple(a->entry->begun_ns, a->job->id) <
             std::tuple(b->entry->begun_ns, b->job->id);
    });
    for (Taker* runner : runners) {
      if (Fits(*runner)) {
        Take(*runner);
      } else {
        runner->lost = TurnReason::kEnded;
        runner->entry->waiting_ns = now_ns_;
      }
    }
  }

  void GiveTurns() {
    std::vector<Taker*> contenders;
    for (Taker& taker : takers_) {
      if (taker.wants && given_.count(taker.job->id) == 0) contenders.push_back(&taker);
    }
    const auto place_of = [this](const Taker* taker) {
      return std::tuple(!IsStarving(*taker), taker->job->is_overdue,
                        taker->lost == TurnReason::kStuck, RankOf(*taker), taker->entry->waiting_ns,
                        taker->job->id);
    };
    std::sort(contenders.begin(), contenders.end(),
              [&](const Taker* a, const Taker* b) { return place_of(a) < place_of(b); });
    std::set<DeviceId> wanted;
    for (Taker* taker : contenders) {
      for (const TurnPart* part : taker->parts) {
        if (!Fits(*taker) && wanted.insert(part->device).second)
          turns_.devices_[part->device].next = taker->job->id;
      }
      if (Fits(*taker)) {
        Begin(*taker, contenders.size());
      } else {
        Reserve(*taker);
      }
    }
    for (Taker& taker : takers_) {
      if (!taker.wants) KeepIfAlone(taker, contenders.empty());
    }
  }

  void Begin(Taker& taker, size_t contenders) {
    Entry& entry = *taker.entry;
    entry.is_privileged = IsStarving(taker);
    Take(taker);
    entry.begun_ns = now_ns_;
    entry.until_ns = now_ns_ + entry.length_ns;
    const TurnReason reason = entry.is_privileged ? TurnReason::kStarved
                              : contenders == 1   ? TurnReason::kAlone
                                                  : TurnReason::kNext;
    if (!std::exchange(entry.runs, true)) entry.since_ns = now_ns_;
    entry.reason = reason;
  }

  void Reserve(Taker& taker) {
    for (const TurnPart* part : taker.parts) {
      taker.is_blocked = taker.is_blocked ||
                         (running_.count(part->device) == 0 && reserved_.count(part->device) == 0);
    }
    for (const TurnPart* part : taker.parts) reserved_.insert(part->device);
  }

  // A job that does nothing keeps its turn while nobody wants the memory.
  void KeepIfAlone(Taker& taker, bool nobody_waits) {
    if (taker.entry->runs && nobody_waits && Fits(taker)) Take(taker);
  }

  void NoteWait(const Taker& taker) {
    Entry& entry = *taker.entry;
    if (given_.count(taker.job->id) != 0) return;
    TurnReason reason = taker.lost;
    if (reason == TurnReason::kAnothers && taker.is_blocked) reason = TurnReason::kOtherDevice;
    if (std::exchange(entry.runs, false)) {
      entry.since_ns = now_ns_;
      if (!taker.wants) entry.waiting_ns = now_ns_;
      entry.reason = reason;
    } else if (!taker.wants) {
      entry.waiting_ns = now_ns_;
      entry.reason = reason;
    } else if (entry.reason == TurnReason::kIdle || entry.reason == TurnReason::kSilent ||
               entry.reason == TurnReason::kOtherDevice || reason == TurnReason::kOtherDevice) {
      entry.reason = reason;
    }
    entry.is_privileged = false;
  }

  Turns& turns_;
  const std::span<const TurnDevice> devices_;
  const std::span<const TurnJob> jobs_;
  const int64_t now_ns_;
  std::vector<Taker> takers_;
  std::map<DeviceId, int64_t> free_;
  std::set<DeviceId> reserved_, running_;
  std::set<JobId> given_;
};

void Turns::Update(std::span<const TurnDevice> devices, std::span<const TurnJob> jobs,
                   int64_t now_ns) {
  Meet(jobs, now_ns);
  for (size_t i = 0; i < devices.size(); ++i) {
    Choose(DeviceId{static_cast<uint32_t>(i)}, devices[i], jobs, now_ns);
    devices_[DeviceId{static_cast<uint32_t>(i)}].next = JobId{};
  }
  Round(*this, devices, jobs, now_ns).Run();
  views_.clear();
  bool must_look = false;
  for (const TurnJob& job : jobs) {
    const Entry& entry = entries_.at(job.id);
    for (const TurnPart& part : job.parts) {
      const Device& device = devices_.at(part.device);
      must_look = must_look || device.is_on || device.is_tight;
      if (!device.is_on || !IsTaker(part)) {
        views_[{job.id, part.device}] = {
            .reason = device.is_on ? TurnReason::kCannot : device.reason, .level = LevelOf(entry)};
        continue;
      }
      const auto start = entry.start_bytes.find(part.device);
      views_[{job.id, part.device}] = {
          entry.runs ? TurnStanding::kRuns : TurnStanding::kWaits,
          entry.reason,
          entry.since_ns,
          entry.runs ? entry.until_ns : 0,
          entry.runs && start != entry.start_bytes.end() ? start->second : 0,
          entry.swap_ns,
          entry.length_ns,
          LevelOf(entry)};
    }
  }
  next_wake_ns_ = must_look ? now_ns + kLookNs : INT64_MAX;
}

}  // namespace spillway::agent
