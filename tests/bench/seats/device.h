// A modelled device on a virtual clock: its memory, its link, and jobs that compute and move.
//
// Time advances in small steps. In each, every direction of the link is divided equally among the
// jobs that copy, and computing equally among the jobs that can compute. All memory is copied both
// ways: nothing is taken for clean. One thread; deterministic.
//
// Invariants
//  1. Resident bytes never exceed the memory. Memory comes only as other memory has left.
//  2. A job that does not stream computes only with all its memory.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "tests/bench/seats/job.h"

namespace spillway::seats {

struct LinkRates {  // bytes per second; `both`: while the other direction is busy too
  int64_t in = 0, out = 0, in_both = 0, out_both = 0;
};

// How memory moves under a policy.
struct Movement {
  int64_t link_percent = 100;  // of the link's rates that copies reach
  bool overlaps = true;        // what streams moves while the job computes
};

class Device {
 public:
  Device(int64_t memory_bytes, const LinkRates& rates, std::vector<Job> jobs)
      : memory_bytes_(memory_bytes), rates_(rates), jobs_(std::move(jobs)) {}

  void Pass(int64_t ns, const Movement& movement);

  std::vector<Job>& jobs() { return jobs_; }
  const std::vector<Job>& jobs() const { return jobs_; }
  int64_t memory_bytes() const { return memory_bytes_; }
  const LinkRates& rates() const { return rates_; }
  int64_t FreeBytes() const;
  int64_t now_ns() const { return now_ns_; }
  int64_t moved_bytes() const { return moved_bytes_; }  // out and in

 private:
  struct LinkTime {  // what each direction still carries in this step
    int64_t out_bytes = 0, in_bytes = 0;
  };
  LinkTime LinkTimeFor(int64_t ns, const Movement& movement) const;
  void Evict(LinkTime& link);
  void Restore(LinkTime& link);
  void Compute(int64_t ns, const Movement& movement, const LinkTime& link);
  void Advance(Job& job, int64_t ns) const;
  void FinishStep(Job& job) const;

  const int64_t memory_bytes_;
  const LinkRates rates_;
  std::vector<Job> jobs_;
  int64_t now_ns_ = 0;
  int64_t moved_bytes_ = 0;
};

// Max-min: nobody gets more than wanted, and what one leaves goes to the others.
std::vector<int64_t> DivideEqually(int64_t amount, const std::vector<int64_t>& wanted);

}  // namespace spillway::seats
