#include "scheduler/plan/least_recompute.h"

#include <algorithm>
#include <limits>

#include "base/units.h"
#include "scheduler/plan/cost_model.h"

namespace spillway::scheduler {
namespace {

bool Has(const std::vector<BufferId>& ids, BufferId id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

class Sharing {
 public:
  Sharing(const Problem& problem, const RecomputeChains& chains,
          const std::vector<IdleInterval>& intervals)
      : problem_(problem),
        profile_(problem.iteration()),
        chains_(chains),
        intervals_(intervals),
        entered_(profile_.operations.size(), -1),
        counted_(profile_.buffers.size()),
        shared_bytes_(profile_.operations.size(), 0) {}

  std::vector<int64_t> Run() {
    std::vector<std::vector<OperationId>> chains;
    for (size_t i = 0; i < intervals_.size(); ++i) {
      chains.push_back(ChainOf(static_cast<int32_t>(i)));
      const BufferId buffer = intervals_[i].buffer;
      for (size_t n = 0; n < chains.back().size(); ++n) {
        // A run of the writer ends only the interval in which it runs.
        if (n == 0 && counted_[At(buffer)] == chains.back()[n]) continue;
        shared_bytes_[At(chains.back()[n])] += profile_.at(buffer).size_bytes;
      }
      if (!chains.back().empty()) counted_[At(buffer)] = chains.back().front();
    }
    std::vector<int64_t> result;
    for (size_t i = 0; i < intervals_.size(); ++i)
      result.push_back(CostOf(intervals_[i].buffer, chains[i]));
    return result;
  }

 private:
  // Writer first; empty if one of the operations cannot run again.
  std::vector<OperationId> ChainOf(int32_t index) {
    const IdleInterval& interval = intervals_[static_cast<size_t>(index)];
    if (interval.wraps || interval.content_dead) return {};
    std::vector<OperationId> chain;
    if (!Enter(chains_.WriterBefore(interval.buffer, interval.to), index, chain)) return {};
    for (size_t n = 0; n < chain.size(); ++n) {
      for (BufferId read : profile_.at(chain[n]).reads) {
        if (!IsGoneAfter(read, interval.from)) continue;
        if (problem_.is_live) return {};
        if (!Enter(chains_.WriterBefore(read, chain[n]), index, chain)) return {};
      }
    }
    return chain;
  }

  bool Enter(OperationId operation, int32_t index, std::vector<OperationId>& chain) {
    if (operation.index < 0) return false;
    if (entered_[At(operation)] == index) return true;
    const Operation& it = profile_.at(operation);
    const bool in_place = std::any_of(it.writes.begin(), it.writes.end(),
                                      [&](BufferId id) { return Has(it.reads, id); });
    if (!it.replayable || in_place) return false;
    entered_[At(operation)] = index;
    chain.push_back(operation);
    return true;
  }

  bool IsGoneAfter(BufferId id, OperationId from) const {
    const Buffer& buffer = profile_.at(id);
    return !buffer.persistent && buffer.dies <= from;
  }

  int64_t CostOf(BufferId buffer, const std::vector<OperationId>& chain) const {
    if (chain.empty()) return -1;
    int64_t sum_ns = 0;
    for (OperationId operation : chain) {
      // A rerun may find other movable buffers alive than the first run did.
      const int64_t room_bytes =
          problem_.budget_bytes - TouchedMovableBytes(problem_, profile_.at(operation));
      sum_ns += base::scale(FastestWithin(problem_, profile_.at(operation), room_bytes),
                            profile_.at(buffer).size_bytes, shared_bytes_[At(operation)]);
    }
    return sum_ns;
  }

  const Problem& problem_;
  const IterationProfile& profile_;
  const RecomputeChains& chains_;
  const std::vector<IdleInterval>& intervals_;
  std::vector<int32_t> entered_;       // by operation: the last interval with it in its chain
  std::vector<OperationId> counted_;   // by buffer: its own writer counted last
  std::vector<int64_t> shared_bytes_;  // by operation: total size that shares one run
};

}  // namespace

int64_t FastestWithin(const Problem& problem, const Operation& operation, int64_t room_bytes) {
  constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
  int64_t result_ns = kNone;
  for (const WorkspaceChoice& choice : operation.workspaces) {
    if (FootprintOf(problem, choice.size_bytes) <= room_bytes)
      result_ns = std::min(result_ns, choice.duration_ns);
  }
  return result_ns == kNone ? operation.duration_ns : result_ns;
}

std::vector<int64_t> LeastRecomputeNs(const Problem& problem, const RecomputeChains& chains,
                                      const std::vector<IdleInterval>& intervals) {
  return Sharing(problem, chains, intervals).Run();
}

}  // namespace spillway::scheduler
