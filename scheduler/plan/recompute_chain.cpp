#include "scheduler/plan/recompute_chain.h"

#include <algorithm>
#include <unordered_set>

namespace spillway::scheduler {
namespace {

bool ChangesInPlace(const Operation& operation) {
  return std::any_of(operation.writes.begin(), operation.writes.end(), [&](BufferId id) {
    return std::find(operation.reads.begin(), operation.reads.end(), id) != operation.reads.end();
  });
}

}  // namespace

// Operations are visited depth first with a stack of their own: chains can be as long as the iteration.
struct RecomputeChains::Search {
  OperationId before;
  const Present& present;
  std::unordered_set<int32_t> visited;
  std::vector<OperationId> waiting;  // entered, their inputs not yet looked at when on top for the first time
  std::vector<OperationId> chain;
};

RecomputeChains::RecomputeChains(const IterationProfile& profile)
    : profile_(profile), writers_(profile.buffers.size()), repeatable_(profile.operations.size()) {
  for (size_t i = 0; i < profile.operations.size(); ++i) {
    const Operation& operation = profile.operations[i];
    repeatable_[i] = operation.replayable && !ChangesInPlace(operation);
    for (BufferId id : operation.writes)
      writers_[static_cast<size_t>(id.index)].push_back({static_cast<int32_t>(i)});
  }
}

OperationId RecomputeChains::WriterBefore(BufferId buffer, OperationId before) const {
  const std::vector<OperationId>& writers = writers_[static_cast<size_t>(buffer.index)];
  const auto after = std::lower_bound(writers.begin(), writers.end(), before);
  return after == writers.begin() ? OperationId{} : *(after - 1);
}

bool RecomputeChains::LivesBefore(BufferId buffer, OperationId before) const {
  const Buffer& it = profile_.at(buffer);
  return it.persistent || (it.born < before && before <= it.dies);
}

bool RecomputeChains::CanRepeat(OperationId operation, const Search& search) const {
  if (!repeatable_[static_cast<size_t>(operation.index)]) return false;
  const OperationId next{operation.index + 1};
  const auto unchanged = [&](BufferId id, OperationId since) {
    return WriterBefore(id, search.before) == WriterBefore(id, since);
  };
  const Operation& it = profile_.at(operation);
  return std::all_of(it.reads.begin(), it.reads.end(),
                     [&](BufferId id) { return unchanged(id, operation); }) &&
         std::all_of(it.writes.begin(), it.writes.end(), [&](BufferId id) { return unchanged(id, next); });
}

// Enters the operation that wrote the target; false when the target cannot be rebuilt.
bool RecomputeChains::Collect(BufferId target, Search& search) const {
  if (search.present(target)) return true;
  const OperationId writer = WriterBefore(target, search.before);
  if (writer.index < 0) return false;
  if (search.visited.contains(writer.index)) return true;
  if (!CanRepeat(writer, search)) return false;
  search.visited.insert(writer.index);
  search.waiting.push_back(writer);
  return true;
}

bool RecomputeChains::Visit(OperationId operation, Search& search) const {
  search.chain.push_back(operation);
  const std::vector<BufferId>& reads = profile_.at(operation).reads;
  return std::all_of(reads.begin(), reads.end(), [&](BufferId id) { return Collect(id, search); });
}

std::vector<OperationId> RecomputeChains::Find(const std::vector<BufferId>& targets, OperationId before,
                                               const Present& present) const {
  Search search{before, present, {}, {}, {}};
  for (BufferId target : targets) {
    if (!Collect(target, search)) return {};
  }
  while (!search.waiting.empty()) {
    const OperationId operation = search.waiting.back();
    search.waiting.pop_back();
    if (!Visit(operation, search)) return {};
  }
  // The original order is an order in which inputs come first.
  std::sort(search.chain.begin(), search.chain.end());
  return search.chain;
}

}  // namespace spillway::scheduler
