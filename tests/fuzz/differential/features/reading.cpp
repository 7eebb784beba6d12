#include "tests/fuzz/differential/features/reading.h"

#include <optional>

#include "tests/fuzz/differential/random.h"
#include "tests/support/driver_check.h"

namespace spillway::fuzz {

void ProposeObjectOver(Proposer& proposer, std::uint64_t largest_bytes,
                       bool (*accepts)(const View&)) {
  Chooser& choose = proposer.Choose();
  const int buffer =
      choose.PickBuffer([](const Buffer& b) { return !b.InHostMemory() && b.bytes > kMiB; });
  if (buffer == kNone) return;
  const std::optional<View> view = choose.PickReadable(buffer, largest_bytes);
  if (!view || !accepts(*view)) return;
  proposer.Add({.kind = Kind::kFeatureCall,
                .object = proposer.NewObject(),
                .object_use = ObjectUse::kMake,
                .names = {*view}});
}

void ProposeReading(Proposer& proposer, int object, std::uint64_t largest_bytes) {
  Chooser& choose = proposer.Choose();
  const View in = proposer.Now().ObjectAt(object).maker.names[0];
  const int target = choose.PickBuffer([&](const Buffer& b) {
    return b.form != AllocForm::kPageable && &b != &proposer.Now().At(in.buffer);
  });
  if (target == kNone) return;
  const std::optional<View> out = choose.PickWritable(target, largest_bytes);
  if (out) AddReading(proposer, object, in, *out);
}

void AddReading(Proposer& proposer, int object, const View& in, const View& out) {
  Operation kernel{.kind = Kind::kFeatureWork,
                   .on_stream = true,
                   .stream = proposer.Choose().PickStream(),
                   .out = out};
  kernel.in = {in};
  kernel.slow = proposer.Dice().Percent(40);
  kernel.object = object;
  kernel.object_use = ObjectUse::kRead;
  proposer.Add(kernel);
}

void LaunchOne(const Operation& operation, const Running& running, const char* kernel,
               void** parameters) {
  SPILLWAY_DRIVER_CALL(cuLaunchKernel(running.device.KernelNamed(kernel), 1, 1, 1, 1, 1, 1, 0,
                                      running.table.StreamOf(operation), parameters, nullptr));
}

}  // namespace spillway::fuzz
