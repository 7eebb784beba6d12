#include "interposer/ledger/conditional_bodies.h"

#include <utility>

namespace spillway::interposer {

using base::MutexLock;

ConditionalBodies& ConditionalBodies::Instance() {
  static ConditionalBodies* const bodies = new ConditionalBodies;
  return *bodies;
}

void ConditionalBodies::Add(CUgraphNode node, std::vector<CUgraph> bodies) {
  const MutexLock lock(mutex_);
  bodies_[node] = std::move(bodies);
  count_.store(bodies_.size(), std::memory_order_relaxed);
}

std::optional<std::vector<CUgraph>> ConditionalBodies::Of(CUgraphNode node) const {
  if (empty()) return std::nullopt;
  const MutexLock lock(mutex_);
  const auto found = bodies_.find(node);
  if (found == bodies_.end()) return std::nullopt;
  return found->second;
}

void ConditionalBodies::Forget(CUgraphNode node) {
  const MutexLock lock(mutex_);
  bodies_.erase(node);
  count_.store(bodies_.size(), std::memory_order_relaxed);
}

void ConditionalBodies::ForgetAll() {
  const MutexLock lock(mutex_);
  bodies_.clear();
  count_.store(0, std::memory_order_relaxed);
}

}  // namespace spillway::interposer
