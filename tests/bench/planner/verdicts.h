// Counts the required rows, so that printing the tables is also a check.
//
// One per run, on its one thread. Rows without the paper's figure prove nothing, and are counted
// separately.
#pragma once

#include <string>
#include <vector>

namespace spillway::papers {

class Verdicts {
 public:
  // The text after a row: "ok" or "FAILS".
  const char* Must(bool holds, const std::string& row);
  const char* NotAtHand();

  // A summary line, and a line for each failed row.
  void Print() const;
  bool all_hold() const { return failed_.empty(); }

 private:
  int held_ = 0, not_at_hand_ = 0;
  std::vector<std::string> failed_;
};

}  // namespace spillway::papers
