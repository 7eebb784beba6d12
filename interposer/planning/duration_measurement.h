// How long each operation of an iteration takes, from the samples of one or two iterations.
//
// Used by the pipeline, one thread at a time. The pattern is shared.
//
// Invariants
//  1. A sample counts for an operation only when the follower gave its event that place in the
//  iteration.
//  2. Once samples come, what touches no buffer needs none: small copies have none.
//  3. Operations without a time of their own get that of others of the same shape, else one that
//  their bytes suggest.
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

  // In the events' order; `sample`: the operation's, 0 for none.
  void Note(const scheduler::JobEvent& event, std::uint32_t sample);
  // Reads what is complete.
  void Read(DurationSamples* samples);

  // Every operation has its sample: no more need be taken.
  bool AllAreTaken() const { return taken_ == is_taken_.size(); }
  // And every sample was read.
  bool IsDone() const { return AllAreTaken() && pending_.empty(); }
  // The job does not do what the pattern says, or samples cannot be had: what there is must do.
  bool IsHopeless() const;
  std::uint32_t SamplesWanted() const;
  // What an iteration took while it was measured, waits for memory included; 0 where that is not
  // known. Once IsDone.
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
  std::vector<std::int64_t> durations_ns_;  // by operation
  std::vector<bool> is_taken_;              // by operation: it has a sample, or needs none
  std::deque<Pending> pending_;
  std::size_t taken_ = 0;
  bool has_begun_ = false;  // a sample has come
  std::int64_t events_ = 0;
  std::uint32_t first_sample_ = 0, last_sample_ = 0;
  std::int64_t first_sampled_ = 0, last_sampled_ = 0;  // events_ then
};

}  // namespace spillway::interposer
