// Plans of earlier runs, in a folder: a job has its plan before its iteration has come twice.
//
// Several processes may share the folder. Each job and iteration has a file (plan_codec.h), named
// after both, in a base::FileStore.
// Invariants
//  1. All plans together stay below most_bytes. The least recently used are deleted first.
//  2. A file that cannot be read as a plan is deleted, with one line on standard error. If the
//     folder cannot be written to, one line says so and nothing is kept any more.
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

  // An empty folder name turns the store off.
  explicit PlanStore(std::string folder, std::int64_t most_bytes = kMostBytes);

  bool Has(std::uint64_t job) const;
  // Most recently used first; at most kMostFound.
  std::vector<StoredPlan> Find(std::uint64_t job) const;
  void NoteUse(std::uint64_t job, std::uint64_t fingerprint) const;
  void Keep(std::uint64_t job, const StoredPlan& plan);

 private:
  const base::FileStore files_;
  const std::int64_t most_bytes_;
  bool works_;
};

}  // namespace spillway::interposer
