// How long each operation of an iteration takes, from the samples of one or two iterations.
//
// Invariants
//  1. A sample counts for an operation only if the follower gave its event that place.
//  2. Once samples arrive, operations without buffers need none: small copies are never sampled.
//  3. An operation without a sample gets the mean of its shape, else an estimate from its bytes.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "interposer/record/duration_samples.h"
#include "scheduler/learn/iteration_follower.h"

namespace spillway::interposer {

class DurationMeasurement {
 public:
  explicit DurationMeasurement(std::shared_ptr<const scheduler::IterationPattern> pattern);

  // `sample` is the operation's sample; 0: none.
  void Note(const scheduler::JobEvent& event, std::uint32_t sample);
  void Read(DurationSamples* samples);

  bool AllAreTaken() const { return taken_ == is_taken_.size(); }
  bool IsDone() const { return AllAreTaken() && pending_.empty(); }
  // The job left the pattern, or samples cannot be had. The existing samples must do.
  bool IsHopeless() const;
  bool IsRegular() const;
  std::uint32_t SamplesWanted() const;
  // An iteration's measured duration, waits for memory included; 0: unknown. Valid once all samples
  // are read, even if some operations have none.
  std::int64_t IterationNs(DurationSamples* samples) const;

  const std::shared_ptr<const scheduler::IterationPattern>& pattern() const { return pattern_; }
  std::vector<std::int64_t> DurationsNs() const;

 private:
  static constexpr std::int64_t kUnknown = -1;
  struct Pending {
    std::int32_t operation;
    std::uint32_t sample;
  };
  void NoteSample(Pending taken);
  std::int64_t GuessNs(const scheduler::PatternEvent& event) const;

  std::shared_ptr<const scheduler::IterationPattern> pattern_;
  scheduler::IterationFollower follower_;
  std::vector<std::int64_t> durations_ns_;
  std::vector<bool> is_taken_;  // by operation: it has a sample or needs none
  std::deque<Pending> pending_;
  std::size_t taken_ = 0;
  bool has_begun_ = false;
  std::int64_t events_ = 0;
  std::int64_t unknown_ = 0;  // of events_: they have no place in the pattern
  std::uint32_t first_sample_ = 0, last_sample_ = 0;
  std::int64_t first_sampled_ = 0, last_sampled_ = 0;
};

}  // namespace spillway::interposer
