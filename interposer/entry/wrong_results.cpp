#include "interposer/entry/wrong_results.h"

#include <atomic>
#include <cstdio>

namespace spillway::entry {

void SayResultsAreWrong(interposer::JobMemory* job) {
  static constinit std::atomic<bool> said{false};
  if (job->view().IsLost() || said.exchange(true)) return;  // what is lost was said (spilling.cpp)
  fprintf(stderr,
          "spillway: the kernel %s did not make the same bytes again when its dropped output was "
          "recomputed. No wrong result has reached the program, but it cannot go on: from now on "
          "its calls fail. Run it with --no-repeat-kernels."
          "\n",
          job->view().NameOfWrong().c_str());
}

}  // namespace spillway::entry
