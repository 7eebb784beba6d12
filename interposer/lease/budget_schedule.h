// Changes the budget at certain launches, so that tests can repeat a change in mid-run.
//
// Read from SPILLWAY_BUDGET_SCHEDULE ("launch:bytes,..."). Several at one launch follow each other.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/inline_vector.h"

namespace spillway::interposer {

class BudgetSchedule {
 public:
  BudgetSchedule() = default;
  // Ignores everything from the first part on that does not parse.
  explicit BudgetSchedule(const std::string& text);
  BudgetSchedule& operator=(BudgetSchedule&& other) noexcept {
    changes_ = std::move(other.changes_);
    return *this;
  }

  bool empty() const { return changes_.empty(); }
  // The budgets to have before this launch, in order.
  base::InlineVector<std::size_t, 2> CountLaunch();

 private:
  struct Change {
    std::uint64_t launch;
    std::size_t bytes;
  };
  std::vector<Change> changes_;
  std::atomic<std::uint64_t> launches_{0};
};

}  // namespace spillway::interposer
