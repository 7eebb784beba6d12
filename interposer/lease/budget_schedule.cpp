#include "interposer/lease/budget_schedule.h"

#include <cstdlib>

namespace spillway::interposer {

BudgetSchedule::BudgetSchedule(const std::string& text) {
  const char* at = text.c_str();
  while (*at) {
    char* end = nullptr;
    const std::uint64_t launch = std::strtoull(at, &end, 10);
    if (end == at || *end != ':') return;
    at = end + 1;
    const std::uint64_t bytes = std::strtoull(at, &end, 10);
    if (end == at) return;
    changes_.push_back({launch, bytes});
    at = *end == ',' ? end + 1 : end;
  }
}

base::InlineVector<std::size_t, 2> BudgetSchedule::CountLaunch() {
  base::InlineVector<std::size_t, 2> budgets;
  const std::uint64_t launch = launches_.fetch_add(1, std::memory_order_relaxed) + 1;
  for (const Change& change : changes_) {
    if (change.launch == launch) budgets.push_back(change.bytes);
  }
  return budgets;
}

}  // namespace spillway::interposer
