// Largest and smallest values for which something holds, found by bisection.
//
// Pure but for the question asked. What holds for a value is taken to hold for all easier ones:
// where that is not quite so, what is found holds all the same, but need not be the extreme.
#pragma once

#include <algorithm>
#include <cstdint>

namespace spillway::papers {

// The largest multiple of `step` up to `most` that holds, larger ones being harder; 0: not even
// `step` does. With a `fineness` of n the search ends when less than an nth could be added; 0: it
// is the largest.
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

// The smallest value in [least, most] that holds, in steps of `step` up from `least`, smaller ones
// being harder; most + 1: none.
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
