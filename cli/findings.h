// What `spillway doctor` found: a list of facts, each judged, each with what to do if it is not
// good.
//
// Pure values; printing is to strings. One thread.
//
// Invariants
//  1. A problem stops jobs; a warning makes them slower or loses something that can be named; both
//  have a
//     remedy.
#pragma once

#include <string>
#include <vector>

namespace spillway::cli {

enum class Level { kOk, kWarning, kProblem };

struct Finding {
  Level level;
  std::string subject;  // a word or two, stable: scripts look for it
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
