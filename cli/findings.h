// The findings of `spillway doctor`: facts, each with a level and a remedy.
//
// Invariants
//  1. A problem stops jobs. A warning makes them slower or loses a feature. Both have a remedy.
#pragma once

#include <string>
#include <vector>

namespace spillway::cli {

enum class Level { kOk, kWarning, kProblem };

struct Finding {
  Level level;
  std::string subject;  // a word or two; stable, for scripts
  std::string fact;
  std::string remedy;  // empty when ok
};

using Findings = std::vector<Finding>;

std::string FindingsAsText(const Findings& findings);
// {"schema":1,"problems":N,"warnings":N,"findings":[{"level":"ok","subject":..,"fact":..,"remedy":..},
// ...]}
std::string FindingsAsJson(const Findings& findings);
int CountLevel(const Findings& findings, Level level);

}  // namespace spillway::cli
