#include "interposer/ledger/graphs.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace spillway::interposer {

using base::MutexLock;

namespace {

template <class Item>
void Append(std::vector<Item>* to, std::vector<Item>&& from) {
  to->insert(to->end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

}  // namespace

void NodeFacts::Add(NodeFacts&& other) {
  Append(&words, std::move(other.words));
  Append(&copies, std::move(other.copies));
  Append(&sets, std::move(other.sets));
  allocated_bytes += other.allocated_bytes;
  complete = complete && other.complete;
}

std::shared_ptr<const NodeFacts> GraphLedger::SumOf(const GraphFacts& nodes) {
  auto sum = std::make_shared<NodeFacts>();
  for (const auto& [node, facts] : nodes) sum->Add(NodeFacts(facts));
  std::sort(sum->words.begin(), sum->words.end());
  sum->words.erase(std::unique(sum->words.begin(), sum->words.end()), sum->words.end());
  return sum;
}

void GraphLedger::Instantiated(CUgraphExec executable, GraphFacts facts) {
  std::shared_ptr<const NodeFacts> sum = SumOf(facts);
  const MutexLock lock(mutex_);
  executables_[executable] = {std::move(facts), std::move(sum), false};
}

void GraphLedger::Updated(CUgraphExec executable, GraphFacts facts) {
  std::shared_ptr<const NodeFacts> sum = SumOf(facts);
  const MutexLock lock(mutex_);
  const auto found = executables_.find(executable);
  if (found != executables_.end()) found->second = {std::move(facts), std::move(sum), false};
}

void GraphLedger::NodeChanged(CUgraphExec executable, CUgraphNode node, NodeFacts facts) {
  const MutexLock lock(mutex_);
  const auto found = executables_.find(executable);
  if (found == executables_.end()) return;
  found->second.nodes[node] = std::move(facts);
  found->second.sum = nullptr;
  found->second.launched = false;
}

std::size_t GraphLedger::Destroyed(CUgraphExec executable) {
  const MutexLock lock(mutex_);
  const auto found = executables_.find(executable);
  if (found == executables_.end()) return 0;
  std::size_t bytes = 0;
  for (const auto& [node, facts] : found->second.nodes) bytes += facts.allocated_bytes;
  executables_.erase(found);
  return bytes;
}

GraphLedger::Launch GraphLedger::AboutToLaunch(CUgraphExec executable) {
  const MutexLock lock(mutex_);
  const auto found = executables_.find(executable);
  if (found == executables_.end()) return {};
  Executable& known = found->second;
  if (!known.sum) known.sum = SumOf(known.nodes);
  return {known.sum, !std::exchange(known.launched, true)};
}

std::size_t GraphLedger::size() const {
  const MutexLock lock(mutex_);
  return executables_.size();
}

}  // namespace spillway::interposer
