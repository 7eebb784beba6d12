// Decides which jobs have their turn on a device whose memory does not hold them together. Pure:
// times are passed in, equal facts give equal decisions.
//
// A *taker* is a job that may take turns. While a device is in turns, its takers run or wait as
// whole jobs: a waiting job's calls wait, and its memory may leave, down to its floor.
//
// Note [Turns or shares]
// A device goes into turns when its takers, as far as they are active, do not fit together, and one
// of three holds. An operator asks for it (TurnsChoice::kAlways). A taker parks its evicted memory
// on the host, because its pointers are opaque. Or the device loses a twentieth of its time to
// movement, and no less than turns would cost, for kMovesNs.
//
// It loses what its takers recompute, and the time in which it is idle because they wait for
// memory. A call's wait alone is no such time: the device may work on earlier calls of the same
// job, or for others. So waits only bound the idle time that the driver tells: a device that is
// idle for longer than two takers wait is idle for another reason. Where the driver does not tell,
// two takers are taken to wait independently, and one that follows a plan for as long as its plan
// predicts. Turns cost half a swap's part of a turn's length: the next job begins before all of its
// memory is there. While a job learns, it moves more than it will: nothing counts for kLearningNs,
// by its device's clock, or kMostLearningNs by the agent's. A device goes back when the takers fit
// with a sixteenth to spare: what shares would lose is not known while jobs take turns.
//
// Note [Order of turns]
// Jobs that waited for starving_ns() come first, and cannot be preempted. A job that is overdue
// with memory comes after all others: otherwise memory that cannot leave would spoil the turns of
// others again and again. It may need a turn to free that memory, so it starves no longer than
// others. Then higher priority, then lower level, then who waits longest. The level rises with the
// time that a job has had turns, and falls while the job is idle: so interactive jobs stay above
// batch jobs. A job that waits ends the turn of one below it by priority or level, once that one
// had the time of its swap. Among equals a turn lasts its length: cost_factor times its swap, and
// at least quantum_ns.
//
// Invariants
//  1. The needs of the jobs that run on a device fit its memory, or there is only one such job.
//  2. A job runs on all its devices in turns, or on none. Jobs that wait for several devices keep
//     later ones from taking these: nobody starves, and nobody holds one while waiting for another.
//  3. While any taker is active, one of them runs on each device in turns for which it is not kept
//     free by 2.
//  4. A job whose need is unknown does not fit beside others, and takes no device into turns.
//  5. A taker that is idle, silent (stopped) or stuck loses its turn if another wants the memory.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "agent/arbiter/terms.h"

namespace spillway::agent {

struct TurnRules {
  int64_t quantum_ns = 2'000'000'000;
  int64_t cost_factor = 8;
  int64_t silent_ns = 3'000'000'000;  // a process that says nothing for so long is stopped
  int64_t stuck_ns = 60'000'000'000;  // a job that begins no call for so long has no progress
};

struct TurnDevice {
  int64_t memory_bytes = 0;
  int64_t link_bytes_per_second = 0;          // 0: unknown
  std::optional<int64_t> idle_permille = {};  // of its time of late, without a kernel
};

// Time lost to movement, since the job began, by its device's clock. Both pairs are lower bounds.
struct TimeLoss {
  int64_t waited_ns = 0, waited_of_ns = 0;     // in waits of calls
  int64_t steps_lost_ns = 0, steps_of_ns = 0;  // in planned iterations
  int64_t steps_repeated_ns = 0;               // of these, for recomputing
};

// A job on one device.
struct TurnPart {
  DeviceId device{};
  bool may_take = true;  // all its processes know how, and its guarantee is no more than its floor
  TurnsChoice choice = TurnsChoice::kAuto;
  int64_t need_bytes = 0;      // to run without evicting
  bool is_need_known = true;   // else its processes have not all said yet
  int64_t stays_bytes = 0;     // while it waits
  int64_t budgeted_bytes = 0;  // now
  TimeLoss loss;
  bool is_learning = false;
  bool parks = false;
};

struct TurnJob {
  JobId id{};
  int32_t weight = 1;
  int32_t priority = 0;
  bool active = true;
  int64_t heard_ns = 0;     // of its quietest process
  int64_t silent_ns = 0;    // a silence as long as this says nothing, whatever the rules say
  bool is_overdue = false;  // it has not returned memory in time
  int64_t operations = 0;   // since it began
  std::vector<TurnPart> parts;
};

enum class TurnStanding : uint8_t { kShares, kRuns, kWaits };

enum class TurnReason : uint8_t {
  kFits,         // shares: all fit together
  kForbidden,    // shares: the operator's settings
  kCheap,        // shares: too little time is lost to movement
  kCannot,       // shares: an older library, or a guarantee
  kAsked,        // turns: the operator's settings
  kParks,        // turns: a job's pointers are opaque
  kMoves,        // turns: too much time is lost to movement
  kNext,         // runs: it was its turn
  kAlone,        // runs: nobody else wants the memory
  kStarved,      // runs: it had waited too long
  kAnothers,     // waits: another job's turn
  kEnded,        // waits: its turn is over
  kPreempted,    // waits: for a job of higher priority, or a lower level
  kIdle,         // waits: it did nothing
  kSilent,       // waits: its process is stopped
  kStuck,        // waits: it made no progress in its turn
  kOtherDevice,  // waits: for another of its devices
};
// The end of a sentence, as "the job waits: ...".
const char* TextOf(TurnReason reason);

struct TurnView {
  TurnStanding standing = TurnStanding::kShares;
  TurnReason reason = TurnReason::kFits;
  int64_t since_ns = 0;
  int64_t until_ns = 0;  // of a job that runs; it may go on while nobody waits
  int64_t start_bytes = 0;
  int64_t swap_ns = 0;
  int64_t length_ns = 0;  // of its turns
  int level = 0;
  bool operator==(const TurnView&) const = default;
};

struct DeviceTurnView {
  bool is_on = false;
  bool is_cheap = false;  // shares: its loss is known, and has been little for a while
  TurnReason reason = TurnReason::kFits;
  int64_t since_ns = 0;
  JobId next{};                // of those that wait; 0: nobody
  int64_t lost_permille = 0;   // of its time, to movement, when its takers last shared
  int64_t turns_permille = 0;  // what turns would cost of it
};

class Turns {
 public:
  static constexpr int64_t kSettleNs = 2'000'000'000;
  // A reading each 2 s counts half: one of a wholly idle device is forgotten sooner.
  static constexpr int64_t kMovesNs = 12'000'000'000;
  static constexpr int64_t kLeastLostPermille = 50;
  static constexpr int64_t kLearningNs = 30'000'000'000, kMostLearningNs = 600'000'000'000;
  static constexpr int kLevels = 5;

  void SetRules(const TurnRules& rules) { rules_ = rules; }

  // `jobs` by id, each once. Later calls have later times.
  void Update(std::span<const TurnDevice> devices, std::span<const TurnJob> jobs, int64_t now_ns);
  // INT64_MAX: time alone changes nothing.
  int64_t NextWake() const { return next_wake_ns_; }

  TurnView ViewOf(JobId job, DeviceId device) const;
  DeviceTurnView ViewOf(DeviceId device) const;
  bool IsOn(DeviceId device) const { return ViewOf(device).is_on; }
  // The most that a turn of these jobs lasts, and after which a waiting one comes first.
  int64_t longest_turn_ns() const { return longest_turn_ns_; }
  int64_t starving_ns() const;

 private:
  struct Window {  // from its beginning on
    TimeLoss loss;
    int64_t at_ns = 0;
  };
  struct Rate {
    Window calls, steps;
    int64_t calls_permille = 0;             // that calls wait
    int64_t stalls_permille = 0;            // by its plan, without what it repeats
    int64_t repeats_permille = 0;           // by its plan
    bool follows_plan = false;              // it told of an iteration lately
    bool is_known = false;                  // a window has ended since it learned
    std::optional<int64_t> learns_from_ns;  // by the device's clock; nullopt: it does not learn
    int64_t learns_since_ns = 0;            // by the agent's
  };
  struct Entry {
    bool runs = false;
    bool is_privileged = false;  // it had starved
    TurnReason reason = TurnReason::kAnothers;
    int64_t since_ns = 0, until_ns = 0;
    int64_t begun_ns = 0;    // its turn
    int64_t waiting_ns = 0;  // since then
    int64_t active_ns = 0;   // last seen so
    int64_t operations = 0, progress_ns = 0;
    int64_t used_ns = 0;
    int64_t swap_ns = 0, length_ns = 0;
    bool takes = false;  // it has a device in turns
    std::map<DeviceId, Rate> rates;
    std::map<DeviceId, int64_t> start_bytes;
  };
  struct Device {
    bool is_on = false;
    TurnReason reason = TurnReason::kFits;
    int64_t since_ns = 0;
    int64_t changing_ns = -1;  // since when the facts speak for the other mode
    int64_t cheap_ns = -1;     // since when its loss is known to be little
    bool is_tight = false;     // its takers do not fit
    JobId next{};
    int64_t lost_permille = 0, turns_permille = 0;
  };
  class LostTogether;
  class Round;
  friend class Round;

  void Meet(std::span<const TurnJob> jobs, int64_t now_ns);
  static bool Learns(const TurnPart& part, int64_t now_ns, const Rate& rate);
  bool IsSilent(const TurnJob& job, int64_t now_ns) const;
  static void Measure(const TurnPart& part, int64_t now_ns, Rate& rate);
  static void MeasureCalls(const TimeLoss& now, int64_t now_ns, Rate& rate);
  static void MeasureSteps(const TimeLoss& now, int64_t now_ns, Rate& rate);
  int64_t PermilleOfTurns(const TurnPart& part, const TurnDevice& device) const;
  void Choose(DeviceId id, const TurnDevice& facts, std::span<const TurnJob> jobs, int64_t now_ns);
  int LevelOf(const Entry& entry) const;

  TurnRules rules_;
  std::map<JobId, Entry> entries_;
  std::map<DeviceId, Device> devices_;
  std::map<std::pair<JobId, DeviceId>, TurnView> views_;
  int64_t last_ns_ = 0;
  int64_t longest_turn_ns_ = 0;
  int64_t next_wake_ns_ = INT64_MAX;
};

}  // namespace spillway::agent
