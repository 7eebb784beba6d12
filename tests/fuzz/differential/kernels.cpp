#include "tests/fuzz/differential/kernels.h"

#include <cstddef>
#include <cstring>
#include <iterator>
#include <span>
#include <vector>

#include "simulator/kernels/module_elf.h"
#include "tests/fuzz/differential/digest.h"
#include "tests/fuzz/differential/feature.h"
#include "tests/fuzz/differential/random.h"

namespace spillway::fuzz {
namespace {

std::uint8_t* Address(const ViewArgument& view) {
  return reinterpret_cast<std::uint8_t*>(view.pointer +
                                         static_cast<std::uint64_t>(view.displacement));
}

std::uint64_t FoldView(std::uint64_t digest, const ViewArgument& view) {
  const std::uint8_t* const bytes = Address(view);
  if (view.stride_bytes == 0) return FoldBytes(digest, bytes, view.bytes);
  for (std::uint64_t i = 0; i + 8 <= view.bytes; i += view.stride_bytes)
    digest = FoldBytes(digest, bytes + i, 8);
  return digest;
}

void WriteView(std::uint64_t digest, const ViewArgument& view) {
  std::uint8_t* const bytes = Address(view);
  const std::uint64_t step_bytes = view.stride_bytes == 0 ? 8 : view.stride_bytes;
  std::uint64_t i = 0;
  for (; i + 8 <= view.bytes; i += step_bytes) {
    const std::uint64_t word = Scramble(digest + i);
    std::memcpy(bytes + i, &word, 8);
  }
  if (view.stride_bytes != 0 || i >= view.bytes) return;
  const std::uint64_t word = Scramble(digest + i);
  std::memcpy(bytes + i, &word, view.bytes - i);
}

void Mix(const MixArguments& arguments) {
  std::uint64_t digest = FoldWord(kDigestStart, arguments.seed);
  for (std::uint32_t i = 0; i < arguments.input_count; ++i)
    digest = FoldView(digest, arguments.in[i]);
  WriteView(digest, arguments.out);
}

template <typename Field>
Field Load(const void* argument) {
  Field field;
  std::memcpy(&field, argument, sizeof(field));
  return field;
}

ViewArgument LoadView(void* const* arguments) {
  return {Load<std::uint64_t>(arguments[0]), Load<std::int64_t>(arguments[1]),
          Load<std::uint64_t>(arguments[2]), Load<std::uint64_t>(arguments[3])};
}

MixArguments LoadFlat(void* const* arguments) {
  MixArguments mix;
  mix.input_count = Load<std::uint32_t>(arguments[0]);
  mix.decoy = Load<std::uint64_t>(arguments[1]);
  mix.out = LoadView(arguments + 2);
  for (int i = 0; i < kMaximumInputs; ++i) mix.in[i] = LoadView(arguments + 6 + 4 * i);
  mix.seed = Load<std::uint64_t>(arguments[kFlatParameters - 2]);
  mix.flops = Load<std::uint64_t>(arguments[kFlatParameters - 1]);
  return mix;
}

void MixFlat(const simulator::LaunchShape&, void* const* arguments) { Mix(LoadFlat(arguments)); }
void MixStruct(const simulator::LaunchShape&, void* const* arguments) {
  Mix(Load<MixArguments>(arguments[0]));
}

simulator::KernelCost FlatCost(const simulator::LaunchShape&, void* const* arguments) {
  return {LoadFlat(arguments).flops, 0};
}
simulator::KernelCost StructCost(const simulator::LaunchShape&, void* const* arguments) {
  return {Load<MixArguments>(arguments[0]).flops, 0};
}

// 8 bytes each but the first, which is 4: the layout of the same fields in a structure.
struct FlatLayout {
  simulator::KernelParameter parameters[kFlatParameters];

  constexpr FlatLayout() : parameters() {
    for (std::uint32_t i = 0; i < kFlatParameters; ++i) parameters[i] = {i * 8, i == 0 ? 4u : 8u};
  }
};
static_assert(sizeof(MixArguments) == kFlatParameters * 8 && offsetof(MixArguments, decoy) == 8);

constexpr FlatLayout kFlatLayout;
constexpr simulator::KernelParameter kStructLayout[] = {{0, sizeof(MixArguments)}};
constexpr simulator::KernelEntry kKernels[] = {
    {kFlatKernel, MixFlat, FlatCost, kFlatParameters, kFlatLayout.parameters},
    {kStructKernel, MixStruct, StructCost, 1, kStructLayout},
};
}  // namespace

namespace {

// `kernels` and what the features add to them that have variables, or have none.
struct Module {
  std::vector<simulator::KernelEntry> kernels;
  std::vector<simulator::GlobalEntry> variables;
  simulator::Image image{};

  Module(std::span<const simulator::KernelEntry> own, bool with_variables)
      : kernels(own.begin(), own.end()) {
    for (const Feature* feature : AllFeatures()) {
      const auto globals = feature->Variables();
      if (globals.empty() == with_variables) continue;
      const auto added = feature->Kernels();
      kernels.insert(kernels.end(), added.begin(), added.end());
      variables.insert(variables.end(), globals.begin(), globals.end());
    }
    image = {{'S', 'P', 'I', 'L', 'L', 'S', 'I', 'M'},     simulator::kImageVersion,
             static_cast<std::uint32_t>(kernels.size()),   kernels.data(),
             static_cast<std::uint32_t>(variables.size()), variables.data()};
  }
};

}  // namespace

const void* KernelImage() {
  static const Module module(kKernels, false);
  static const void* const file = simulator::ModuleElfOf(module.image);
  return file;
}

const void* VariablesImage() {
  static const Module module({}, true);
  static const void* const file = simulator::ModuleElfOf(module.image);
  return file;
}

}  // namespace spillway::fuzz
