// One run of a plan through the cost model's rules (cost_model.h). Used once; one thread.
#pragma once

#include <vector>

#include "scheduler/plan/copy_engines.h"
#include "scheduler/plan/cost_model.h"

namespace spillway::scheduler {

class IterationRun {
 public:
  IterationRun(const CostModel& model, const Problem& problem, const Plan& plan);

  Prediction Run(Timeline* timeline);

 private:
  enum class Where : uint8_t {
    kAbsent,  // dead, dropped or unborn
    kResident,
    kLeaving,  // offload queued or running; still occupies its bytes
    kOnHost,
    kArriving,  // prefetch running; occupies its bytes
  };
  struct State {
    Where where = Where::kAbsent;
    bool host_valid = false;
    bool awaited = false;       // its prefetch is queued; steps that touch it wait
    bool ends_on_copy = false;  // died during a copy; released when the copy ends
    bool operator==(const State&) const = default;
  };
  // Popped entries stay in the array, so that nothing moves.
  struct Queue {
    std::vector<BufferId> buffers;
    size_t next = 0;
    bool empty() const { return next == buffers.size(); }
    BufferId head() const { return buffers[next]; }
    void Push(BufferId id) { buffers.push_back(id); }
    void Pop() { ++next; }
  };
  enum class Blocked : uint8_t { kNo, kRestore, kMemory, kNever };

  State& state(BufferId id) { return states_[static_cast<size_t>(id.index)]; }
  int64_t footprint(BufferId id) const { return model_.footprint_bytes(id); }
  bool IsWellFormed() const;
  void SetFirstState();
  void SetStateAtEnd(const Action& action);
  bool RunIteration();
  void OverwriteInputs();
  bool IsSteady(const std::vector<State>& before) const;

  bool RunStep(int32_t index);
  Blocked BlockReason(const Step& step) const;
  int64_t MissingBytes(const Step& step) const;
  bool WaitForStart(int32_t index, const Step& step);
  void AwaitLaunch();
  void BeginStep(const Step& step);
  void EndStep(const Step& step);
  void GiveMemory(BufferId id);
  void StartPrefetch(BufferId id);
  void BringToLife(const Step& step);
  void StartTriggeredPrefetches(int32_t index);
  void ActAfter(int32_t index);
  int64_t duration_ns(const Step& step) const;
  int64_t WorkspaceBytes(const Step& step) const;

  void Die(BufferId id);
  void Offload(BufferId id);
  void Drop(BufferId id);

  void RunEnginesUntil(int64_t time_ns);
  void FinishCopy();
  void PumpToHost();
  void PumpToDevice();
  void Use(int64_t change_bytes);
  void ReleaseEvicted(BufferId id);
  void ReleaseDead(BufferId id);
  int64_t free_bytes() const { return problem_.budget_bytes - used_bytes_; }
  bool Fail(Verdict verdict, int32_t step);

  const CostModel& model_;
  const Problem& problem_;
  const Plan& plan_;
  const IterationProfile& profile_;
  std::vector<State> states_;
  CopyEngines engines_;
  MappingHost host_;
  Queue to_host_, to_device_;
  size_t next_action_ = 0;  // the first action of the current step or a later one
  int64_t now_ns_ = 0;
  int64_t iteration_start_ns_ = 0;
  int64_t used_bytes_ = 0;
  bool step_wants_memory_ = false;
  Prediction result_;
  StallCauses step_stalls_;
  Timeline* timeline_ = nullptr;
};

}  // namespace spillway::scheduler
