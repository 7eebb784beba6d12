// Library calls whose outputs Spillway drops, and makes again when their bytes are wanted.
//
// Outputs are made from one another and from small parameters; soon after a call one of its buffers
// is written or freed. Some calls cannot be recorded: they blend into old bytes, work in place or
// twice, write a part of an allocation, or make other bytes each time.
#include <array>
#include <optional>
#include <stdexcept>
#include <vector>

#include "tests/fuzz/differential/digest.h"
#include "tests/fuzz/differential/features/all.h"
#include "tests/fuzz/differential/features/large_buffers.h"
#include "tests/fuzz/differential/library.h"
#include "tests/fuzz/differential/random.h"
#include "tests/fuzz/differential/running.h"

namespace spillway::fuzz {
namespace {

constexpr char kEvenKernel[] = "_ZN8spillway4fuzz9NormalizeE";
constexpr char kUnevenKernel[] = "_ZN8spillway4fuzz15NormalizeUnevenE";
constexpr std::uint64_t kLargestOutputBytes = 5 * kMiB;
constexpr std::uint64_t kLargestParameterBytes = 16 * kKiB;
constexpr std::uint64_t kSlowFlops = 60'000'000'000;  // 1 ms on an H200

constexpr std::uint8_t kBlends = 1, kIsTwofold = 2, kIsExtended = 4, kIsUneven = 8, kHasScale = 16,
                       kHasBias = 32;

std::uint8_t* At(std::uint64_t address) { return reinterpret_cast<std::uint8_t*>(address); }

void WriteWords(std::uint64_t digest, std::uint64_t address, std::uint64_t bytes) {
  for (std::uint64_t i = 0; i < bytes; i += sizeof(std::uint32_t)) {
    const auto word = static_cast<std::uint32_t>(Scramble(digest + i));
    std::memcpy(At(address) + i, &word, sizeof word);
  }
}

LibraryArguments Load(void* const* arguments) {
  LibraryArguments loaded;
  for (int i = 0; i < kLibraryParameters; ++i)
    std::memcpy(reinterpret_cast<std::uint64_t*>(&loaded) + i, arguments[i], sizeof(std::uint64_t));
  return loaded;
}

void Normalize(const simulator::LaunchShape&, void* const* arguments) {
  const LibraryArguments it = Load(arguments);
  std::uint64_t digest = FoldBytes(FoldWord(kDigestStart, it.seed), At(it.x), it.x_bytes);
  for (const std::uint64_t parameter : {it.scale, it.bias}) {
    if (parameter != 0) digest = FoldBytes(digest, At(parameter), it.parameter_bytes);
  }
  if (it.other_than != 0 && it.other_than != ~it.mean) digest = Scramble(digest);
  if (it.blends != 0) digest = FoldBytes(digest, At(it.y), it.y_bytes);
  WriteWords(digest, it.y, it.y_bytes);
  for (const std::uint64_t statistic : {it.mean, it.variance}) {
    if (statistic != 0)
      WriteWords(FoldBytes(digest, At(statistic), it.parameter_bytes), statistic,
                 it.parameter_bytes);
  }
}

simulator::KernelCost Cost(const simulator::LaunchShape&, void* const* arguments) {
  return {Load(arguments).flops, 0};
}

struct Layout {
  simulator::KernelParameter parameters[kLibraryParameters];

  constexpr Layout() : parameters() {
    for (std::uint32_t i = 0; i < kLibraryParameters; ++i) parameters[i] = {i * 8, 8};
  }
};
constexpr Layout kLayout;
constexpr simulator::KernelEntry kEntries[] = {
    {kEvenKernel, Normalize, Cost, kLibraryParameters, kLayout.parameters},
    {kUnevenKernel, Normalize, Cost, kLibraryParameters, kLayout.parameters}};

bool CanBeMade(const Buffer& buffer) {
  return IsOnDevice(buffer) && buffer.bytes >= kMiB && buffer.bytes <= kLargestOutputBytes &&
         buffer.bytes % 4 == 0;
}

// Null for what the operation does not have.
class Views {
 public:
  Views(const Operation& operation, const Table& table) : table_(table) {
    auto next = operation.in.begin() + 1;
    x = Address(operation.in.front());
    if (operation.form & kHasScale) scale = Address(*next++);
    if (operation.form & kHasBias) bias = Address(*next++);
    if (!operation.more_out.empty()) mean = Address(operation.more_out.front());
    if (operation.more_out.size() > 1) variance = Address(operation.more_out.back());
    if (operation.in.size() > 1) parameter.bytes = operation.in.back().bytes;
    if (!operation.more_out.empty()) parameter.bytes = operation.more_out.back().bytes;
  }

  void *x = nullptr, *scale = nullptr, *bias = nullptr, *mean = nullptr, *variance = nullptr;
  LibraryTensor parameter{4};

 private:
  void* Address(const View& view) const {
    return At(table_.slots[view.buffer].address + view.offset_bytes);
  }

  const Table& table_;
};

class RecomputeFeature : public Feature {
 public:
  const char* Name() const override { return "recompute"; }
  unsigned PerMille() const override { return 250; }

  // A few layers of a network, then others that take their memory; then one is read, or an input
  // changes, or both.
  void Propose(Proposer& proposer) const override {
    Random& dice = proposer.Dice();
    const int first = dice.Percent(50) ? proposer.Choose().PickBuffer(IsLarge)
                                       : proposer.Choose().PickBuffer(IsOnDevice);
    if (first == kNone) return;
    std::vector<Layer> layers = {{.source = first, .target = first, .stream = kNone}};
    const int stream = proposer.Choose().PickStream();
    if (dice.Percent(60)) proposer.Add({.kind = Kind::kContextSync});
    for (std::uint64_t i = dice.Between(1, 4); i > 0; --i) {
      const Layer& below = dice.Percent(50) ? layers.front() : layers[dice.Below(layers.size())];
      const Layer layer{below.target, PickOutput(proposer), stream};
      if (layer.target != kNone && ProposeCall(proposer, layer)) layers.push_back(layer);
    }
    if (dice.Percent(60)) ProposeOthers(proposer);
    for (std::uint64_t i = dice.Between(0, 2); i > 0; --i) {
      const Layer& layer = layers[dice.Below(layers.size())];
      if (dice.Percent(70)) ProposeRead(proposer, layer.target);
      if (dice.Percent(70)) ProposeChange(proposer, dice.Percent(75) ? layer.source : layer.target);
    }
  }

  void Run(const Operation& operation, const Running& running) const override {
    const bool is_uneven = (operation.form & kIsUneven) != 0;
    LibraryWork work;
    work.kernel = running.device.KernelNamed(is_uneven ? kUnevenKernel : kEvenKernel);
    work.stream = running.table.StreamOf(operation);
    if (work.stream == nullptr)
      work.stream = kDefaultStream == kLegacyStream ? CU_STREAM_LEGACY : CU_STREAM_PER_THREAD;
    work.seed = operation.salt;
    work.flops = operation.slow ? kSlowFlops : 0;
    work.is_extended = (operation.form & kIsExtended) != 0;
    work.is_twofold = (operation.form & kIsTwofold) != 0;
    work.is_uneven = is_uneven;
    Views views(operation, running.table);
    LibraryTensor x_is{operation.in.front().bytes}, y_is{operation.out.bytes};
    const auto described = [](LibraryTensor& tensor) {
      return reinterpret_cast<cudnnTensorDescriptor_t>(&tensor);
    };
    const float one = 1, beta = operation.form & kBlends ? 1 : 0;
    void* const y =
        At(running.table.slots[operation.out.buffer].address + operation.out.offset_bytes);
    const cudnnStatus_t status = cudnnBatchNormalizationForwardTraining(
        reinterpret_cast<cudnnHandle_t>(&work), CUDNN_BATCHNORM_SPATIAL, &one, &beta,
        described(x_is), views.x, described(y_is), y, described(views.parameter), views.scale,
        views.bias, 0.5, views.mean, views.variance, 1e-5, nullptr, nullptr);
    if (status != CUDNN_STATUS_SUCCESS) throw std::runtime_error("the library's call failed");
  }

  std::span<const simulator::KernelEntry> Kernels() const override { return kEntries; }

 private:
  static std::optional<View> PickInput(Proposer& proposer, int buffer, std::uint64_t limit_bytes) {
    const Buffer& from = proposer.Now().At(buffer);
    const bool is_whole =
        from.IsWholeInitialised() && from.bytes % 4 == 0 && from.bytes <= limit_bytes;
    if (is_whole) return Whole(proposer, buffer);
    std::optional<View> view = proposer.Choose().PickReadable(buffer, limit_bytes);
    if (view) view->bytes -= view->bytes % 4;
    return view && view->bytes > 0 ? view : std::nullopt;
  }

  static int PickOutput(Proposer& proposer) {
    Random& dice = proposer.Dice();
    if (dice.Percent(50)) return proposer.Choose().PickBuffer(CanBeMade);
    return proposer.NewMemory(dice.Between(kMiB / 4, kLargestOutputBytes / 4) * 4);
  }

  struct Layer {
    int source, target, stream;
  };
  static bool ProposeCall(Proposer& proposer, const Layer& layer) {
    Random& dice = proposer.Dice();
    const std::optional<View> x = PickInput(proposer, layer.source, kLargestOutputBytes);
    if (!x) return false;
    Operation call{.kind = Kind::kFeatureWork, .on_stream = true, .stream = layer.stream};
    call.in = {*x};
    call.out = Whole(proposer, layer.target);
    call.slow = dice.Percent(40);
    const bool is_written = proposer.Now().At(layer.target).IsWholeInitialised();
    if (dice.Percent(8) && is_written) call.form |= kBlends;
    if (dice.Percent(8)) call.form |= kIsTwofold;
    if (dice.Percent(12)) call.form |= kIsUneven;
    if (dice.Percent(30)) call.form |= kIsExtended;
    if (dice.Percent(8) && is_written) call.out.bytes = RoundUp(call.out.bytes / 2, 4);
    if (dice.Percent(60) || (call.form & kIsUneven)) AddParameters(proposer, call);
    // A kind of call is even or is not.
    if (call.more_out.empty()) call.form &= static_cast<std::uint8_t>(~kIsUneven);
    return proposer.Add(call);
  }

  // What the calls have read must leave.
  static void ProposeOthers(Proposer& proposer) {
    for (std::uint64_t i = proposer.Dice().Between(2, 6); i > 0; --i) {
      const int buffer = proposer.Choose().PickBuffer(IsLarge);
      if (buffer == kNone) return;
      Operation kernel{.kind = Kind::kKernel, .stream = proposer.Choose().PickStream()};
      const std::optional<View> out = proposer.Choose().PickKernelOutput(buffer);
      if (!out) continue;
      kernel.out = *out;
      proposer.Add(kernel);
    }
  }

  static void AddParameters(Proposer& proposer, Operation& call) {
    std::uint64_t bytes = kLargestParameterBytes;
    std::array<std::optional<View>, 4> picked;
    for (auto& view : picked) {
      const auto is_small = [](const Buffer& b) { return IsOnDevice(b) && b.bytes < kMiB; };
      const int buffer = proposer.Dice().Percent(80) ? proposer.Choose().PickBuffer(is_small)
                                                     : proposer.Choose().PickBuffer(IsOnDevice);
      if (buffer == kNone || proposer.Dice().Percent(25)) continue;
      view = PickInput(proposer, buffer, bytes);
      if (view) bytes = view->bytes;
    }
    for (auto& view : picked) {
      if (view) view->bytes = bytes;
    }
    if (picked[0]) call.form |= kHasScale;
    if (picked[1]) call.form |= kHasBias;
    for (int i = 0; i < 2; ++i) {
      if (picked[i]) call.in.push_back(*picked[i]);
      if (picked[2 + i]) call.more_out.push_back(*picked[2 + i]);
    }
  }

  static void ProposeRead(Proposer& proposer, int buffer) {
    Chooser& choose = proposer.Choose();
    const int target = choose.PickBuffer(IsOnDevice);
    if (target == kNone || !proposer.Now().At(buffer).live) return;
    const std::optional<View> in = choose.PickKernelInput(buffer),
                              out = choose.PickKernelOutput(target);
    if (!in || !out) return;
    proposer.Add({.kind = Kind::kKernel, .stream = choose.PickStream(), .out = *out, .in = {*in}});
  }

  static void ProposeChange(Proposer& proposer, int buffer) {
    Random& dice = proposer.Dice();
    Chooser& choose = proposer.Choose();
    if (!proposer.Now().At(buffer).live) return;
    if (dice.Percent(25)) {
      const bool is_ordered = IsStreamOrdered(proposer.Now().At(buffer).form);
      if (proposer.Now().At(buffer).form == AllocForm::kFeature) return;
      proposer.Add({.kind = Kind::kFree,
                    .form = static_cast<std::uint8_t>(is_ordered ? FreeForm::kFreeAsync
                                                                 : FreeForm::kMemFree),
                    .stream = choose.PickStream(),
                    .buffer = buffer});
      return;
    }
    Operation change{.kind = Kind::kFill, .on_stream = true, .stream = choose.PickStream()};
    if (dice.Percent(50)) {
      if (choose.PlaceFill(change, buffer)) proposer.Add(change);
      return;
    }
    change.kind = Kind::kKernel;
    const std::optional<View> out = choose.PickKernelOutput(buffer);
    if (!out) return;
    change.out = *out;
    proposer.Add(change);
  }
};

}  // namespace

const Feature& Recompute() {
  static const RecomputeFeature recompute;
  return recompute;
}

}  // namespace spillway::fuzz
