#include "tests/fuzz/differential/features/shared_bodies.h"

#include <algorithm>
#include <optional>

#include "tests/fuzz/differential/features/large_buffers.h"
#include "tests/fuzz/differential/random.h"

namespace spillway::fuzz {
namespace {

constexpr std::size_t kMostBuffers = 3;
constexpr std::size_t kLongestBody = 4;

enum class Part { kKernel, kCopy, kSet, kFromHost, kToHost };

// The device's buffers are of one size: copies and sets are of the whole.
struct Shared {
  std::vector<int> buffers;
  int host = kNone;
};

bool IsShareable(const Buffer& buffer) {
  return !buffer.InHostMemory() && buffer.form != AllocForm::kFeature &&
         buffer.IsWholeInitialised() && buffer.bytes >= kMiB && buffer.bytes <= kLargestDenseBytes;
}

int MakeBuffer(Proposer& proposer, std::uint64_t bytes) {
  const int buffer = proposer.NewMemory(bytes);
  if (buffer == kNone) return kNone;
  proposer.Add({.kind = Kind::kFill,
                .on_stream = true,
                .stream = proposer.Choose().PickStream(),
                .out = Whole(proposer, buffer)});
  return buffer;
}

int MakeHostBuffer(Proposer& proposer, std::uint64_t bytes) {
  const int buffer = proposer.NewBuffer();
  const auto form = static_cast<std::uint8_t>(AllocForm::kPinned);
  const bool is_made = proposer.Add(
      {.kind = Kind::kAlloc, .form = form, .buffer = buffer, .bytes = bytes, .cuts_bytes = {0}});
  const bool is_filled =
      is_made && proposer.Add({.kind = Kind::kHostFill, .out = Whole(proposer, buffer)});
  return is_filled ? buffer : kNone;
}

Shared PickShared(Proposer& proposer) {
  Shared shared;
  const int first = proposer.Choose().PickBuffer(IsShareable);
  const std::uint64_t bytes = first == kNone
                                  ? proposer.Dice().Between(kMiB / 4, kLargestDenseBytes / 4) * 4
                                  : proposer.Now().At(first).bytes;
  if (first != kNone) shared.buffers.push_back(first);
  for (std::size_t i = shared.buffers.size(); i < kMostBuffers; ++i) {
    const int other = proposer.Choose().PickBuffer(
        [&](const Buffer& buffer) { return IsShareable(buffer) && buffer.bytes == bytes; });
    const bool is_other = other != kNone && std::find(shared.buffers.begin(), shared.buffers.end(),
                                                      other) == shared.buffers.end();
    const int buffer = is_other ? other : MakeBuffer(proposer, bytes);
    if (buffer != kNone) shared.buffers.push_back(buffer);
  }
  if (proposer.Dice().Percent(40)) shared.host = MakeHostBuffer(proposer, bytes);
  return shared;
}

View PickView(Proposer& proposer, int buffer) {
  View view = Whole(proposer, buffer);
  if (proposer.Dice().Percent(70)) {
    view.stride_bytes = std::max<std::uint64_t>(8, RoundUp(view.bytes / 2000, 8) + 8);
  } else {
    view.offset_bytes = proposer.Dice().Percent(50) ? 0 : proposer.Dice().Below(view.bytes / 2);
    view.bytes = proposer.Dice().Magnitude(64, kLargestWindowBytes);
  }
  return view;
}

Operation MakeKernel(Proposer& proposer, const Shared& shared, std::uint8_t form) {
  Random& dice = proposer.Dice();
  const auto pick = [&] { return shared.buffers[dice.Below(shared.buffers.size())]; };
  Operation kernel{
      .kind = Kind::kKernel, .form = form, .on_stream = true, .slow = dice.Percent(20)};
  kernel.out = PickView(proposer, pick());
  for (std::uint64_t inputs = dice.Between(0, 2); inputs > 0; --inputs)
    kernel.in.push_back(PickView(proposer, pick()));
  return kernel;
}

Operation MakePart(Proposer& proposer, const Shared& shared, Part part, std::uint8_t form) {
  if (part == Part::kKernel) return MakeKernel(proposer, shared, form);
  Random& dice = proposer.Dice();
  const std::size_t to = dice.Below(shared.buffers.size());
  const std::size_t from =
      (to + dice.Between(1, shared.buffers.size() - 1)) % shared.buffers.size();
  Operation made{.kind = part == Part::kSet ? Kind::kFill : Kind::kCopy, .on_stream = true};
  made.out = Whole(proposer, part == Part::kToHost ? shared.host : shared.buffers[to]);
  if (part == Part::kFromHost) made.in = {Whole(proposer, shared.host)};
  if (part == Part::kCopy || part == Part::kToHost)
    made.in = {Whole(proposer, shared.buffers[from])};
  return made;
}

Part PickPart(Proposer& proposer, const Shared& shared) {
  const std::uint64_t choice = proposer.Dice().Below(10);
  if (choice < 5) return Part::kKernel;
  if (shared.host != kNone && choice < 8) return choice < 7 ? Part::kFromHost : Part::kToHost;
  return choice < 8 ? Part::kCopy : Part::kSet;
}

void UseSparsely(Proposer& proposer, int buffer) {
  View view = Whole(proposer, buffer);
  view.stride_bytes = RoundUp(view.bytes / 2000, 8) + 8;
  proposer.Add({.kind = Kind::kKernel,
                .on_stream = true,
                .stream = proposer.Choose().PickStream(),
                .out = view});
}

}  // namespace

void UseLargeMemory(Proposer& proposer) {
  constexpr std::uint64_t kLargeBytes = 24 * kMiB;
  for (int i = 0; i < 3; ++i) {
    const int buffer = proposer.NewMemory(kLargeBytes);
    if (buffer != kNone) UseSparsely(proposer, buffer);
  }
}

SharedBodies ProposeSharedBodies(Proposer& proposer) {
  SharedBodies bodies;
  const Shared shared = PickShared(proposer);
  if (shared.buffers.size() < 2) return bodies;
  for (std::uint64_t parts = proposer.Dice().Between(2, kLongestBody); parts > 0; --parts) {
    const Part part = PickPart(proposer, shared);
    const auto form = static_cast<std::uint8_t>(proposer.Dice().Below(4));  // any LaunchForm
    bodies.first.push_back(MakePart(proposer, shared, part, form));
    bodies.second.push_back(MakePart(proposer, shared, part, form));
  }
  return bodies;
}

}  // namespace spillway::fuzz
