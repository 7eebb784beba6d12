// A library makes something large from something small, which is freed while the large one waits
// for its next use: like a fully connected layer's weight gradient.
//
// A plan may drop the large one, and hold the small one to make it again
// (scheduler/plan/held_inputs.h). It takes an iteration that a plan is made for, so only
// --iterations asks for it, and seeds do not.
#include "tests/fuzz/differential/features/large_buffers.h"

namespace spillway::fuzz {
namespace {

constexpr std::uint64_t kLeastGain = 4;  // what is made is so many times as large
constexpr std::uint64_t kLargestInputBytes = 3 * kMiB / 2;
constexpr std::uint64_t kLargestGradientBytes = 10 * kMiB;

constexpr unsigned kUsesElsewherePercent = 90;

class GradientsFeature : public Feature {
 public:
  const char* Name() const override { return "gradients"; }
  unsigned PerMille() const override { return 150; }
  bool IsDrawn() const override { return false; }

  void Propose(Proposer& proposer) const override {
    Random& dice = proposer.Dice();
    const int first = ProposeOne(proposer);
    const int second = dice.Percent(40) ? ProposeOne(proposer) : kNone;
    for (std::uint64_t i = dice.Between(2, 5); i > 0; --i)
      ProposeUse(proposer, proposer.Choose().PickBuffer(IsLarge), kUsesElsewherePercent);
    if (dice.Percent(60)) proposer.NewMemory(dice.Between(kMiB, kLargestGradientBytes));
    for (const int gradient : {first, second}) {
      ProposeUse(proposer, gradient, kUsesElsewherePercent);
      if (dice.Percent(30)) ProposeFree(proposer, gradient);
    }
  }

  void Run(const Operation& operation, const Running& running) const override {
    Recompute().Run(operation, running);
  }

 private:
  static int ProposeOne(Proposer& proposer) {
    Random& dice = proposer.Dice();
    const std::uint64_t input_bytes = dice.Between(kMiB / 4, kLargestInputBytes / 4) * 4;
    const int input = proposer.NewMemory(input_bytes);
    const int gradient = proposer.NewMemory(
        dice.Between(input_bytes * kLeastGain / 4, kLargestGradientBytes / 4) * 4);
    if (input == kNone || gradient == kNone) return kNone;
    const int stream = proposer.Choose().PickStream();
    ProposeFill(proposer, input, stream);
    if (dice.Percent(60)) proposer.Add({.kind = Kind::kContextSync});
    const bool is_made = proposer.Add({.kind = Kind::kFeatureWork,
                                       .on_stream = true,
                                       .stream = stream,
                                       .slow = dice.Percent(10),
                                       .out = Whole(proposer, gradient),
                                       .in = {Whole(proposer, input)}});
    if (dice.Percent(40)) ProposeUse(proposer, gradient, kUsesElsewherePercent);
    ProposeFree(proposer, input);
    // The freed memory is the first that this could be.
    if (dice.Percent(60)) ProposeFill(proposer, proposer.NewMemory(input_bytes), stream);
    return is_made ? gradient : kNone;
  }

  static void ProposeFill(Proposer& proposer, int buffer, int stream) {
    if (buffer == kNone) return;
    proposer.Add({.kind = Kind::kFill,
                  .form = static_cast<std::uint8_t>(FillForm::kD32),
                  .on_stream = true,
                  .stream = stream,
                  .out = Whole(proposer, buffer)});
  }
};

}  // namespace

const Feature& Gradients() {
  static const GradientsFeature gradients;
  return gradients;
}

}  // namespace spillway::fuzz
