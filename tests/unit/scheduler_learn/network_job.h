// A job that trains a network, as the events that a recorder would report: a profile of
// scheduler/networks run repeatedly.
//
// Shapes depend on the kind of operation and the touched sizes, never on a layer's name: equal
// layers have equal shapes.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "scheduler/learn/job_event.h"
#include "scheduler/trace/profile.h"

namespace spillway::scheduler::testing {

using Sink = std::function<void(const JobEvent&)>;

// What frameworks do besides running one operation after the other.
struct Habits {
  bool lazy_optimizer_state = false;   // allocated at the first update
  bool late_loss = false;              // the loss is freed when the next one has replaced it
  bool double_buffered_input = false;  // the next minibatch is fetched during this one
};

class NetworkJob {
 public:
  NetworkJob(IterationProfile profile, Habits habits, Sink sink)
      : profile_(std::move(profile)),
        habits_(habits),
        sink_(std::move(sink)),
        allocation_(profile_.buffers.size(), 0) {
    for (size_t i = 0; i < profile_.operations.size(); ++i) {
      if (profile_.operations[i].phase == Phase::kForward)
        loss_operation_ = static_cast<int32_t>(i);
    }
  }

  void SetUp() {
    for (size_t i = 0; i < profile_.buffers.size(); ++i) {
      const Buffer& buffer = profile_.buffers[i];
      const bool is_late =
          (habits_.lazy_optimizer_state && buffer.kind == BufferKind::kOptimizerState) ||
          (habits_.double_buffered_input && buffer.kind == BufferKind::kInput);
      if (!buffer.persistent || is_late) continue;
      Allocate(i);
      Operate(77, {{allocation_[i], true}});
    }
    if (habits_.double_buffered_input) FetchInput();
  }

  // The same model at another input length: shared weights and optimizer state, its own inputs.
  void SetUpBeside(const NetworkJob& model) {
    last_allocation_ = model.last_allocation_;
    for (size_t i = 0; i < profile_.buffers.size(); ++i) {
      const Buffer& buffer = profile_.buffers[i];
      if (buffer.persistent && buffer.kind != BufferKind::kInput)
        allocation_[i] = model.allocation_[i];
      if (buffer.kind == BufferKind::kInput) Allocate(i);
    }
  }

  void Iterate() {
    BeginStep();
    Run(0, profile_.operations.size());
  }

  // `steps` times forward and backward, then one update. Later steps add to the gradients of the
  // first.
  void IterateWithAccumulation(int steps) {
    const size_t update = FirstOf(Phase::kUpdate);
    keep_gradients_ = true;
    for (int step = 0; step < steps; ++step) {
      BeginStep();
      Run(0, update);
    }
    keep_gradients_ = false;
    Run(update, profile_.operations.size());
  }

  // Forward only; its buffers are freed at the end.
  void Evaluate() {
    BeginStep();
    const size_t end = FirstOf(Phase::kBackward);
    Run(0, end);
    for (size_t i = 0; i < profile_.buffers.size(); ++i) {
      const bool is_loss = habits_.late_loss && profile_.buffers[i].born.index == loss_operation_;
      if (!profile_.buffers[i].persistent && allocation_[i] != 0 && !is_loss) Free(i);
    }
  }

  // An additional operation that touches one of the weights.
  void Log(uint64_t shape) {
    for (size_t i = 0; i < profile_.buffers.size(); ++i) {
      if (profile_.buffers[i].kind != BufferKind::kParameter || allocation_[i] == 0) continue;
      return Operate(shape, {{allocation_[i], false}});
    }
  }

  // Called before each operation, with its index.
  void Before(std::function<void(int32_t)> hook) { before_ = std::move(hook); }
  uint64_t AllocationOf(size_t buffer) const { return allocation_[buffer]; }
  const IterationProfile& profile() const { return profile_; }

 private:
  size_t FirstOf(Phase phase) const {
    size_t i = 0;
    while (i < profile_.operations.size() && profile_.operations[i].phase != phase) ++i;
    return i;
  }

  void Allocate(size_t buffer) {
    allocation_[buffer] = ++*last_allocation_;
    sink_(JobEvent::Allocate(*last_allocation_, profile_.buffers[buffer].size_bytes));
  }
  void Free(size_t buffer) { sink_(JobEvent::Free(std::exchange(allocation_[buffer], 0))); }
  void Operate(uint64_t shape, std::vector<JobTouch> touches) {
    sink_(JobEvent::Operation(shape, touches));
  }

  void FetchInput() {
    for (size_t i = 0; i < profile_.buffers.size(); ++i) {
      if (profile_.buffers[i].kind != BufferKind::kInput) continue;
      fetched_ = {i, ++*last_allocation_};
      sink_(JobEvent::Allocate(*last_allocation_, profile_.buffers[i].size_bytes));
      Operate(88, {{*last_allocation_, true}});
    }
  }

  void BeginStep() {
    if (!habits_.double_buffered_input) return;
    if (allocation_[fetched_.first] != 0) Free(fetched_.first);
    allocation_[fetched_.first] = fetched_.second;
    FetchInput();
  }

  void Run(size_t from, size_t until) {
    for (size_t i = from; i < until; ++i) Step(static_cast<int32_t>(i));
  }

  void Step(int32_t index) {
    const Operation& operation = profile_.operations[static_cast<size_t>(index)];
    if (before_) before_(index);
    std::vector<JobTouch> touches;
    uint64_t shape =
        MixToken(static_cast<uint64_t>(operation.type), static_cast<uint64_t>(operation.phase));
    const auto touch = [&](BufferId id) {
      const auto i = static_cast<size_t>(id.index);
      const bool writes =
          std::find(operation.writes.begin(), operation.writes.end(), id) != operation.writes.end();
      if (const uint64_t loss = MakeIfNeeded(i, index)) late_ = loss;
      touches.push_back({allocation_[i], writes});
      shape = MixToken(shape, static_cast<uint64_t>(profile_.buffers[i].size_bytes * 2 + writes));
    };
    for (BufferId id : operation.reads) touch(id);
    for (BufferId id : operation.writes) {
      if (std::find(operation.reads.begin(), operation.reads.end(), id) == operation.reads.end())
        touch(id);
    }
    Operate(shape, touches);
    if (late_ != 0) sink_(JobEvent::Free(std::exchange(late_, 0)));
    FreeAfter(index);
  }

  // The allocation that the new one replaced, 0 for none.
  uint64_t MakeIfNeeded(size_t buffer, int32_t operation) {
    const bool is_loss = habits_.late_loss && IsLoss(buffer) && operation == loss_operation_;
    if (allocation_[buffer] != 0 && !is_loss) return 0;
    const uint64_t old = allocation_[buffer];
    Allocate(buffer);
    return old;
  }

  bool IsLoss(size_t buffer) const {
    return !profile_.buffers[buffer].persistent &&
           profile_.buffers[buffer].born.index == loss_operation_;
  }

  void FreeAfter(int32_t operation) {
    for (size_t i = 0; i < profile_.buffers.size(); ++i) {
      const Buffer& buffer = profile_.buffers[i];
      if (buffer.persistent || buffer.dies.index != operation || allocation_[i] == 0) continue;
      if (habits_.late_loss && IsLoss(i)) continue;
      if (keep_gradients_ && buffer.kind == BufferKind::kParameterGradient) continue;
      Free(i);
    }
  }

  IterationProfile profile_;
  Habits habits_;
  Sink sink_;
  std::vector<uint64_t> allocation_;  // by buffer; 0: none
  std::function<void(int32_t)> before_;
  std::pair<size_t, uint64_t> fetched_;  // the next minibatch
  std::shared_ptr<uint64_t> last_allocation_ = std::make_shared<uint64_t>(0);
  uint64_t late_ = 0;
  int32_t loss_operation_ = 0;
  bool keep_gradients_ = false;
};

}  // namespace spillway::scheduler::testing
