// Random lives of jobs on three devices, on a virtual clock: they come, go, idle, stop, grow and
// need several devices. Running jobs fit, multi-device jobs run whole, and nobody starves.
#include <gtest/gtest.h>

#include <map>

#include "agent/turns/turns.h"
#include "base/prng.h"
#include "tests/unit/turns/amounts.h"

namespace spillway::agent {
namespace {

constexpr uint32_t kDevices = 3;
constexpr uint64_t kMostJobs = 7;
constexpr int64_t kMemory = 100 * kGiB, kFloor = kGiB;

class Lives {
 public:
  explicit Lives(uint64_t seed) : random_(seed) {}

  void Run() {
    for (int step = 0; step < 10'000 && !testing::Test::HasFailure(); ++step) {
      if (random_.Below(40) == 0) Disturb();
      now_ns_ += 100'000'000;
      for (auto& [id, job] : jobs_) Live(job);
      Update();
      Check();
    }
  }

 private:
  struct Life {
    TurnJob facts;
    bool is_stopped = false;
    int64_t waits_since_ns = 0;  // without a turn, though it wants one
  };

  int64_t UpTo(int64_t most) {
    return static_cast<int64_t>(random_.Below(static_cast<uint64_t>(most + 1)));
  }

  void Disturb() {
    const JobId id{1 + random_.Below(kMostJobs)};
    const auto known = jobs_.find(id);
    if (known == jobs_.end()) return Arrive(id);
    Life& life = known->second;
    switch (random_.Below(8)) {
      case 0:
        jobs_.erase(known);
        return;
      case 1:
        life.is_stopped = !life.is_stopped;
        return;
      case 2:
        for (TurnPart& part : life.facts.parts) part.need_bytes = kFloor + UpTo(110 * kGiB);
        return;
      default:
        life.facts.active = !life.facts.active;
    }
  }
  void Arrive(JobId id) {
    Life life;
    life.facts.id = id;
    life.facts.weight = 1 + static_cast<int32_t>(random_.Below(3));
    life.facts.priority = static_cast<int32_t>(random_.Below(2));
    for (uint32_t device = 0; device < kDevices; ++device) {
      if (random_.Below(2) == 0 && (device + 1 < kDevices || !life.facts.parts.empty())) continue;
      TurnPart part;
      part.device = DeviceId{device};
      part.choice = random_.Below(8) == 0 ? TurnsChoice::kNever : TurnsChoice::kAlways;
      part.need_bytes = kFloor + UpTo(99 * kGiB);
      part.stays_bytes = kFloor;
      part.budgeted_bytes = part.choice == TurnsChoice::kNever ? UpTo(10 * kGiB) : 0;
      life.facts.parts.push_back(part);
    }
    life.waits_since_ns = now_ns_;
    jobs_[id] = life;
  }
  void Live(Life& life) {
    if (life.is_stopped) return;
    life.facts.heard_ns = now_ns_;
    ++life.facts.operations;
  }

  void Update() {
    facts_.clear();
    for (const auto& [id, life] : jobs_) facts_.push_back(life.facts);
    const std::vector<TurnDevice> devices(kDevices, {kMemory, 50 * kGiB});
    turns_.Update(devices, facts_, now_ns_);
    longest_ns_ = std::max(longest_ns_, turns_.longest_turn_ns());
    starving_ns_ = std::max(starving_ns_, turns_.starving_ns());
  }

  void Check() {
    std::map<DeviceId, int64_t> used, running;
    for (const TurnJob& job : facts_) {
      int runs = 0, waits = 0;
      for (const TurnPart& part : job.parts) {
        const TurnView view = turns_.ViewOf(job.id, part.device);
        runs += view.standing == TurnStanding::kRuns;
        waits += view.standing == TurnStanding::kWaits;
        const bool is_whole = view.standing == TurnStanding::kRuns;
        const bool takes = view.standing != TurnStanding::kShares;
        used[part.device] += is_whole                             ? part.need_bytes
                             : takes                              ? part.stays_bytes
                             : part.choice == TurnsChoice::kNever ? part.budgeted_bytes
                                                                  : 0;
        running[part.device] += is_whole;
        ASSERT_TRUE(!is_whole || view.start_bytes <= part.need_bytes);
      }
      ASSERT_TRUE(runs == 0 || waits == 0) << "a job has all its turns or none";
      NoteWait(jobs_.at(job.id), waits > 0);
    }
    for (uint32_t i = 0; i < kDevices; ++i) {
      if (!turns_.IsOn(DeviceId{i}) || running[DeviceId{i}] < 2) continue;
      ASSERT_LE(used[DeviceId{i}], kMemory);
    }
  }
  // Each job before it may have a turn more than it was due.
  void NoteWait(Life& life, bool waits) {
    if (!waits || !life.facts.active || life.is_stopped) life.waits_since_ns = now_ns_;
    const int64_t bound_ns =
        starving_ns_ + 2 * static_cast<int64_t>(kMostJobs) * (longest_ns_ + 4 * kSecond);
    ASSERT_LE(now_ns_ - life.waits_since_ns, bound_ns) << "it starves";
    most_waited_ns_ = std::max(most_waited_ns_, now_ns_ - life.waits_since_ns);
  }

  base::Prng random_;
  Turns turns_;
  std::map<JobId, Life> jobs_;
  std::vector<TurnJob> facts_;
  int64_t now_ns_ = 1000 * kSecond;
  int64_t longest_ns_ = 0, starving_ns_ = 0, most_waited_ns_ = 0;
};

TEST(TurnsPropertyTest, RunningJobsFitRunWholeAndNobodyStarves) {
  for (uint64_t seed = 1; seed <= 20 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Lives(seed).Run();
  }
}

}  // namespace
}  // namespace spillway::agent
