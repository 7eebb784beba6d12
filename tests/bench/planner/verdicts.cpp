#include "tests/bench/planner/verdicts.h"

#include <cstdio>

namespace spillway::papers {

const char* Verdicts::Must(bool holds, const std::string& row) {
  if (holds) {
    ++held_;
    return "ok";
  }
  failed_.push_back(row);
  return "FAILS";
}

const char* Verdicts::NotAtHand() {
  ++not_at_hand_;
  return "paper's figure not at hand";
}

void Verdicts::Print() const {
  std::printf("\nRows that must hold: %d do, %zu fail; %d of the papers' figures are not at hand\n",
              held_, failed_.size(), not_at_hand_);
  for (const std::string& row : failed_) std::printf("FAILS: %s\n", row.c_str());
}

}  // namespace spillway::papers
