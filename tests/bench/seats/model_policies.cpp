#include <algorithm>
#include <deque>

#include "base/units.h"
#include "tests/bench/seats/policy.h"

namespace spillway::seats {
namespace {

constexpr int64_t kFaultPercent = 50;

// Others keep what nobody needs. The device restores only as much as has left.
void MakeRoomFor(Device& device, int64_t needed_bytes, const std::vector<size_t>& by_use) {
  int64_t left_bytes = std::max<int64_t>(device.memory_bytes() - needed_bytes, 0);
  for (const size_t i : by_use) {
    Job& job = device.jobs()[i];
    job.budget_bytes = std::min(job.resident_bytes, left_bytes);
    left_bytes -= job.budget_bytes;
  }
}

class FirstCome : public Policy {
 public:
  explicit FirstCome(const FirstComeRules& rules) : rules_(rules) {}

  void Decide(Device& device) override {
    std::vector<Job>& jobs = device.jobs();
    Queue(jobs);
    if (!queue_.empty()) EndTurn(jobs[queue_.front()], device.now_ns());
    Queue(jobs);
    if (queue_.empty()) return;
    Begin(device);
  }

 private:
  bool IsQueued(size_t i) const {
    return std::find(queue_.begin(), queue_.end(), i) != queue_.end();
  }
  void Queue(const std::vector<Job>& jobs) {
    for (size_t i = 0; i < jobs.size(); ++i) {
      if (jobs[i].HasWork() && !IsQueued(i)) queue_.push_back(i);
    }
  }
  // The first in the queue has the device since `since_ns_`.
  void EndTurn(const Job& job, int64_t now_ns) {
    if (!is_begun_) return;
    const bool is_tested = now_ns >= next_test_ns_;
    if (is_tested) next_test_ns_ += rules_.test_ns;
    if (now_ns - since_ns_ < rules_.quantum_ns && !(is_tested && !job.HasWork())) return;
    Recent(queue_.front());
    queue_.pop_front();
    is_begun_ = false;
  }
  void Recent(size_t i) {
    std::erase(recent_, i);
    recent_.insert(recent_.begin(), i);
  }
  void Begin(Device& device) {
    if (!is_begun_) {
      is_begun_ = true;
      since_ns_ = device.now_ns();
      next_test_ns_ = since_ns_ + rules_.test_ns;
    }
    for (Job& job : device.jobs()) job.may_compute = false;
    Job& first = device.jobs()[queue_.front()];
    std::vector<size_t> others = recent_;
    std::erase(others, queue_.front());
    MakeRoomFor(device, first.kind.need_bytes, others);
    first.may_compute = true;
    first.budget_bytes = first.kind.need_bytes;
  }

  const FirstComeRules rules_;
  std::deque<size_t> queue_;
  std::vector<size_t> recent_;  // who had the device, latest first
  bool is_begun_ = false;
  int64_t since_ns_ = 0, next_test_ns_ = 0;
};

class Managed : public Policy {
 public:
  void Decide(Device& device) override {
    int64_t needed_bytes = 0;
    std::vector<size_t> idle;
    std::vector<Job>& jobs = device.jobs();
    for (size_t i = 0; i < jobs.size(); ++i) {
      if (jobs[i].HasWork()) {
        needed_bytes += jobs[i].kind.need_bytes;
      } else {
        idle.push_back(i);
      }
    }
    MakeRoomFor(device, needed_bytes, idle);
    for (Job& job : jobs) {
      job.may_compute = job.streams = job.HasWork();
      if (!job.may_compute) continue;
      job.budget_bytes =
          needed_bytes <= device.memory_bytes()
              ? job.kind.need_bytes
              : base::scale(device.memory_bytes(), job.kind.need_bytes, needed_bytes);
    }
  }
  Movement movement() const override { return {kFaultPercent, false}; }
};

}  // namespace

std::unique_ptr<Policy> MakeFirstCome(const FirstComeRules& rules) {
  return std::make_unique<FirstCome>(rules);
}
std::unique_ptr<Policy> MakeManaged() { return std::make_unique<Managed>(); }

}  // namespace spillway::seats
