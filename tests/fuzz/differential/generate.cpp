#include "tests/fuzz/differential/generate.h"

#include <algorithm>
#include <array>
#include <optional>

#include "tests/fuzz/differential/choose.h"
#include "tests/fuzz/differential/feature.h"
#include "tests/fuzz/differential/limits.h"
#include "tests/fuzz/differential/random.h"
#include "tests/fuzz/differential/world.h"

namespace spillway::fuzz {
namespace {

constexpr int kMaximumStreams = 6;
constexpr int kMaximumCreatedStreams = 24;  // over all of a program

class Generator : private Proposer {
 public:
  Generator(std::uint64_t seed, const Shape& shape)
      : shape_(shape), features_(shape.features.begin(), shape.features.end()), dice_(seed) {
    live_limit_bytes_ = shape.small ? 48 * kMiB : dice_.Between(100, 220) * kMiB;
    for (std::uint64_t& bytes : favourite_bytes_) bytes = AnyLargeBytes();
  }

  std::vector<Operation> Run() {
    const std::uint64_t length = shape_.small ? dice_.Between(15, 50) : dice_.Between(80, 180);
    AddOpening();
    while (program_.size() < length) AddStep();
    return std::move(program_);
  }

 private:
  // A generator that proposes nonsense proposes again.
  bool Add(Operation operation) override {
    operation.thread = thread_;
    if (feature_ != kNone) operation.feature = feature_;
    operation.origin = static_cast<int>(program_.size());
    operation.salt = dice_.Next() & ~1ull;
    if (operation.kind == Kind::kStreamCreate && dice_.Percent(50)) operation.salt |= 1;
    for (Operation& part : operation.body) part.salt = dice_.Next() & ~1ull;
    if (!world_.Allows(operation) || WidthBytes(operation) > kWidestOperationBytes) return false;
    if (operation.kind == Kind::kAlloc && !MayHold(world_, shape_, operation)) return false;
    world_.Apply(operation);
    program_.push_back(std::move(operation));
    return true;
  }

  std::uint64_t WidthBytes(const Operation& operation) const {
    std::set<int> named = {operation.decoy};
    operation.ForEachOut([&](const View& view) { named.insert(view.buffer); });
    for (const View& view : operation.in) named.insert(view.buffer);
    for (const View& view : operation.names) named.insert(view.buffer);
    if (operation.object != kNone && operation.object_use != ObjectUse::kMake) {
      for (const View& view : world_.ObjectAt(operation.object).maker.names)
        named.insert(view.buffer);
    }
    std::uint64_t width_bytes = 0;
    for (int buffer : named) {
      if (buffer == kNone || world_.At(buffer).InHostMemory()) continue;
      width_bytes += RoundUp(world_.At(buffer).bytes, kChunkBytes);
    }
    return width_bytes;
  }

  void AddOpening() {
    for (int thread = 0; thread < shape_.Threads() && !IsInSecondContext(thread); ++thread) {
      SwitchTo(thread);
      OpenFeatures();
    }
    for (int thread = 0; thread < shape_.Threads(); ++thread) {
      SwitchTo(thread);
      for (std::uint64_t i = dice_.Between(1, 3); i > 0; --i) AddStreamCreate();
      if (dice_.Percent(50)) Add({.kind = Kind::kPoolCreate, .pool = next_pool_++});
      AddHostBuffer();
      for (int i = 0; i < 3; ++i) AddAlloc();
    }
  }

  void OpenFeatures() {
    for (int feature : features_) {
      feature_ = feature;
      AllFeatures()[feature]->Open(*this);
    }
    feature_ = kNone;
  }

  void SwitchTo(int thread) {
    thread_ = thread;
    choose_.SetThread(thread);
  }

  void AddStep() {
    SwitchTo(static_cast<int>(dice_.Below(shape_.Threads())));
    if (world_.LiveDeviceBytes() > live_limit_bytes_) return AddFree();
    const std::uint64_t choice = dice_.Below(1000 + FeaturesPerMille());
    if (choice >= 1000) return AddFeature(choice - 1000);
    if (choice < 170) return AddAlloc();
    if (choice < 235) return AddFree();
    if (choice < 330) return AddReuse();
    if (choice < 360) return AddSweep();
    if (choice < 600) return AddKernel();
    if (choice < 770) return AddCopy();
    if (choice < 830) return AddFill();
    if (choice < 860) return AddHostAccess();
    if (choice < 890) return AddEvent();
    if (choice < 905) return AddSync();
    AddRareStep();
  }

  std::uint64_t FeaturesPerMille() const {
    std::uint64_t sum = 0;
    for (int feature : features_) sum += AllFeatures()[feature]->PerMille();
    return sum;
  }

  void AddFeature(std::uint64_t choice) {
    for (int feature : features_) {
      const std::uint64_t own = AllFeatures()[feature]->PerMille();
      if (choice < own) {
        feature_ = feature;
        AllFeatures()[feature]->Propose(*this);
        feature_ = kNone;
        return;
      }
      choice -= own;
    }
  }

  void AddRareStep() {
    switch (dice_.Below(9)) {
      case 0:
        return AddStreamCreate();
      case 1:
        if (const int stream = choose_.PickStream(); stream >= kFirstCreatedStream) {
          Add({.kind = Kind::kStreamDestroy, .stream = stream});
        }
        return;
      case 2:
        return AddHostBuffer();
      case 3:
        return AddPoolCall();
      case 4:
        return AddInspect();
      case 5:
        Add({.kind = Kind::kMemInfo, .thread = thread_});
        return;
      case 6:
        if (dice_.Percent(20)) Add({.kind = Kind::kRefusals, .thread = thread_});
        return;
      case 7:
        return AddHostFunction();
      default:
        return AddHandOver();
    }
  }

  void AddStreamCreate() {
    if (world_.StreamsOf(thread_).size() >= kMaximumStreams) return;
    if (next_stream_ >= kFirstCreatedStream + kMaximumCreatedStreams) return;
    Add({.kind = Kind::kStreamCreate, .stream = next_stream_++});
  }

  void AddAlloc() { AddAllocOf(dice_.Percent(30) ? SmallBytes() : LargeBytes()); }

  std::uint64_t SmallBytes() {
    return RoundUp(dice_.Magnitude(256, 1023 * kKiB), dice_.Percent(50) ? 256 : 1);
  }
  // Like a training job, a program uses a few sizes again and again.
  std::uint64_t LargeBytes() {
    return dice_.Percent(50) ? favourite_bytes_[dice_.Below(favourite_bytes_.size())]
                             : AnyLargeBytes();
  }
  std::uint64_t AnyLargeBytes() {
    const std::uint64_t largest = shape_.small ? 8 * kMiB : 24 * kMiB;
    return RoundUp(dice_.Magnitude(kMiB, largest), dice_.Percent(50) ? kMiB : 1);
  }

  int AddAllocOf(std::uint64_t bytes, const std::vector<std::uint64_t>& cuts_bytes = {}) {
    if (!MayHold(world_, shape_, {.kind = Kind::kAlloc, .thread = thread_, .bytes = bytes}))
      return kNone;
    Operation alloc{.kind = Kind::kAlloc, .stream = choose_.PickStream(), .bytes = bytes};
    const std::vector<int> pools = world_.PoolsOf(thread_);
    const std::uint64_t form = dice_.Below(IsInSecondContext(thread_) ? 62 : 100);
    if (form < 55) {
      alloc.form = static_cast<std::uint8_t>(AllocForm::kMemAlloc);
    } else if (form < 62) {
      alloc.form = static_cast<std::uint8_t>(AllocForm::kPitch);
    } else if (form < 82 || pools.empty()) {
      alloc.form = static_cast<std::uint8_t>(AllocForm::kAsync);
    } else {
      alloc.form = static_cast<std::uint8_t>(AllocForm::kPool);
      alloc.pool = pools[dice_.Below(pools.size())];
    }
    alloc.buffer = next_buffer_++;
    alloc.cuts_bytes = cuts_bytes.empty() ? choose_.Cuts(bytes) : cuts_bytes;
    if (!Add(alloc)) return kNone;
    if (dice_.Percent(85)) AddWriteTo(alloc.buffer);
    return alloc.buffer;
  }

  bool IsInSecondContext(int thread) const { return shape_.ContextOf(thread) != 0; }

  void AddWriteTo(int buffer) {
    const std::uint64_t choice = dice_.Below(100);
    if (choice < 50) return AddKernelInto(buffer);
    if (choice < 80) return AddCopyInto(buffer);
    AddFillOf(buffer);
  }

  void AddFree() {
    const int buffer = choose_.PickBuffer([](const Buffer&) { return true; });
    if (buffer == kNone) return;
    if (world_.At(buffer).InHostMemory() && dice_.Percent(70)) return;
    AddFreeOf(buffer);
  }

  void AddFreeOf(int buffer) {
    const AllocForm form = world_.At(buffer).form;
    FreeForm how = FreeForm::kMemFree;
    if (IsHostMemory(form)) {
      how = FreeForm::kHost;
    } else if (form == AllocForm::kFeature) {
      how = FreeForm::kFeature;
    } else if (IsStreamOrdered(form) ? dice_.Percent(85)
                                     : dice_.Percent(8) && !IsInSecondContext(thread_)) {
      how = FreeForm::kFreeAsync;
    }
    Add({.kind = Kind::kFree,
         .form = static_cast<std::uint8_t>(how),
         .stream = choose_.PickStream(),
         .buffer = buffer,
         .feature = world_.At(buffer).feature});
  }

  // Memory is freed while work on it is queued, and then reused: often just where the old work
  // reads or writes.
  void AddReuse() {
    const auto on_device = [](const Buffer& b) { return !b.InHostMemory(); };
    const int buffer = choose_.PickBuffer(on_device);
    if (buffer == kNone) return;
    const int reader = choose_.PickBuffer(on_device);
    if (dice_.Percent(50)) {
      AddKernelInto(buffer, {}, dice_.Percent(60));
    } else if (reader != buffer) {
      AddKernelInto(reader, {buffer}, dice_.Percent(60));
    }
    AddFreeOf(buffer);
    const int again = AddAllocAfter(buffer);
    if (again == kNone) return;
    AddWriteTo(again);
    AddWriteTo(again);
  }

  int AddAllocAfter(int freed) {
    const std::uint64_t bytes = world_.At(freed).bytes;
    if (dice_.Percent(20)) return AddAllocOf(LargeBytes());
    if (dice_.Percent(20)) return AddAllocOf(std::max<std::uint64_t>(bytes / 2, 256));
    std::vector<std::uint64_t> cuts_bytes;
    for (const Segment& segment : world_.At(freed).segments)
      cuts_bytes.push_back(segment.begin_bytes);
    return AddAllocOf(bytes, cuts_bytes);
  }

  // Large buffers are used in turn: data must leave and come back all the time.
  void AddSweep() {
    const auto large = [](const Buffer& b) { return !b.InHostMemory() && b.bytes > kChunkBytes; };
    for (std::uint64_t i = dice_.Between(3, 7); i > 0; --i) {
      std::vector<int> inputs(dice_.Between(0, 2));
      for (int& input : inputs) input = choose_.PickBuffer(large);
      const int buffer = choose_.PickBuffer(large);
      if (buffer != kNone) AddKernelInto(buffer, inputs);
    }
  }

  void AddKernel() {
    const int buffer =
        choose_.PickBuffer([](const Buffer& b) { return b.form != AllocForm::kPageable; });
    if (buffer != kNone) AddKernelInto(buffer);
  }

  void AddKernelInto(int buffer, std::vector<int> inputs = {}, bool slow = false) {
    Operation kernel{
        .kind = Kind::kKernel, .on_stream = true, .stream = choose_.PickStream(), .slow = slow};
    kernel.form = static_cast<std::uint8_t>(dice_.Below(4));
    const std::optional<View> out = choose_.PickKernelOutput(buffer);
    if (!out) return;
    kernel.out = *out;
    for (std::uint64_t i = dice_.Below(4); inputs.size() < i;) {
      inputs.push_back(
          choose_.PickBuffer([](const Buffer& b) { return b.form != AllocForm::kPageable; }));
    }
    for (int from : inputs) {
      if (const std::optional<View> in = choose_.PickKernelInput(from)) kernel.in.push_back(*in);
    }
    if (dice_.Percent(25)) kernel.decoy = choose_.PickDecoy();
    Add(kernel);
  }

  void AddCopy() {
    const int buffer = choose_.PickBuffer([](const Buffer&) { return true; });
    if (buffer != kNone) AddCopyInto(buffer);
  }

  void AddCopyInto(int buffer) {
    const int from = choose_.PickBuffer(
        [&](const Buffer& b) { return b.InHostMemory() != world_.At(buffer).InHostMemory(); });
    const int source =
        dice_.Percent(30) ? choose_.PickBuffer([](const Buffer&) { return true; }) : from;
    if (source == kNone || source == buffer) return;
    if (world_.At(source).InHostMemory() && world_.At(buffer).InHostMemory()) return;
    Operation copy{.kind = Kind::kCopy, .on_stream = dice_.Percent(65), .stream = kDefaultStream};
    if (copy.on_stream) copy.stream = choose_.PickStream();
    if (choose_.PlaceCopy(copy, source, buffer)) Add(copy);
  }

  void AddFill() {
    const int buffer = choose_.PickBuffer([](const Buffer& b) { return !b.InHostMemory(); });
    if (buffer != kNone) AddFillOf(buffer);
  }

  void AddFillOf(int buffer) {
    Operation fill{.kind = Kind::kFill, .on_stream = dice_.Percent(60), .stream = kDefaultStream};
    if (fill.on_stream) fill.stream = choose_.PickStream();
    if (choose_.PlaceFill(fill, buffer)) Add(fill);
  }

  void AddHostBuffer() {
    const auto form = static_cast<AllocForm>(dice_.Between(static_cast<int>(AllocForm::kPinned),
                                                           static_cast<int>(AllocForm::kPageable)));
    Operation alloc{.kind = Kind::kAlloc, .form = static_cast<std::uint8_t>(form)};
    alloc.buffer = next_buffer_++;
    alloc.bytes =
        dice_.Percent(15) ? dice_.Between(1, 3) * kMiB : dice_.Magnitude(4 * kKiB, 256 * kKiB);
    alloc.cuts_bytes = {0, alloc.bytes / 3, alloc.bytes / 2};
    Add(alloc);
  }

  void AddHostAccess() {
    const int buffer = choose_.PickBuffer([](const Buffer& b) { return b.InHostMemory(); });
    if (buffer == kNone) return;
    const std::optional<View> view = choose_.PickReadable(buffer, kMiB);
    if (!view) return;
    if (dice_.Percent(60)) {
      Add({.kind = Kind::kHostFold, .in = {*view}});
    } else {
      Add({.kind = Kind::kHostFill, .out = *view});
    }
  }

  void AddHostFunction() {
    const int buffer =
        choose_.PickBuffer([](const Buffer& b) { return b.form == AllocForm::kPinned; });
    const int stream = choose_.PickStream();
    if (buffer == kNone || stream == kLegacyStream) return;
    const std::optional<View> view = choose_.PickReadable(buffer, kLargestWindowBytes);
    if (!view) return;
    Add({.kind = Kind::kHostFunction, .on_stream = true, .stream = stream, .out = *view});
  }

  void AddEvent() {
    const std::vector<int> events = world_.EventsOf(thread_);
    const std::uint64_t choice = dice_.Below(100);
    if (events.empty() || choice < 50) {
      const int event =
          thread_ * kEventsPerThread + static_cast<int>(dice_.Below(kEventsPerThread));
      Add({.kind = Kind::kEventRecord, .stream = choose_.PickStream(), .event = event});
      return;
    }
    const int event = events[dice_.Below(events.size())];
    if (choice < 90) {
      Add({.kind = Kind::kEventWait, .stream = choose_.PickStream(), .event = event});
    } else {
      Add({.kind = Kind::kEventSync, .event = event});
    }
  }

  void AddSync() {
    if (dice_.Percent(60)) {
      Add({.kind = Kind::kStreamSync, .stream = choose_.PickStream()});
    } else {
      Add({.kind = Kind::kContextSync, .thread = thread_});
    }
  }

  void AddPoolCall() {
    const std::vector<int> pools = world_.PoolsOf(thread_);
    if (pools.empty() || dice_.Percent(30)) {
      Add({.kind = Kind::kPoolCreate, .pool = next_pool_++});
    } else {
      const Kind kind = dice_.Percent(70) ? Kind::kPoolTrim : Kind::kPoolDestroy;
      Add({.kind = kind, .pool = pools[dice_.Below(pools.size())]});
    }
  }

  void AddInspect() {
    const int buffer = choose_.PickBuffer([](const Buffer& b) { return !b.InHostMemory(); });
    if (buffer == kNone) return;
    if (const std::optional<View> view = choose_.PickReadable(buffer, kMiB)) {
      Add({.kind = Kind::kInspect, .in = {*view}});
    }
  }

  void AddHandOver() {
    if (shape_.hosts < 2) return;
    const int buffer =
        choose_.PickBuffer([](const Buffer& b) { return b.form != AllocForm::kPageable; });
    if (buffer == kNone) return;
    const int first =
        shape_.ContextOf(thread_) * shape_.hosts;  // of the threads in the same context
    const auto further = static_cast<int>(dice_.Between(1, shape_.hosts - 1));
    Add({.kind = Kind::kGive,
         .to_thread = first + (shape_.HostOf(thread_) + further) % shape_.hosts,
         .stream = choose_.PickStream(),
         .buffer = buffer});
  }

  Random& Dice() override { return dice_; }
  Chooser& Choose() override { return choose_; }
  const World& Now() const override { return world_; }
  int Thread() const override { return thread_; }
  int NewBuffer() override { return next_buffer_++; }
  int NewMemory(std::uint64_t bytes) override { return AddAllocOf(bytes); }
  int NewObject() override { return next_object_++; }
  int PickObject() override {
    const std::vector<int> objects = world_.ObjectsOf(feature_, thread_);
    return objects.empty() ? kNone : objects[dice_.Below(objects.size())];
  }

  const Shape shape_;
  const std::vector<int> features_;
  Random dice_;
  World world_;
  Chooser choose_{world_, dice_};
  std::vector<Operation> program_;
  std::uint64_t live_limit_bytes_ = 0;
  std::array<std::uint64_t, 3> favourite_bytes_{};
  int thread_ = 0;
  int next_buffer_ = 0;
  int next_stream_ = kFirstCreatedStream;
  int next_pool_ = 0;
  int next_object_ = 0;
  int feature_ = kNone;  // whose proposal is being added
};

}  // namespace

std::vector<Operation> Generate(std::uint64_t seed, const Shape& shape) {
  return Generator(seed, shape).Run();
}

std::vector<Operation> Keep(const std::vector<Operation>& program, const std::set<int>& kept) {
  World world;
  std::vector<Operation> result;
  for (const Operation& operation : program) {
    if (!kept.contains(operation.origin) || !world.Allows(operation)) continue;
    world.Apply(operation);
    result.push_back(operation);
  }
  return result;
}

Size Measure(const std::vector<Operation>& program) {
  World world;
  for (const Operation& operation : program) world.Apply(operation);
  return {world.PeakDeviceBytes(), world.LiveBuffers()};
}

}  // namespace spillway::fuzz
