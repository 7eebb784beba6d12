// Finds the largest and smallest values for which a predicate holds, by bisection.
//
// Pure except for the predicate, which is assumed to hold for all easier values. Where that is not
// exactly so, the result still holds, but may not be the extreme.
#pragma once

#include <algorithm>
#include <cstdint>

namespace spillway::papers {

// The largest multiple of `step` up to `most` that holds, where larger ones are harder; 0 if `step`
// itself fails. With a `fineness` of n the search ends when less than an nth could be added; 0
// finds the exact maximum.
template <class Holds>
int64_t LargestMultiple(int64_t step, int64_t most, Holds holds, int64_t fineness = 0) {
  int64_t good = 0, bad = 1;  // in steps
  while (bad * step <= most && holds(bad * step)) {
    good = bad;
    bad *= 2;
  }
  bad = std::min(bad, most / step + 1);
  while (bad - good > 1 && (fineness == 0 || bad - good > good / fineness)) {
    const int64_t middle = good + (bad - good) / 2;
    (holds(middle * step) ? good : bad) = middle;
  }
  return good * step;
}

// The smallest value in [least, most] that holds, in steps of `step` from `least`, where smaller
// ones are harder; most + 1 if none.
template <class Holds>
int64_t SmallestFrom(int64_t least, int64_t most, int64_t step, Holds holds) {
  int64_t bad = -1, good = (most - least) / step + 1;  // in steps
  while (good - bad > 1) {
    const int64_t middle = bad + (good - bad) / 2;
    (holds(least + middle * step) ? good : bad) = middle;
  }
  const int64_t value = least + good * step;
  return value > most ? most + 1 : value;
}

}  // namespace spillway::papers
