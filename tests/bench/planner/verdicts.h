// Counts the rows that must hold, so that printing the tables is also a check.
//
// One per run of spillway-papers, on its one thread. Rows whose paper figure is not at hand are
// counted apart: they prove nothing.
#pragma once

#include <string>
#include <vector>

namespace spillway::papers {

class Verdicts {
 public:
  // What a table prints behind the row: "ok" or "FAILS".
  const char* Must(bool holds, const std::string& row);
  // "paper's figure not at hand".
  const char* NotAtHand();

  // A summary of one line, and a line for each row that failed.
  void Print() const;
  bool all_hold() const { return failed_.empty(); }

 private:
  int held_ = 0, not_at_hand_ = 0;
  std::vector<std::string> failed_;
};

}  // namespace spillway::papers
