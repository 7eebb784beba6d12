#include "scheduler/plan/cost_model.h"

#include <algorithm>

#include "base/units.h"
#include "scheduler/plan/iteration_run.h"

namespace spillway::scheduler {

int64_t FootprintOf(const Problem& problem, int64_t size_bytes) {
  const bool movable = size_bytes >= problem.min_movable_bytes;
  return base::round_up(size_bytes, std::max<int64_t>(1, movable ? problem.device.chunk_bytes
                                                                 : problem.device.slab_unit_bytes));
}

bool IsMovable(const Problem& problem, const Buffer& buffer) {
  return buffer.movable && buffer.size_bytes >= problem.min_movable_bytes;
}

std::vector<BufferId> TouchedBy(const Operation& operation) {
  std::vector<BufferId> touched = operation.reads;
  for (const BufferId id : operation.writes) {
    const auto end = touched.begin() + static_cast<std::ptrdiff_t>(operation.reads.size());
    if (std::find(touched.begin(), end, id) == end) touched.push_back(id);
  }
  return touched;
}

int64_t TouchedMovableBytes(const Problem& problem, const Operation& operation) {
  int64_t sum_bytes = 0;
  for (const BufferId id : TouchedBy(operation)) {
    const Buffer& buffer = problem.iteration().at(id);
    if (IsMovable(problem, buffer)) sum_bytes += FootprintOf(problem, buffer.size_bytes);
  }
  return sum_bytes;
}

namespace {

std::vector<int64_t> FootprintsOf(const Problem& problem) {
  std::vector<int64_t> footprints_bytes;
  for (const Buffer& buffer : problem.iteration().buffers)
    footprints_bytes.push_back(FootprintOf(problem, buffer.size_bytes));
  return footprints_bytes;
}

}  // namespace

CostModel::CostModel(const Problem& problem)
    : problem_(problem),
      footprints_bytes_(FootprintsOf(problem)),
      mapping_costs_(problem, footprints_bytes_) {
  const IterationProfile& profile = problem.iteration();

  std::vector<std::vector<BufferId>> born(profile.operations.size()),
      dying(profile.operations.size());
  for (size_t i = 0; i < profile.buffers.size(); ++i) {
    const Buffer& buffer = profile.buffers[i];
    if (buffer.persistent) continue;
    born[static_cast<size_t>(buffer.born.index)].push_back({static_cast<int32_t>(i)});
    dying[static_cast<size_t>(buffer.dies.index)].push_back({static_cast<int32_t>(i)});
  }
  const auto append = [](Touches& touches, const std::vector<BufferId>& buffers) {
    touches.buffers.insert(touches.buffers.end(), buffers.begin(), buffers.end());
    touches.Close();
  };
  for (size_t i = 0; i < profile.operations.size(); ++i) {
    const Operation& operation = profile.operations[i];
    append(reads_, operation.reads);
    append(writes_, operation.writes);
    append(born_, born[i]);
    append(dying_, dying[i]);
    for (BufferId id : operation.writes) {
      if (std::find(operation.reads.begin(), operation.reads.end(), id) == operation.reads.end())
        overwrites_.buffers.push_back(id);
    }
    overwrites_.Close();
  }
}

Prediction CostModel::Predict(const Plan& plan, Timeline* timeline) const {
  return IterationRun(*this, problem_, plan).Run(timeline);
}

const char* ToString(Verdict verdict) {
  switch (verdict) {
    case Verdict::kRuns:
      return "runs";
    case Verdict::kDeadlock:
      return "deadlock";
    case Verdict::kOverBudget:
      return "over budget";
    case Verdict::kMalformed:
      return "malformed";
  }
  return "?";
}

}  // namespace spillway::scheduler
