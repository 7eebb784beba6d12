// Chains of a program's own undocumented kernels, mostly over memory allocated just before.
//
// Spillway experiments with them, drops what they make and makes it again
// (interposer/execute/state/launch_effects.h). Most overwrite one buffer whole. Some have a small
// output beside it, a number that changes with each launch, update in place, or write a part. Some
// count in memory: launched once too often, all that follows differs. It takes iterations that a
// plan is made for, so seeds do not draw this feature.
#include <optional>

#include "tests/fuzz/differential/digest.h"
#include "tests/fuzz/differential/features/all.h"
#include "tests/fuzz/differential/features/large_buffers.h"
#include "tests/fuzz/differential/features/reading.h"

namespace spillway::fuzz {
namespace {

constexpr char kOwnKernel[] = "_ZN8spillway4fuzz3OwnE";
constexpr std::uint64_t kLargestOutputBytes = 5 * kMiB;
constexpr std::uint64_t kLargestSmallBytes = 16 * kKiB;
constexpr std::uint64_t kSlowFlops = 20'000'000'000;
constexpr std::uint32_t kParameters = 11;

constexpr std::uint8_t kUpdates = 1, kCounts = 2, kNumberChanges = 4;

struct OwnArguments {
  std::uint64_t form = 0;
  std::uint64_t out = 0, out_bytes = 0;
  std::uint64_t more = 0, more_bytes = 0;  // a small output, or the counter; 0: none
  std::uint64_t first = 0, first_bytes = 0;
  std::uint64_t second = 0, second_bytes = 0;  // 0: none
  std::uint64_t seed = 0;
  std::uint64_t flops = 0;
};
static_assert(sizeof(OwnArguments) == kParameters * sizeof(std::uint64_t));

OwnArguments Load(void* const* arguments) {
  OwnArguments loaded;
  for (std::uint32_t i = 0; i < kParameters; ++i)
    std::memcpy(reinterpret_cast<std::uint64_t*>(&loaded) + i, arguments[i], sizeof(std::uint64_t));
  return loaded;
}

std::uint8_t* At(std::uint64_t address) { return reinterpret_cast<std::uint8_t*>(address); }

void Scatter(std::uint64_t digest, std::uint64_t to, std::uint64_t bytes) {
  for (std::uint64_t i = 0; i < bytes; i += sizeof(std::uint32_t)) {
    const auto word = static_cast<std::uint32_t>(Scramble(digest + i));
    std::memcpy(At(to) + i, &word, sizeof word);
  }
}

void Own(const simulator::LaunchShape&, void* const* arguments) {
  const OwnArguments it = Load(arguments);
  std::uint64_t digest = FoldBytes(FoldWord(kDigestStart, it.seed), At(it.first), it.first_bytes);
  if (it.second != 0) digest = FoldBytes(digest, At(it.second), it.second_bytes);
  if (it.form & kUpdates) digest = FoldBytes(digest, At(it.out), it.out_bytes);
  if (it.form & kCounts) {
    std::uint32_t count = 0;
    std::memcpy(&count, At(it.more), sizeof count);
    digest = FoldWord(digest, ++count);
    std::memcpy(At(it.more), &count, sizeof count);
  } else if (it.more != 0) {
    Scatter(~digest, it.more, it.more_bytes);
  }
  Scatter(digest, it.out, it.out_bytes);
}

simulator::KernelCost Cost(const simulator::LaunchShape&, void* const* arguments) {
  return {Load(arguments).flops, 0};
}

struct Layout {
  simulator::KernelParameter parameters[kParameters];

  constexpr Layout() : parameters() {
    for (std::uint32_t i = 0; i < kParameters; ++i) parameters[i] = {i * 8, 8};
  }
};
constexpr Layout kLayout;
constexpr simulator::KernelEntry kEntries[] = {
    {kOwnKernel, Own, Cost, kParameters, kLayout.parameters}};

constexpr unsigned kUsesElsewherePercent = 85;

bool IsSmall(const Buffer& buffer) { return IsOnDevice(buffer) && buffer.bytes < kMiB; }

class OwnFeature : public Feature {
 public:
  const char* Name() const override { return "own"; }
  unsigned PerMille() const override { return 400; }
  bool IsDrawn() const override { return false; }

  // A chain, then others that take its memory, then readers of some links.
  void Propose(Proposer& proposer) const override {
    Random& dice = proposer.Dice();
    int source = proposer.Choose().PickBuffer(IsLarge);
    if (source == kNone) source = proposer.Choose().PickBuffer(IsOnDevice);
    if (source == kNone) return;
    std::vector<int> links = {source};
    const int stream = proposer.Choose().PickStream();
    for (std::uint64_t i = dice.Between(1, 4); i > 0; --i) {
      const int from = dice.Percent(70) ? links.back() : links[dice.Below(links.size())];
      const int made = ProposeLink(proposer, from, links[dice.Below(links.size())], stream);
      if (made != kNone) links.push_back(made);
      if (dice.Percent(20) && links.size() > 2) ProposeFree(proposer, links[links.size() - 2]);
    }
    for (std::uint64_t i = dice.Between(1, 5); i > 0; --i)
      ProposeUse(proposer, proposer.Choose().PickBuffer(IsLarge), kUsesElsewherePercent);
    for (const int link : links) {
      if (dice.Percent(60)) ProposeUse(proposer, link, kUsesElsewherePercent);
    }
  }

  void Run(const Operation& operation, const Running& running) const override {
    const auto address = [&](const View& view) {
      return running.table.slots[view.buffer].address + view.offset_bytes;
    };
    OwnArguments it;
    it.form = operation.form;
    it.out = address(operation.out);
    it.out_bytes = operation.out.bytes;
    it.first = address(operation.in[0]);
    it.first_bytes = operation.in[0].bytes;
    const bool has_second = operation.in.size() > 1;
    if (has_second) it.second = address(operation.in[1]);
    if (has_second) it.second_bytes = operation.in[1].bytes;
    if (!operation.more_out.empty()) it.more = address(operation.more_out[0]);
    if (!operation.more_out.empty()) it.more_bytes = operation.more_out[0].bytes;
    it.seed = operation.salt;
    if (operation.form & kNumberChanges) it.seed += static_cast<std::uint64_t>(operation.origin);
    it.flops = operation.slow ? kSlowFlops : 0;
    void* parameters[kParameters];
    for (std::uint32_t i = 0; i < kParameters; ++i)
      parameters[i] = reinterpret_cast<std::uint64_t*>(&it) + i;
    LaunchOne(operation, running, kOwnKernel, parameters);
  }

  std::span<const simulator::KernelEntry> Kernels() const override { return kEntries; }

 private:
  static std::optional<View> PickInput(Proposer& proposer, int buffer) {
    if (!IsLive(proposer, buffer)) return std::nullopt;
    const Buffer& from = proposer.Now().At(buffer);
    if (from.IsWholeInitialised() && from.bytes <= kLargestOutputBytes)
      return Whole(proposer, buffer);
    return proposer.Choose().PickReadable(buffer, kLargestWindowBytes);
  }

  // Nobody has written it; or kNone.
  static int ProposeNew(Proposer& proposer, std::uint64_t bytes) {
    if (proposer.Dice().Percent(20)) return proposer.NewMemory(bytes);
    const int buffer = proposer.NewBuffer();
    const bool is_made = proposer.Add({.kind = Kind::kAlloc,
                                       .form = static_cast<std::uint8_t>(AllocForm::kMemAlloc),
                                       .buffer = buffer,
                                       .bytes = bytes,
                                       .cuts_bytes = {0}});
    return is_made ? buffer : kNone;
  }

  static int ProposeLink(Proposer& proposer, int from, int beside, int stream) {
    Random& dice = proposer.Dice();
    const std::optional<View> first = PickInput(proposer, from);
    if (!first) return kNone;
    Operation link{.kind = Kind::kFeatureWork, .on_stream = true, .stream = stream};
    link.in = {*first};
    const std::optional<View> second =
        dice.Percent(30) ? PickInput(proposer, beside) : std::nullopt;
    if (second) link.in.push_back(*second);
    link.slow = dice.Percent(30);
    if (dice.Percent(25)) link.form |= kNumberChanges;
    dice.Percent(15) ? AddCounter(proposer, link) : AddSmallOutput(proposer, link);
    return SetTarget(proposer, from, link) && proposer.Add(link) ? link.out.buffer : kNone;
  }

  // Mostly something new as a whole.
  static bool SetTarget(Proposer& proposer, int from, Operation& link) {
    Random& dice = proposer.Dice();
    if (dice.Percent(12) && proposer.Now().At(from).IsWholeInitialised() &&
        IsLarge(proposer.Now().At(from))) {
      link.form |= kUpdates;
      link.out = Whole(proposer, from);
      link.in[0] = link.out;
      return true;
    }
    const int target = ProposeNew(proposer, dice.Between(kMiB / 4, kLargestOutputBytes / 4) * 4);
    if (target == kNone) return false;
    link.out = Whole(proposer, target);
    if (dice.Percent(10)) link.out.bytes = RoundUp(link.out.bytes / 2, 4);
    return true;
  }

  static void AddCounter(Proposer& proposer, Operation& link) {
    const int buffer = proposer.Choose().PickBuffer(IsSmall);
    if (buffer == kNone) return;
    std::optional<View> counter = proposer.Choose().PickReadable(buffer, kLargestSmallBytes);
    if (!counter || counter->bytes < sizeof(std::uint32_t)) return;
    counter->bytes = sizeof(std::uint32_t);
    link.form |= kCounts;
    link.in.push_back(*counter);
    link.more_out = {*counter};
  }

  static void AddSmallOutput(Proposer& proposer, Operation& link) {
    if (!proposer.Dice().Percent(25)) return;
    const int small = ProposeNew(proposer, proposer.Dice().Between(1, kLargestSmallBytes / 4) * 4);
    if (small != kNone) link.more_out = {Whole(proposer, small)};
  }
};

}  // namespace

const Feature& Own() {
  static const OwnFeature own;
  return own;
}

}  // namespace spillway::fuzz
