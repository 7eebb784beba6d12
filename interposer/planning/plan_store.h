// Plans of earlier runs, in a folder: a job that comes again has its plan before it has shown its
// iteration twice.
//
// Called by the planner thread, one thread at a time; several processes may share a folder. One
// file per job and iteration (plan_codec.h), named after both, in a base::FileStore.
//
// Invariants
//  1. The folder's plans stay below most_bytes together: those used longest ago go first.
//  2. What cannot be read as a plan is deleted, with one line on standard error; a folder that
//  cannot be written to is said
//     once, and nothing is kept from then on.
// Never: fails its caller.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/file_store.h"
#include "scheduler/plan/plan_codec.h"

namespace spillway::interposer {

using scheduler::StoredPlan;

class PlanStore {
 public:
  static constexpr std::int64_t kMostBytes = std::int64_t{256} << 20;
  static constexpr std::size_t kMostFound = 4;

  // An empty folder name: nothing is kept or found.
  explicit PlanStore(std::string folder, std::int64_t most_bytes = kMostBytes);

  bool Has(std::uint64_t job) const;
  // The job's plans, the one used last first; at most kMostFound.
  std::vector<StoredPlan> Find(std::uint64_t job) const;
  // It is followed again.
  void NoteUse(std::uint64_t job, std::uint64_t fingerprint) const;
  // In the place of the same iteration's earlier plan.
  void Keep(std::uint64_t job, const StoredPlan& plan);

 private:
  const base::FileStore files_;
  const std::int64_t most_bytes_;
  bool works_;
};

}  // namespace spillway::interposer
