// Programs whose only wait is cudaFree: behind one the host reads or fills what earlier work used.
//
// The orderer, too, inserts nothing else where such a program's host must wait (order.h). Seeds do
// not draw this feature: with it they would be other programs.
#include <optional>

#include "tests/fuzz/differential/features/all.h"
#include "tests/fuzz/differential/features/large_buffers.h"

namespace spillway::fuzz {
namespace {

bool IsPinned(const Buffer& buffer) {
  return buffer.form == AllocForm::kPinned || buffer.form == AllocForm::kRegistered;
}

class BarriersFeature : public Feature {
 public:
  const char* Name() const override { return "barriers"; }
  unsigned PerMille() const override { return 250; }
  bool IsDrawn() const override { return false; }

  void Propose(Proposer& proposer) const override {
    const int buffer = HostBuffer(proposer);
    if (buffer == kNone) return;
    std::optional<View> shown;
    for (std::uint64_t i = proposer.Dice().Between(1, 3); i > 0; --i) {
      if (const std::optional<View> view = ProposeWork(proposer, buffer)) shown = view;
    }
    proposer.Add({.kind = Kind::kFreeBarrier});
    if (!shown) return;
    if (proposer.Dice().Percent(70)) proposer.Add({.kind = Kind::kHostFold, .in = {*shown}});
    if (proposer.Dice().Percent(30)) proposer.Add({.kind = Kind::kHostFill, .out = *shown});
  }

  void Run(const Operation&, const Running&) const override {}

 private:
  static int HostBuffer(Proposer& proposer) {
    const int known = proposer.Choose().PickBuffer(IsPinned);
    if (known != kNone && proposer.Dice().Percent(85)) return known;
    Operation alloc{.kind = Kind::kAlloc, .form = static_cast<std::uint8_t>(AllocForm::kPinned)};
    alloc.buffer = proposer.NewBuffer();
    alloc.bytes = proposer.Dice().Between(1, 64) * 4 * kKiB;
    alloc.cuts_bytes = {0, alloc.bytes / 2};
    return proposer.Add(alloc) ? alloc.buffer : known;
  }

  // The view that it uses, if it added work.
  static std::optional<View> ProposeWork(Proposer& proposer, int buffer) {
    const std::uint64_t choice = proposer.Dice().Below(100);
    if (choice < 35) return ProposeCopy(proposer, buffer, true);
    if (choice < 60) return ProposeCopy(proposer, buffer, false);
    return choice < 85 ? ProposeKernel(proposer) : ProposeHostFunction(proposer, buffer);
  }

  static std::optional<View> ProposeCopy(Proposer& proposer, int buffer, bool to_host) {
    const int other = proposer.Choose().PickBuffer(IsOnDevice);
    if (other == kNone) return std::nullopt;
    Operation copy{
        .kind = Kind::kCopy, .on_stream = true, .stream = proposer.Choose().PickStream()};
    const bool placed = to_host ? proposer.Choose().PlaceCopy(copy, other, buffer)
                                : proposer.Choose().PlaceCopy(copy, buffer, other);
    if (!placed) return std::nullopt;
    const View view = to_host ? copy.out : copy.in.front();
    if (!proposer.Add(copy) || !view.IsDense()) return std::nullopt;
    return view;
  }

  // On the device alone: what other streams find behind the free.
  static std::optional<View> ProposeKernel(Proposer& proposer) {
    const int target = proposer.Choose().PickBuffer(IsOnDevice);
    const int source = proposer.Choose().PickBuffer(IsOnDevice);
    if (target == kNone) return std::nullopt;
    const std::optional<View> out = proposer.Choose().PickKernelOutput(target);
    if (!out) return std::nullopt;
    Operation kernel{.kind = Kind::kKernel,
                     .form = static_cast<std::uint8_t>(proposer.Dice().Below(4)),
                     .on_stream = true,
                     .stream = proposer.Choose().PickStream(),
                     .slow = proposer.Dice().Percent(60),
                     .out = *out};
    if (const std::optional<View> in = proposer.Choose().PickKernelInput(source))
      kernel.in.push_back(*in);
    proposer.Add(kernel);
    return std::nullopt;
  }

  static std::optional<View> ProposeHostFunction(Proposer& proposer, int buffer) {
    const int stream = proposer.Choose().PickStream();
    if (stream == kLegacyStream || proposer.Now().At(buffer).form != AllocForm::kPinned)
      return std::nullopt;
    const std::optional<View> view = proposer.Choose().PickReadable(buffer, kLargestWindowBytes);
    if (!view) return std::nullopt;
    const Operation function{
        .kind = Kind::kHostFunction, .on_stream = true, .stream = stream, .out = *view};
    return proposer.Add(function) ? view : std::nullopt;
  }
};

}  // namespace

const Feature& Barriers() {
  static const BarriersFeature barriers;
  return barriers;
}

}  // namespace spillway::fuzz
