#include "scheduler/plan/oversized_operations.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "scheduler/plan/cost_model.h"

namespace spillway::scheduler {
namespace {

class OversizedOperations {
 public:
  explicit OversizedOperations(const Problem& problem)
      : problem_(problem),
        profile_(problem.iteration()),
        room_bytes_(profile_.operations.size(), problem.budget_bytes),
        touches_(profile_.buffers.size()),
        first_touch_(profile_.buffers.size()) {
    for (size_t i = 0; i < profile_.buffers.size(); ++i) TakeRoom({static_cast<int32_t>(i)});
    for (size_t i = 0; i < profile_.operations.size(); ++i) {
      for (const BufferId id : TouchedBy(profile_.operations[i])) {
        if (touches_[At(id)]++ == 0) first_touch_[At(id)] = {static_cast<int32_t>(i)};
      }
    }
  }

  std::optional<IterationProfile> Shrink() {
    std::optional<IterationProfile> less;
    for (size_t i = 0; i < profile_.operations.size(); ++i) {
      const Operation& operation = profile_.operations[i];
      int64_t excess_bytes = TouchedMovableBytes(problem_, operation) - room_bytes_[i];
      if (excess_bytes <= 0) continue;
      if (!less) less = profile_;
      for (const BufferId id : RemovableTouches(operation, {static_cast<int32_t>(i)})) {
        if (excess_bytes <= 0) break;
        excess_bytes -= Footprint(id);
        RemoveTouch(id, &less->operations[i]);
        if (!profile_.at(id).persistent) EndAtLastTouch(id, &*less);
      }
      if (excess_bytes > 0) return {};
    }
    return less;
  }

 private:
  int64_t Footprint(BufferId id) const { return FootprintOf(problem_, profile_.at(id).size_bytes); }

  // Of what is not touched, but cannot leave: immovable buffers, and an operation's workspaces.
  void TakeRoom(BufferId id) {
    const Buffer& buffer = profile_.at(id);
    const bool is_workspace = !buffer.persistent && buffer.born == buffer.dies;
    if (IsMovable(problem_, buffer) && !(is_workspace && !Touches(profile_.at(buffer.born), id)))
      return;
    const size_t from = buffer.persistent ? 0 : At(buffer.born);
    const size_t until = buffer.persistent ? room_bytes_.size() : At(buffer.dies) + 1;
    for (size_t i = from; i < until; ++i) room_bytes_[i] -= Footprint(id);
  }

  static bool Touches(const Operation& operation, BufferId id) {
    const std::vector<BufferId> touched = TouchedBy(operation);
    return std::find(touched.begin(), touched.end(), id) != touched.end();
  }

  // The first touch of a buffer that the iteration makes stays: it gives the buffer its content.
  std::vector<BufferId> RemovableTouches(const Operation& operation, OperationId at) const {
    std::vector<BufferId> ids = TouchedBy(operation);
    std::erase_if(ids, [&](BufferId id) {
      const Buffer& buffer = profile_.at(id);
      return !IsMovable(problem_, buffer) || buffer.handed_on ||
             (!buffer.persistent && first_touch_[At(id)] == at);
    });
    const auto rank = [this](BufferId id) {
      return std::pair(touches_[At(id)] > 1, profile_.at(id).size_bytes);
    };
    std::stable_sort(ids.begin(), ids.end(),
                     [&rank](BufferId a, BufferId b) { return rank(a) > rank(b); });
    return ids;
  }

  static void RemoveTouch(BufferId id, Operation* operation) {
    std::erase(operation->reads, id);
    std::erase(operation->writes, id);
    operation->replayable = false;
  }

  // Otherwise its memory would count although nothing else needs it.
  static void EndAtLastTouch(BufferId id, IterationProfile* less) {
    OperationId& dies = less->buffers[At(id)].dies;
    while (!Touches(less->at(dies), id)) --dies.index;
  }

  const Problem& problem_;
  const IterationProfile& profile_;
  std::vector<int64_t> room_bytes_;  // by operation, for movable buffers
  std::vector<int> touches_;         // operations, by buffer
  std::vector<OperationId> first_touch_;
};

}  // namespace

std::optional<IterationProfile> WithinBudget(const Problem& problem) {
  return OversizedOperations(problem).Shrink();
}

}  // namespace spillway::scheduler
