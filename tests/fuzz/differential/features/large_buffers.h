// Proposals of several features for large buffers, which plans move.
#pragma once

#include <optional>

#include "tests/fuzz/differential/features/all.h"

namespace spillway::fuzz {

inline bool IsOnDevice(const Buffer& buffer) { return !buffer.InHostMemory(); }
inline bool IsLarge(const Buffer& buffer) {
  return IsOnDevice(buffer) && buffer.bytes > kChunkBytes;
}

inline View Whole(const Proposer& proposer, int buffer) {
  return View{.buffer = buffer, .offset_bytes = 0, .bytes = proposer.Now().At(buffer).bytes};
}

inline bool IsLive(const Proposer& proposer, int buffer) {
  return buffer != kNone && proposer.Now().At(buffer).live;
}

// By a kernel, which mostly writes elsewhere.
inline void ProposeUse(Proposer& proposer, int buffer, unsigned elsewhere_percent) {
  Chooser& choose = proposer.Choose();
  if (!IsLive(proposer, buffer)) return;
  const int target =
      proposer.Dice().Percent(elsewhere_percent) ? choose.PickBuffer(IsLarge) : buffer;
  if (target == kNone) return;
  const std::optional<View> in = choose.PickKernelInput(buffer),
                            out = choose.PickKernelOutput(target);
  if (!in || !out) return;
  proposer.Add({.kind = Kind::kKernel, .stream = choose.PickStream(), .out = *out, .in = {*in}});
}

inline void ProposeFree(Proposer& proposer, int buffer) {
  if (!IsLive(proposer, buffer)) return;
  const AllocForm form = proposer.Now().At(buffer).form;
  if (form == AllocForm::kFeature || IsHostMemory(form)) return;
  const FreeForm free = IsStreamOrdered(form) ? FreeForm::kFreeAsync : FreeForm::kMemFree;
  proposer.Add({.kind = Kind::kFree,
                .form = static_cast<std::uint8_t>(free),
                .stream = proposer.Choose().PickStream(),
                .buffer = buffer});
}

}  // namespace spillway::fuzz
