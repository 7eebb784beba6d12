// Kernels read linear memory through a texture's handle, given as a parameter or in device memory.
//
// The memory is the feature's own and small: while a texture object lives, it stays on the device.
#include <array>
#include <memory>
#include <optional>

#include "simulator/kernels/device/textures.h"
#include "tests/fuzz/differential/digest.h"
#include "tests/fuzz/differential/features/all.h"
#include "tests/fuzz/differential/features/reading.h"
#include "tests/fuzz/differential/random.h"
#include "tests/fuzz/differential/running.h"
#include "tests/support/driver_check.h"

namespace spillway::fuzz {
namespace {

constexpr char kKernel[] = "_ZN8spillway4fuzz12FoldTexturesE";
constexpr std::uint64_t kLargestBytes = 2 * kMiB;
constexpr std::size_t kMostObjects = 1;  // of a thread
constexpr std::uint64_t kSlowFlops = 20'000'000'000;

struct FoldArguments {
  std::uint64_t handle = 0;
  std::uint64_t holder = 0;  // where the handle lies; 0: it is a parameter
  std::uint64_t first_texel = 0;
  std::uint64_t texels = 0;
  std::uint64_t out = 0;
  std::uint64_t out_bytes = 0;
  std::uint64_t seed = 0;
  std::uint64_t flops = 0;
};

void Fold(const simulator::LaunchShape&, void* const* arguments) {
  const auto& fold = *static_cast<const FoldArguments*>(arguments[0]);
  const auto handle =
      fold.holder != 0 ? *reinterpret_cast<const std::uint64_t*>(fold.holder) : fold.handle;
  std::uint64_t digest = FoldWord(kDigestStart, fold.seed);
  for (std::uint64_t i = 0; i < fold.texels; ++i) {
    digest = FoldWord(digest, tex1Dfetch<unsigned>(handle, static_cast<int>(fold.first_texel + i)));
  }
  auto* const out = reinterpret_cast<std::uint8_t*>(fold.out);
  for (std::uint64_t i = 0; i < fold.out_bytes; ++i) {
    out[i] = static_cast<std::uint8_t>(Scramble(digest + i / 8) >> (i % 8 * 8));
  }
}

simulator::KernelCost Cost(const simulator::LaunchShape&, void* const* arguments) {
  return {static_cast<const FoldArguments*>(arguments[0])->flops, 0};
}

constexpr simulator::KernelParameter kParameters[] = {{0, sizeof(FoldArguments)}};
constexpr simulator::KernelEntry kEntries[] = {{kKernel, Fold, Cost, 1, kParameters}};

struct Texture {
  CUcontext context = nullptr;
  CUtexObject handle = 0;
  CUdeviceptr holder = 0;

  ~Texture() {
    cuCtxSetCurrent(context);
    cuTexObjectDestroy(handle);
    cuMemFree(holder);
  }
};

std::shared_ptr<Texture> MakeTexture(const Slot& slot, CUcontext context) {
  CUDA_RESOURCE_DESC resource{};
  resource.resType = CU_RESOURCE_TYPE_LINEAR;
  resource.res.linear.devPtr = slot.address;
  resource.res.linear.format = CU_AD_FORMAT_UNSIGNED_INT32;
  resource.res.linear.numChannels = 1;
  resource.res.linear.sizeInBytes = slot.bytes;
  CUDA_TEXTURE_DESC sampling{};
  sampling.flags = CU_TRSF_READ_AS_INTEGER;
  auto texture = std::make_shared<Texture>();
  texture->context = context;
  SPILLWAY_DRIVER_CALL(cuMemAlloc(&texture->holder, sizeof texture->handle));
  SPILLWAY_DRIVER_CALL(cuTexObjectCreate(&texture->handle, &resource, &sampling, nullptr));
  SPILLWAY_DRIVER_CALL(cuMemcpyHtoD(texture->holder, &texture->handle, sizeof texture->handle));
  return texture;
}

class TexturesFeature : public Feature {
 public:
  const char* Name() const override { return "textures"; }
  unsigned PerMille() const override { return 120; }

  void Propose(Proposer& proposer) const override {
    const std::uint64_t choice = proposer.Dice().Below(100);
    if (choice < 15) return ProposeMemory(proposer);
    if (choice < 35) return ProposeObject(proposer);
    const int object = proposer.PickObject();
    if (object == kNone) return choice < 60 ? ProposeMemory(proposer) : ProposeObject(proposer);
    if (choice < 42) {
      proposer.Add({.kind = Kind::kFeatureCall, .object = object, .object_use = ObjectUse::kEnd});
    } else {
      ProposeKernel(proposer, object);
    }
  }

  void Run(const Operation& operation, const Running& running) const override {
    if (operation.kind == Kind::kAlloc) {
      CUdeviceptr address = 0;
      SPILLWAY_DRIVER_CALL(cuMemAlloc(&address, operation.bytes));
      Slot& slot = running.table.slots[operation.buffer];
      slot.address = address;
      slot.keeper = {reinterpret_cast<void*>(address),
                     [](void* memory) { cuMemFree(reinterpret_cast<CUdeviceptr>(memory)); }};
    } else if (operation.object_use == ObjectUse::kMake) {
      running.table.objects[operation.object] =
          MakeTexture(running.table.slots[operation.names[0].buffer], running.context);
    } else if (operation.kind == Kind::kFeatureWork) {
      Launch(operation, running);
    }
  }

  std::span<const simulator::KernelEntry> Kernels() const override { return kEntries; }

 private:
  static int Own() { return FeatureNamed("textures"); }

  static void ProposeMemory(Proposer& proposer) {
    const std::uint64_t bytes = proposer.Dice().Between(kMiB, kLargestBytes) / 4 * 4;
    Operation alloc{.kind = Kind::kAlloc, .form = static_cast<std::uint8_t>(AllocForm::kFeature)};
    alloc.buffer = proposer.NewBuffer();
    alloc.bytes = bytes;
    alloc.cuts_bytes = proposer.Choose().Cuts(bytes);
    const int buffer = alloc.buffer;
    if (!proposer.Add(alloc)) return;
    Operation fill{.kind = Kind::kFill, .stream = kDefaultStream};
    if (proposer.Choose().PlaceFill(fill, buffer)) proposer.Add(fill);
  }

  static void ProposeObject(Proposer& proposer) {
    if (proposer.Now().ObjectsOf(Own(), proposer.Thread()).size() >= kMostObjects) return;
    const int buffer =
        proposer.Choose().PickBuffer([](const Buffer& b) { return b.feature == Own(); });
    if (buffer == kNone) return;
    const View whole{.buffer = buffer, .offset_bytes = 0, .bytes = proposer.Now().At(buffer).bytes};
    proposer.Add({.kind = Kind::kFeatureCall,
                  .object = proposer.NewObject(),
                  .object_use = ObjectUse::kMake,
                  .names = {whole}});
  }

  static void ProposeKernel(Proposer& proposer, int object) {
    Chooser& choose = proposer.Choose();
    const int texels = proposer.Now().ObjectAt(object).maker.names[0].buffer;
    const std::optional<View> in = choose.PickReadable(texels, kLargestWindowBytes);
    const int target = choose.PickBuffer(
        [](const Buffer& b) { return b.form != AllocForm::kPageable && b.feature != Own(); });
    if (!in || target == kNone) return;
    const std::optional<View> out = choose.PickWritable(target, kLargestWindowBytes);
    if (out) AddReading(proposer, object, *in, *out);
  }

  static void Launch(const Operation& operation, const Running& running) {
    const auto& texture =
        *static_cast<const Texture*>(running.table.objects[operation.object].get());
    const View& in = operation.in[0];
    FoldArguments fold;
    fold.handle = texture.handle;
    if ((operation.salt & 512) != 0) fold.holder = texture.holder;
    fold.first_texel = (in.offset_bytes + 3) / 4;
    const std::uint64_t end_texel = (in.offset_bytes + in.bytes) / 4;
    fold.texels = end_texel > fold.first_texel ? end_texel - fold.first_texel : 0;
    fold.out = running.table.slots[operation.out.buffer].address + operation.out.offset_bytes;
    fold.out_bytes = operation.out.bytes;
    fold.seed = operation.salt;
    fold.flops = operation.slow ? kSlowFlops : 0;
    void* parameters[] = {&fold};
    LaunchOne(operation, running, kKernel, parameters);
  }
};

}  // namespace

const Feature& Textures() {
  static const TexturesFeature textures;
  return textures;
}

}  // namespace spillway::fuzz
