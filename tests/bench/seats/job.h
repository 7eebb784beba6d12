// A modelled job on one device: an interactive one that answers requests, or a batch one that never
// rests. Each of its steps needs all its memory.
//
// Owned by a Device. A Policy sets what the job may do, the Device what it did. One thread.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

namespace spillway::seats {

struct JobKind {
  bool is_interactive = false;
  int64_t need_bytes = 0;
  int64_t step_ns = 0;         // of computing, alone on the device
  int64_t request_steps = 20;  // of an interactive job: tokens of an answer
};

// A request came and was answered.
struct Answer {
  int64_t came_ns = 0, done_ns = 0;
};

struct Job {
  JobKind kind;

  // Set by the policy.
  int64_t budget_bytes = 0;
  bool may_compute = false;
  bool streams = false;  // computes in less than its need: the rest comes and goes in each step

  // Set by the device.
  int64_t resident_bytes = 0;
  int64_t computed_ns = 0;  // of the step that is under way
  int64_t steps = 0;
  int64_t request_steps = 0;  // done for the oldest request
  std::deque<int64_t> requests;
  int64_t worked_ns = 0;    // last had work
  int64_t progress_ns = 0;  // last computed, or had no work
  int64_t longest_wait_ns = 0;
  std::vector<Answer> answers;

  bool HasWork() const { return !kind.is_interactive || !requests.empty(); }
  int64_t MissingBytes() const {
    return resident_bytes < kind.need_bytes ? kind.need_bytes - resident_bytes : 0;
  }
};

}  // namespace spillway::seats
