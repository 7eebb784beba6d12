// The outcome of one case.
#pragma once

#include <string>
#include <vector>

#include "tests/contract/contract.h"

namespace spillway::contract {

struct Figure {
  std::string name;
  std::string value;
  std::string unit;
};

struct Outcome {
  const Case* rule = nullptr;
  std::vector<std::string> failures;
  std::vector<std::string> observations;
  std::vector<Figure> figures;
  std::string skip_reason;
  double seconds = 0;
  bool simulated = false;

  const char* Verdict() const {
    if (!failures.empty()) return "failed";
    return skip_reason.empty() ? "passed" : "skipped";
  }
};

}  // namespace spillway::contract
