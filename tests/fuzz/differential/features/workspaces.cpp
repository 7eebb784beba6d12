// Library calls work in memory whose bytes mean nothing between the calls, so Spillway drops it
// uncopied.
//
// A workspace serves several calls, whole or in part, while large buffers take its memory in
// between. At times the program uses it for something else.
#include <cstring>
#include <optional>
#include <stdexcept>

#include "tests/fuzz/differential/digest.h"
#include "tests/fuzz/differential/features/all.h"
#include "tests/fuzz/differential/library.h"
#include "tests/fuzz/differential/random.h"
#include "tests/fuzz/differential/running.h"

namespace spillway::fuzz {
namespace {

constexpr char kKernel[] = "_ZN8spillway4fuzz8ConvolveE";
constexpr std::uint64_t kLargestBytes = 5 * kMiB;
constexpr std::uint64_t kSlowFlops = 60'000'000'000;  // 1 ms on an H200

std::uint8_t* At(std::uint64_t address) { return reinterpret_cast<std::uint8_t*>(address); }

void Convolve(const simulator::LaunchShape&, void* const* arguments) {
  ConvolutionArguments it;
  for (int i = 0; i < kConvolutionParameters; ++i)
    std::memcpy(reinterpret_cast<std::uint64_t*>(&it) + i, arguments[i], sizeof(std::uint64_t));
  const std::uint64_t digest =
      FoldBytes(FoldWord(kDigestStart, it.seed), At(it.from), it.from_bytes);
  for (std::uint64_t i = 0; i < it.to_bytes; i += sizeof(std::uint32_t)) {
    const auto word = static_cast<std::uint32_t>(Scramble(digest + i));
    std::memcpy(At(it.to) + i, &word, sizeof word);
  }
}

simulator::KernelCost Cost(const simulator::LaunchShape&, void* const* arguments) {
  std::uint64_t flops = 0;
  std::memcpy(&flops, arguments[kConvolutionParameters - 1], sizeof flops);
  return {flops, 0};
}

constexpr simulator::KernelParameter kParameters[] = {{0, 8},  {8, 8},  {16, 8},
                                                      {24, 8}, {32, 8}, {40, 8}};
static_assert(std::size(kParameters) == kConvolutionParameters);
constexpr simulator::KernelEntry kEntries[] = {
    {kKernel, Convolve, Cost, kConvolutionParameters, kParameters}};

bool IsOnDevice(const Buffer& buffer) { return !buffer.InHostMemory(); }
bool IsLarge(const Buffer& buffer) { return IsOnDevice(buffer) && buffer.bytes > kChunkBytes; }
bool CanServe(const Buffer& buffer) {
  return IsOnDevice(buffer) && buffer.bytes >= kMiB && buffer.bytes <= kLargestBytes &&
         buffer.bytes % 4 == 0;
}

class WorkspacesFeature : public Feature {
 public:
  const char* Name() const override { return "workspaces"; }
  unsigned PerMille() const override { return 200; }
  bool IsDrawn() const override { return false; }

  void Propose(Proposer& proposer) const override {
    Random& dice = proposer.Dice();
    const int workspace = Pick(proposer, CanServe);
    const int output = Pick(proposer, CanServe);
    if (workspace == kNone || output == kNone || workspace == output) return;
    for (std::uint64_t i = dice.Between(1, 4); i > 0; --i) {
      if (dice.Percent(20)) ProposeUse(proposer, workspace);
      if (!ProposeCall(proposer, workspace, output)) return;
      if (dice.Percent(20)) ProposeUse(proposer, workspace);
      if (dice.Percent(70)) ProposeOthers(proposer);
    }
    if (dice.Percent(50)) ProposeUse(proposer, output);
  }

  void Run(const Operation& operation, const Running& running) const override {
    LibraryWork work;
    work.kernel = running.device.KernelNamed(kKernel);
    work.stream = running.table.StreamOf(operation);
    if (work.stream == nullptr)
      work.stream = kDefaultStream == kLegacyStream ? CU_STREAM_LEGACY : CU_STREAM_PER_THREAD;
    work.seed = operation.salt;
    work.flops = operation.slow ? kSlowFlops : 0;
    const auto address = [&](const View& view) {
      return At(running.table.slots[view.buffer].address + view.offset_bytes);
    };
    const View& x = operation.in.front();
    const View& workspace = operation.scratch.front();
    LibraryTensor x_is{x.bytes}, y_is{operation.out.bytes};
    const auto described = [](LibraryTensor& tensor) {
      return reinterpret_cast<cudnnTensorDescriptor_t>(&tensor);
    };
    // Some say that they need more than there is. As the only ones of their kind, they are offered
    // anyway.
    work.workspace_bytes = operation.salt % 2 ? workspace.bytes : kHugeWorkspaceBytes;
    const float one = 1, zero = 0;
    const auto handle = reinterpret_cast<cudnnHandle_t>(&work);
    const auto algorithm = Algorithm(handle, described(x_is), described(y_is));
    const cudnnStatus_t status = cudnnConvolutionForward(
        handle, &one, described(x_is), address(x), nullptr, nullptr, nullptr, algorithm,
        address(workspace), workspace.bytes, &zero, described(y_is), address(operation.out));
    if (status != CUDNN_STATUS_SUCCESS) throw std::runtime_error("the library's call failed");
  }

  std::span<const simulator::KernelEntry> Kernels() const override { return kEntries; }

 private:
  // Like programs, takes the first one that is offered.
  static cudnnConvolutionFwdAlgo_t Algorithm(cudnnHandle_t handle, cudnnTensorDescriptor_t x_is,
                                             cudnnTensorDescriptor_t y_is) {
    cudnnConvolutionFwdAlgoPerf_t results[kConvolutionAlgorithms];
    int count = 0;
    const cudnnStatus_t status = cudnnGetConvolutionForwardAlgorithm_v7(
        handle, x_is, nullptr, nullptr, y_is, kConvolutionAlgorithms, &count, results);
    if (status != CUDNN_STATUS_SUCCESS || count == 0)
      throw std::runtime_error("the library offers no algorithm");
    return results[0].algo;
  }

  template <class Accepts>
  static int Pick(Proposer& proposer, Accepts accepts) {
    Random& dice = proposer.Dice();
    const int known = dice.Percent(60) ? proposer.Choose().PickBuffer(accepts) : kNone;
    if (known != kNone) return known;
    return proposer.NewMemory(dice.Between(kMiB / 4, kLargestBytes / 4) * 4);
  }

  static bool ProposeCall(Proposer& proposer, int workspace, int output) {
    Random& dice = proposer.Dice();
    const int source = proposer.Choose().PickBuffer(IsOnDevice);
    if (source == kNone || source == workspace || source == output) return true;
    std::optional<View> x = proposer.Choose().PickReadable(source, kLargestBytes);
    if (!x || x->bytes < 4) return true;
    x->bytes -= x->bytes % 4;
    Operation call{
        .kind = Kind::kFeatureWork, .on_stream = true, .stream = proposer.Choose().PickStream()};
    call.in = {*x};
    call.out = {.buffer = output, .bytes = proposer.Now().At(output).bytes};
    View scratch{.buffer = workspace, .bytes = proposer.Now().At(workspace).bytes};
    if (dice.Percent(20)) scratch.bytes = RoundUp(scratch.bytes / 2, 4);
    call.scratch = {scratch};
    call.slow = dice.Percent(40);
    return proposer.Add(call);
  }

  // Large buffers are used, so that others must leave.
  static void ProposeOthers(Proposer& proposer) {
    for (std::uint64_t i = proposer.Dice().Between(1, 5); i > 0; --i)
      ProposeUse(proposer, proposer.Choose().PickBuffer(IsLarge));
  }

  // A kernel of the program writes there, or reads what it wrote.
  static void ProposeUse(Proposer& proposer, int buffer) {
    if (buffer == kNone) return;
    Chooser& choose = proposer.Choose();
    Operation kernel{.kind = Kind::kKernel, .stream = choose.PickStream()};
    const std::optional<View> in = choose.PickKernelInput(buffer);
    const int target = in && proposer.Dice().Percent(50) ? choose.PickBuffer(IsOnDevice) : buffer;
    const std::optional<View> out =
        target == kNone ? std::nullopt : choose.PickKernelOutput(target);
    if (!out) return;
    if (target != buffer) kernel.in = {*in};
    kernel.out = *out;
    proposer.Add(kernel);
  }
};

}  // namespace

const Feature& Workspaces() {
  static const WorkspacesFeature workspaces;
  return workspaces;
}

}  // namespace spillway::fuzz
