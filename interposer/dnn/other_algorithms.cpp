#include "interposer/dnn/other_algorithms.h"

#include "base/once_table.h"

namespace spillway::dnn {
namespace {

constinit base::OnceTable<OtherAlgorithm, 128> others;

}  // namespace

void NoteOtherAlgorithm(const OtherAlgorithm& other) { others.Note(other.operation, other); }

std::size_t OtherAlgorithmCount() { return others.count(); }

const OtherAlgorithm* OtherAlgorithmAt(std::size_t index) { return others.At(index); }

}  // namespace spillway::dnn
