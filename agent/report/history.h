// The last minutes of a node: one sample a report of each device, and of each job on a device.
//
// Pure: reports and the time go in. One owner calls it, on one thread.
//
// Invariants
//  1. At most kMostSamples samples and kMostSeries series are kept, whatever jobs do. A new job
//  takes
//     the place of the job that ended first. Where all live, it gets none, and left_out() counts
//     it.
//  2. Rates come from the counters of two reports. A counter that fell counts as unchanged.
//  3. A series has one sample for each report, from its first to its last, without gaps.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "agent/node/node_report.h"

namespace spillway::agent {

// The causes that jobs report, then those of jobs that report none.
inline constexpr size_t kHistoryCauses = protocol::kStallCauseNames.size() + 1;

struct HistorySample {
  int64_t budget_bytes = 0, wanted_bytes = 0, resident_bytes = 0, host_bytes = 0;
  // Per second.
  int64_t to_host_bytes = 0, to_device_bytes = 0;
  // Thousandths of the time; of several processes together, so more than 1000 is possible.
  std::array<int64_t, kHistoryCauses> stall_permille = {};

  HistorySample& operator+=(const HistorySample& other);
  bool operator==(const HistorySample&) const = default;
};

struct HistorySeries {
  uint64_t first_tick = 0;  // of samples.front()
  std::deque<HistorySample> samples;

  uint64_t last_tick() const { return first_tick + samples.size() - 1; }
};

class NodeHistory {
 public:
  static constexpr size_t kMostSamples = 600, kMostSeries = 64;

  using JobOnDevice = std::pair<std::string, uint32_t>;  // name, device number

  // `at_ms`: since 1970. A report that is no later than the one before changes nothing.
  void Add(const NodeReport& report, int64_t at_ms);

  // The number of the newest sample; 0: none yet.
  uint64_t tick() const { return tick_; }
  // Of the samples tick() - at_ms().size() + 1 to tick().
  const std::deque<int64_t>& at_ms() const { return at_ms_; }
  const std::map<uint32_t, HistorySeries>& devices() const { return devices_; }
  const std::map<JobOnDevice, HistorySeries>& jobs() const { return jobs_; }
  // Of the newest report: jobs on devices without a series.
  size_t left_out() const { return left_out_; }

  // Null: none of the newest report.
  const HistorySample* NewestOf(const JobOnDevice& job) const;
  const HistorySample* NewestOf(uint32_t device) const;

 private:
  // A job's counters at the last report.
  struct Counters {
    uint64_t tick = 0;
    std::vector<SessionId> reporters;
    int64_t to_host_bytes = 0, to_device_bytes = 0;
    std::array<int64_t, kHistoryCauses> stall_ns = {};
  };

  static Counters CountersOf(const TenancyReport& tenancy, uint64_t tick);
  HistorySample SampleOf(const std::string& job, const TenancyReport& tenancy, int64_t passed_ns);
  void AddToJob(const JobOnDevice& job, const HistorySample& sample);
  bool HasRoom();
  void DropOld();

  uint64_t tick_ = 0;
  int64_t last_up_ns_ = 0;
  std::deque<int64_t> at_ms_;
  std::map<uint32_t, HistorySeries> devices_;
  std::map<JobOnDevice, HistorySeries> jobs_;
  std::map<JobOnDevice, Counters> counters_;  // of the newest report's jobs
  size_t left_out_ = 0;
};

}  // namespace spillway::agent
