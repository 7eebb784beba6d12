#include "scheduler/plan/recompute_chain.h"

#include <algorithm>

namespace spillway::scheduler {
namespace {

bool ChangesInPlace(const Operation& operation) {
  return std::any_of(operation.writes.begin(), operation.writes.end(), [&](BufferId id) {
    return std::find(operation.reads.begin(), operation.reads.end(), id) != operation.reads.end();
  });
}

bool TouchesAll(const Operation& operation, const std::vector<BufferId>& buffers) {
  const auto has = [](const std::vector<BufferId>& list, BufferId id) {
    return std::find(list.begin(), list.end(), id) != list.end();
  };
  return std::all_of(buffers.begin(), buffers.end(), [&](BufferId id) {
    return has(operation.reads, id) || has(operation.writes, id);
  });
}

}  // namespace

// Depth-first with an explicit stack: chains can be as long as the iteration.
struct RecomputeChains::Search {
  OperationId before;
  Present present;
  Marks& marks;
  std::vector<OperationId> waiting;  // visited; inputs are pushed when it first reaches the top
  std::vector<OperationId> chain;
};

RecomputeChains::RecomputeChains(const IterationProfile& profile, bool is_live)
    : profile_(profile),
      is_live_(is_live),
      writers_(profile.buffers.size()),
      presumed_(profile.buffers.size()) {
  for (size_t i = 0; i < profile.operations.size(); ++i) {
    const OperationId operation{static_cast<int32_t>(i)};
    for (BufferId id : profile.at(operation).writes)
      writers_[static_cast<size_t>(id.index)].push_back(operation);
    for (BufferId id : profile.at(operation).presumed_reads)
      presumed_[static_cast<size_t>(id.index)].push_back(operation);
  }
  for (size_t i = 0; i < profile.operations.size(); ++i)
    repeatable_until_.push_back(RepeatableUntil({static_cast<int32_t>(i)}));
  for (size_t i = 0; i < profile.buffers.size(); ++i)
    can_be_made_until_freed_.push_back(CanRecomputeUntilFreed({static_cast<int32_t>(i)}));
}

// Until a buffer is written again. The operation that does so still finds the old content.
int32_t RecomputeChains::RepeatableUntil(OperationId operation) const {
  const Operation& it = profile_.at(operation);
  if (!it.replayable || ChangesInPlace(it)) return -1;
  int32_t until = FirstPresumedReadBesides(operation);
  for (const std::vector<BufferId>* touched : {&it.reads, &it.writes}) {
    for (const BufferId id : *touched) {
      const std::vector<OperationId>& writers = writers_[static_cast<size_t>(id.index)];
      const auto next = std::upper_bound(writers.begin(), writers.end(), operation);
      if (next != writers.end()) until = std::min(until, next->index);
    }
  }
  return until;
}

// Of an input, while the operation's outputs are not touched.
int32_t RecomputeChains::FirstPresumedReadBesides(OperationId operation) const {
  const Operation& it = profile_.at(operation);
  auto first = static_cast<int32_t>(profile_.operations.size());
  for (const BufferId id : it.reads) {
    const std::vector<OperationId>& readers = presumed_[static_cast<size_t>(id.index)];
    for (auto at = std::upper_bound(readers.begin(), readers.end(), operation);
         at != readers.end() && at->index < first; ++at) {
      if (!TouchesAll(profile_.at(*at), it.writes)) first = at->index;
    }
  }
  return first;
}

// Its inputs may be dropped meanwhile if they are recomputable themselves: restoring recurses.
bool RecomputeChains::CanRecomputeUntilFreed(BufferId buffer) const {
  const Buffer& it = profile_.at(buffer);
  const std::vector<OperationId>& writers = writers_[static_cast<size_t>(buffer.index)];
  if (it.persistent || it.handed_on || writers.empty()) return false;
  const std::vector<BufferId>& reads = profile_.at(writers.back()).reads;
  return CanRepeat(writers.back(), {it.dies.index + 1}) &&
         std::all_of(reads.begin(), reads.end(),
                     [&](BufferId read) { return LivesBefore(read, it.dies); });
}

bool RecomputeChains::IsRecomputableUntilFree(const IdleInterval& interval) const {
  if (!interval.content_dead) return false;
  const Buffer& buffer = profile_.at(interval.buffer);
  if (buffer.kind == BufferKind::kWorkspace) return true;
  const bool ends_with_its_free = !buffer.persistent && interval.to.index == buffer.dies.index + 1;
  return !is_live_ || (ends_with_its_free &&
                       can_be_made_until_freed_[static_cast<size_t>(interval.buffer.index)]);
}

bool RecomputeChains::IsRecomputableAt(BufferId buffer, OperationId user, OperationId until) const {
  const OperationId writer = WriterBefore(buffer, user);
  if (writer.index < 0 || !CanRepeat(writer, until)) return false;
  const std::vector<BufferId>& reads = profile_.at(writer).reads;
  return std::all_of(reads.begin(), reads.end(),
                     [&](BufferId read) { return LivesBefore(read, until); });
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

bool RecomputeChains::Collect(BufferId target, Search& search) const {
  if (search.present(target)) return true;
  if (is_live_ && !LivesBefore(target, search.before)) return false;
  const OperationId writer = WriterBefore(target, search.before);
  if (writer.index < 0) return false;
  uint32_t& entered = search.marks.question_of_[static_cast<size_t>(writer.index)];
  if (entered == search.marks.question_) return true;
  if (!CanRepeat(writer, search.before)) return false;
  entered = search.marks.question_;
  search.waiting.push_back(writer);
  return true;
}

bool RecomputeChains::Visit(OperationId operation, Search& search) const {
  search.chain.push_back(operation);
  const std::vector<BufferId>& reads = profile_.at(operation).reads;
  return std::all_of(reads.begin(), reads.end(), [&](BufferId id) { return Collect(id, search); });
}

std::vector<OperationId> RecomputeChains::Find(const std::vector<BufferId>& targets,
                                               OperationId before, Present present) const {
  Marks marks(profile_.operations.size());
  return Find(targets, before, present, marks);
}

std::vector<OperationId> RecomputeChains::Find(const std::vector<BufferId>& targets,
                                               OperationId before, Present present,
                                               Marks& marks) const {
  ++marks.question_;
  Search search{before, present, marks, {}, {}};
  for (BufferId target : targets) {
    if (!Collect(target, search)) return {};
  }
  while (!search.waiting.empty()) {
    const OperationId operation = search.waiting.back();
    search.waiting.pop_back();
    if (!Visit(operation, search)) return {};
  }
  // In the original order, inputs come first.
  std::sort(search.chain.begin(), search.chain.end());
  return search.chain;
}

}  // namespace spillway::scheduler
