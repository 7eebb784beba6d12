// The page of `spillway top`: devices, and a table of jobs with rates per second.
//
// Invariants
//  1. No line exceeds the terminal, and no number is cut: the least important columns are left out
//     first.
//  2. Rates span the time between the two documents, by the agent's clock. Without an earlier
//     document there are none.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/json_value.h"

namespace spillway::cli {

struct TopSize {
  int rows = 24, columns = 80;
};

struct TopJob {
  std::string name, command, state;
  std::int64_t gpu = -1;  // -1: none yet
  std::int64_t budget_bytes = 0, wanted_bytes = 0, resident_bytes = 0, host_bytes = 0;
  bool has_rates = false;
  std::int64_t in_per_second = 0, out_per_second = 0, stall_permille = 0, iterations_per_1000_s = 0;
};

struct TopView {
  size_t sort = 0;
  bool is_reversed = false;
  size_t selected = 0, first = 0;
};

const std::vector<std::string>& TopSorts();

std::vector<TopJob> TopJobs(const JsonValue& status, const JsonValue* before);
void SortJobs(const TopView& view, std::vector<TopJob>& jobs);

// "1.5G", at most six characters.
std::string ShortBytes(std::int64_t bytes);

std::string TopPage(const JsonValue& status, const std::vector<TopJob>& jobs, const TopSize& size,
                    TopView& view);

}  // namespace spillway::cli
