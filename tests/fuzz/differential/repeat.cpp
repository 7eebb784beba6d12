#include "tests/fuzz/differential/repeat.h"

#include <algorithm>
#include <set>

#include "tests/fuzz/differential/limits.h"
#include "tests/fuzz/differential/world.h"

namespace spillway::fuzz {
namespace {

constexpr int kNumbersPerIteration = 10000;

bool MayRepeat(const Operation& operation) {
  switch (operation.kind) {
    case Kind::kStreamCreate:
    case Kind::kStreamDestroy:
    case Kind::kPoolCreate:
    case Kind::kPoolDestroy:
    case Kind::kGive:
    case Kind::kTake:
    case Kind::kRefusals:
      return false;
    case Kind::kAlloc:
      return !IsHostMemory(static_cast<AllocForm>(operation.form));
    default:
      return true;
  }
}

class Repeater {
 public:
  Repeater(const std::vector<Operation>& program, const Shape& shape, const Repetition& repetition)
      : shape_(shape),
        repetition_(repetition),
        opening_(program.begin(), program.begin() + program.size() / 3) {
    const std::size_t rest = program.size() - opening_.size();
    for (int i = 0; i < repetition.patterns; ++i) {
      const auto first = opening_.size() + rest * i / repetition.patterns;
      const auto last = opening_.size() + rest * (i + 1) / repetition.patterns;
      bodies_.emplace_back(program.begin() + first, program.begin() + last);
    }
  }

  std::vector<Operation> Run() {
    for (const Operation& operation : opening_) Add(operation);
    for (const auto& [buffer, state] : world_.Buffers()) kept_.insert(buffer);
    for (iteration_ = 1; iteration_ <= repetition_.iterations; ++iteration_) AddIteration();
    return std::move(result_);
  }

 private:
  void AddIteration() {
    const int pattern = (iteration_ - 1) / repetition_.run_length % repetition_.patterns;
    for (Operation operation : bodies_[static_cast<std::size_t>(pattern)]) {
      const bool frees_kept = operation.kind == Kind::kFree && kept_.contains(operation.buffer);
      if (!MayRepeat(operation) || frees_kept) continue;
      Renumber(operation);
      Add(operation);
    }
    FreeTheRest();
  }

  void FreeTheRest() {
    std::vector<Operation> frees;
    for (const auto& [buffer, state] : world_.Buffers()) {
      if (!state.live || kept_.contains(buffer)) continue;
      frees.push_back({.kind = Kind::kFree,
                       .thread = state.thread,
                       .form = static_cast<std::uint8_t>(FreeForm::kMemFree),
                       .buffer = buffer});
    }
    for (const Operation& operation : frees) Add(operation);
  }

  void Renumber(int& buffer) const {
    if (buffer != kNone && !kept_.contains(buffer)) buffer += iteration_ * kNumbersPerIteration;
  }
  void Renumber(Operation& operation) const {
    Renumber(operation.buffer);
    Renumber(operation.decoy);
    Renumber(operation.out.buffer);
    for (std::vector<View>* views : {&operation.in, &operation.more_out, &operation.names}) {
      for (View& view : *views) Renumber(view.buffer);
    }
    for (Operation& part : operation.body) Renumber(part);
  }

  void Add(Operation operation) {
    const bool has_decoy = operation.decoy == kNone || world_.Buffers().contains(operation.decoy);
    if (!has_decoy) operation.decoy = kNone;
    if (!world_.Allows(operation)) return;
    if (operation.kind == Kind::kAlloc && !MayHold(world_, shape_, operation)) return;
    operation.origin = static_cast<int>(result_.size());
    world_.Apply(operation);
    result_.push_back(std::move(operation));
  }

  const Shape& shape_;
  const Repetition repetition_;
  const std::vector<Operation> opening_;
  std::vector<std::vector<Operation>> bodies_;
  World world_;
  std::set<int> kept_;  // what lives on from the opening, or was freed in it
  int iteration_ = 0;
  std::vector<Operation> result_;
};

}  // namespace

std::vector<Operation> Repeat(const std::vector<Operation>& program, const Shape& shape,
                              const Repetition& repetition) {
  return repetition.iterations == 0 ? program : Repeater(program, shape, repetition).Run();
}

}  // namespace spillway::fuzz
