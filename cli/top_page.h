// What `spillway top` shows of the agent's status: devices, and a table of jobs with what they do
// each second.
//
// Pure: two documents of the agent, the view that somebody has chosen, and the size of the terminal
// in; lines out.
//
// Invariants
//  1. No line is longer than the terminal, and no number is cut: where there is no room for a
//  column it is left out, the least
//     important first.
//  2. Rates are of the time between the two documents, by the agent's own clock; without an earlier
//  one they are not shown.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/json_value.h"

namespace spillway::cli {

struct TopSize {
  int rows = 24, columns = 80;
};

// A job on one device.
struct TopJob {
  std::string name, command, state;
  std::int64_t gpu = -1;  // -1: it has none yet
  std::int64_t budget_bytes = 0, wanted_bytes = 0, resident_bytes = 0, host_bytes = 0;
  bool has_rates = false;
  std::int64_t in_per_second = 0, out_per_second = 0, stall_permille = 0, iterations_per_1000_s = 0;
};

struct TopView {
  size_t sort = 0;  // place in TopSorts
  bool is_reversed = false;
  size_t selected = 0, first = 0;  // of the jobs in their order
};

// What jobs can be sorted by; the first is as the agent has them.
const std::vector<std::string>& TopSorts();

std::vector<TopJob> TopJobs(const JsonValue& status, const JsonValue* before);
void SortJobs(const TopView& view, std::vector<TopJob>& jobs);

// "1.5G", at most six letters.
std::string ShortBytes(std::int64_t bytes);

// Keeps the view's selection and scrolling within the jobs and the rows.
std::string TopPage(const JsonValue& status, const std::vector<TopJob>& jobs, const TopSize& size,
                    TopView& view);

}  // namespace spillway::cli
