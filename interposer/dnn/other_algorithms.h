// Operations whose first choice of algorithm or plan cannot run within the job's memory, each once.
//
// The hooks of cuDNN's queries note them on the program's threads; the report reads them at exit.
// Kept for ever, in a table of fixed size. Further ones are only counted.
// Never: takes a lock, allocates, or fails.
#pragma once

#include <atomic>
#include <cstddef>

namespace spillway::dnn {

struct OtherAlgorithm {
  char operation[120] = {};
  std::size_t first_choice_bytes = 0;  // workspace that does not fit
  std::size_t offered_bytes = 0;       // of the first choice that does
};

void NoteOtherAlgorithm(const OtherAlgorithm& other);

std::size_t OtherAlgorithmCount();

// Null from the first index without a kept one on.
const OtherAlgorithm* OtherAlgorithmAt(std::size_t index);

}  // namespace spillway::dnn
