#include "interposer/ledger/graphs.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

namespace spillway::interposer {

using base::MutexLock;

namespace {

template <class Item>
void Append(std::vector<Item>* to, std::vector<Item>&& from) {
  to->insert(to->end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

template <class Item>
void KeepOneOfEach(std::vector<Item>* items) {
  std::sort(items->begin(), items->end(), std::less<>());
  items->erase(std::unique(items->begin(), items->end()), items->end());
}

CUdeviceptr SourceOf(const CUDA_MEMCPY3D& copy) {
  return copy.srcDevice + copy.srcXInBytes +
         copy.srcPitch * (copy.srcY + copy.srcHeight * copy.srcZ);
}
CUdeviceptr TargetOf(const CUDA_MEMCPY3D& copy) {
  return copy.dstDevice + copy.dstXInBytes +
         copy.dstPitch * (copy.dstY + copy.dstHeight * copy.dstZ);
}

NodeFacts OnlyNames(NodeFacts facts) {
  for (const WriteFacts& write : facts.writes) {
    if (const auto* set = std::get_if<SetFacts>(&write)) {
      facts.words.push_back(set->base);
      continue;
    }
    const auto& copy = std::get<CUDA_MEMCPY3D>(write);
    if (copy.srcMemoryType != CU_MEMORYTYPE_HOST) facts.words.push_back(SourceOf(copy));
    if (copy.dstMemoryType != CU_MEMORYTYPE_HOST) facts.words.push_back(TargetOf(copy));
  }
  facts.writes.clear();
  return facts;
}

}  // namespace

void NodeFacts::Add(NodeFacts&& other) {
  Append(&kernels, std::move(other.kernels));
  Append(&words, std::move(other.words));
  Append(&writes, std::move(other.writes));
  allocated_bytes += other.allocated_bytes;
  complete = complete && other.complete;
  names_all = names_all || other.names_all;
}

// A disabled node's memory may be gone; the node brings nothing.
NodeFacts NodeFacts::AsLaunched() const {
  if (enabled && !in_body) return *this;
  NodeFacts names = OnlyNames(*this);
  if (enabled && !writes.empty()) names.complete = false;
  return names;
}

std::vector<const NodeFacts*> InOrder(const GraphFacts& nodes) {
  std::vector<const NodeFacts*> ordered;
  ordered.reserve(nodes.size());
  for (const auto& [node, facts] : nodes) ordered.push_back(&facts);
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const NodeFacts* a, const NodeFacts* b) { return a->place < b->place; });
  return ordered;
}

// Any node of an updated executable may be disabled: copies and sets promise nothing.
std::shared_ptr<const NodeFacts> GraphLedger::SumOf(const Executable& executable) {
  auto sum = std::make_shared<NodeFacts>();
  const bool any_may_be_off = executable.is_updated && !executable.off.empty();
  for (const NodeFacts* facts : InOrder(executable.nodes)) sum->Add(facts->AsLaunched());
  if (any_may_be_off) sum->complete = false;
  KeepOneOfEach(&sum->kernels);
  KeepOneOfEach(&sum->words);
  return sum;
}

void GraphLedger::Instantiated(CUgraphExec executable, GraphFacts facts) {
  Executable made;
  made.nodes = std::move(facts);
  made.sum = SumOf(made);
  const MutexLock lock(mutex_);
  executables_[executable] = std::move(made);
}

void GraphLedger::Updated(CUgraphExec executable, GraphFacts facts) {
  const MutexLock lock(mutex_);
  const auto found = executables_.find(executable);
  if (found == executables_.end()) return;
  found->second.nodes = std::move(facts);
  found->second.is_updated = true;
  found->second.sum = nullptr;
}

void GraphLedger::NodeChanged(CUgraphExec executable, CUgraphNode node, NodeFacts facts) {
  const MutexLock lock(mutex_);
  const auto found = executables_.find(executable);
  if (found == executables_.end()) return;
  NodeFacts& known = found->second.nodes[node];  // an updated executable keeps old facts
  facts.enabled = known.enabled;
  facts.in_body = known.in_body;
  facts.place = known.place;
  known = std::move(facts);
  found->second.sum = nullptr;
}

void GraphLedger::NodeSwitched(CUgraphExec executable, CUgraphNode node, bool enabled) {
  const MutexLock lock(mutex_);
  const auto found = executables_.find(executable);
  if (found == executables_.end()) return;
  Executable& known = found->second;
  if (!known.is_updated) known.nodes[node].enabled = enabled;
  enabled ? static_cast<void>(known.off.erase(node)) : static_cast<void>(known.off.insert(node));
  known.sum = nullptr;
}

GraphLedger::Taken GraphLedger::Take(CUgraphExec executable) {
  const MutexLock lock(mutex_);
  return executables_.extract(executable);
}

void GraphLedger::PutBack(Taken taken) {
  const MutexLock lock(mutex_);
  executables_.insert(std::move(taken));
}

GraphLedger::Launch GraphLedger::AboutToLaunch(CUgraphExec executable) {
  const MutexLock lock(mutex_);
  const auto found = executables_.find(executable);
  if (found == executables_.end()) return {};
  Executable& known = found->second;
  if (!known.sum) known.sum = SumOf(known);
  const auto& kernels = known.sum->kernels;
  const bool brings_new_kernels = !std::includes(known.scanned.begin(), known.scanned.end(),
                                                 kernels.begin(), kernels.end(), std::less<>());
  return {known.sum, brings_new_kernels};
}

void GraphLedger::MarkScanned(CUgraphExec executable, const NodeFacts& facts) {
  const MutexLock lock(mutex_);
  const auto found = executables_.find(executable);
  if (found == executables_.end()) return;
  std::vector<CUfunction>& known = found->second.scanned;
  known.insert(known.end(), facts.kernels.begin(), facts.kernels.end());
  KeepOneOfEach(&known);
}

std::size_t GraphLedger::size() const {
  const MutexLock lock(mutex_);
  return executables_.size();
}

}  // namespace spillway::interposer
