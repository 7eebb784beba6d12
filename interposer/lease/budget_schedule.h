// Budgets that change at certain launches: how tests let a job's budget change in mid-run, the same
// at every run.
//
// Read from SPILLWAY_BUDGET_SCHEDULE ("launch:bytes,..."); Launched is called by every launch, on
// any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace spillway::interposer {

class BudgetSchedule {
 public:
  BudgetSchedule() = default;
  // What does not parse, and what follows it, is left out.
  explicit BudgetSchedule(const std::string& text);
  BudgetSchedule& operator=(BudgetSchedule&& other) noexcept {
    changes_ = std::move(other.changes_);
    return *this;
  }

  bool empty() const { return changes_.empty(); }
  // One more launch; true when it is one at which the budget changes.
  bool Launched(std::size_t* bytes);

 private:
  struct Change {
    std::uint64_t launch;
    std::size_t bytes;
  };
  std::vector<Change> changes_;
  std::atomic<std::uint64_t> launches_{0};
};

}  // namespace spillway::interposer
