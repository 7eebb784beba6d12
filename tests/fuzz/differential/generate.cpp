#include "tests/fuzz/differential/generate.h"

#include <algorithm>
#include <optional>

#include "tests/fuzz/differential/random.h"
#include "tests/fuzz/differential/world.h"

namespace spillway::fuzz {
namespace {

constexpr std::uint64_t kKiB = 1ull << 10;
constexpr std::uint64_t kMiB = 1ull << 20;
constexpr std::uint64_t kChunkBytes = 2 * kMiB;
constexpr std::uint64_t kLargestWindowBytes = 48 * kKiB;
constexpr std::uint64_t kLargestDenseBytes = 4 * kMiB;  // of a copy or fill that touches every byte
constexpr std::uint64_t kSmallTotalBytes = 6 * kMiB;    // of living buffers below 1 MiB
constexpr int kMaximumStreams = 6;
constexpr int kEventsPerThread = 4;

std::uint64_t RoundUp(std::uint64_t bytes, std::uint64_t step) { return (bytes + step - 1) / step * step; }

class Generator {
 public:
  Generator(std::uint64_t seed, const Shape& shape) : shape_(shape), dice_(seed) {
    live_limit_bytes_ = shape.small ? 48 * kMiB : dice_.Between(80, 220) * kMiB;
  }

  std::vector<Operation> Run() {
    const std::uint64_t length = shape_.small ? dice_.Between(15, 50) : dice_.Between(60, 130);
    AddOpening();
    while (program_.size() < length) AddStep();
    return std::move(program_);
  }

 private:
  // Adds the operation when it makes sense here; a generator that proposes nonsense proposes again.
  bool Add(Operation operation) {
    operation.origin = static_cast<int>(program_.size());
    operation.salt = dice_.Next() & ~1ull;
    if (operation.kind == Kind::kStreamCreate && dice_.Percent(50)) operation.salt |= 1;
    if (!world_.Allows(operation) || WidthBytes(operation) > kWidestOperationBytes) return false;
    world_.Apply(operation);
    program_.push_back(std::move(operation));
    return true;
  }

  std::uint64_t WidthBytes(const Operation& operation) const {
    std::set<int> named = {operation.out.buffer};
    for (const View& view : operation.in) named.insert(view.buffer);
    std::uint64_t width_bytes = 0;
    for (int buffer : named) {
      if (buffer == kNone || world_.At(buffer).InHostMemory()) continue;
      width_bytes += RoundUp(world_.At(buffer).bytes, kChunkBytes);
    }
    return width_bytes;
  }

  void AddOpening() {
    for (thread_ = 0; thread_ < shape_.threads; ++thread_) {
      for (std::uint64_t i = dice_.Between(1, 3); i > 0; --i) AddStreamCreate();
      if (dice_.Percent(50)) Add({.kind = Kind::kPoolCreate, .thread = thread_, .pool = next_pool_++});
      AddHostBuffer();
      for (int i = 0; i < 3; ++i) AddAlloc();
    }
  }

  void AddStep() {
    thread_ = static_cast<int>(dice_.Below(shape_.threads));
    const std::uint64_t choice = dice_.Below(1000);
    if (world_.LiveDeviceBytes() > live_limit_bytes_) return AddFree();
    if (choice < 170) return AddAlloc();
    if (choice < 235) return AddFree();
    if (choice < 330) return AddReuse();
    if (choice < 600) return AddKernel();
    if (choice < 770) return AddCopy();
    if (choice < 830) return AddFill();
    if (choice < 860) return AddHostAccess();
    if (choice < 890) return AddEvent();
    if (choice < 905) return AddSync();
    AddRareStep();
  }

  void AddRareStep() {
    switch (dice_.Below(9)) {
      case 0:
        return AddStreamCreate();
      case 1:
        if (const int stream = PickStream(); stream >= kFirstCreatedStream) {
          Add({.kind = Kind::kStreamDestroy, .thread = thread_, .stream = stream});
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
    if (next_stream_ >= kFirstCreatedStream + 24) return;
    Add({.kind = Kind::kStreamCreate, .thread = thread_, .stream = next_stream_++});
  }

  int PickStream() {
    const std::vector<int> streams = world_.StreamsOf(thread_);
    return streams[dice_.Below(streams.size())];
  }

  // Where memory is allocated and what of it will be written: a few windows in buffers of any size.
  void AddAlloc() { AddAllocOf(dice_.Percent(30) ? SmallBytes() : LargeBytes()); }

  std::uint64_t SmallBytes() {
    return RoundUp(dice_.Magnitude(256, 1023 * kKiB), dice_.Percent(50) ? 256 : 1);
  }
  std::uint64_t LargeBytes() {
    const std::uint64_t largest = shape_.small ? 8 * kMiB : 24 * kMiB;
    return RoundUp(dice_.Magnitude(kMiB, largest), dice_.Percent(50) ? kMiB : 1);
  }

  int AddAllocOf(std::uint64_t bytes) {
    if (bytes < kMiB && LiveSmallBytes() + bytes > kSmallTotalBytes) return kNone;
    Operation alloc{.kind = Kind::kAlloc, .thread = thread_, .stream = PickStream(), .bytes = bytes};
    const std::vector<int> pools = world_.PoolsOf(thread_);
    const std::uint64_t form = dice_.Below(100);
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
    alloc.cuts_bytes = Cuts(bytes);
    if (!Add(alloc)) return kNone;
    if (dice_.Percent(85)) AddWriteTo(alloc.buffer);
    return alloc.buffer;
  }

  std::uint64_t LiveSmallBytes() const {
    std::uint64_t bytes = 0;
    for (const auto& [id, buffer] : world_.Buffers()) {
      if (buffer.live && !buffer.InHostMemory() && buffer.bytes < kMiB) bytes += buffer.bytes;
    }
    return bytes;
  }

  // Windows at the beginning, at the end, across a chunk's edge and anywhere; what lies between is a segment too.
  std::vector<std::uint64_t> Cuts(std::uint64_t bytes) {
    std::set<std::uint64_t> cuts = {0};
    for (std::uint64_t i = dice_.Between(1, 4); i > 0; --i) {
      const std::uint64_t window = std::min(bytes, dice_.Magnitude(64, kLargestWindowBytes));
      std::uint64_t begin = dice_.Below(bytes - window + 1);
      if (dice_.Percent(20)) begin = 0;
      if (dice_.Percent(20)) begin = bytes - window;
      if (dice_.Percent(25) && bytes > kChunkBytes + window) begin = kChunkBytes - window / 2;
      if (dice_.Percent(70)) begin -= begin % 8;
      cuts.insert(begin);
      if (begin + window < bytes) cuts.insert(begin + window);
    }
    return {cuts.begin(), cuts.end()};
  }

  void AddWriteTo(int buffer) {
    const std::uint64_t choice = dice_.Below(100);
    if (choice < 50) return AddKernelInto(buffer);
    if (choice < 80) return AddCopyInto(buffer);
    AddFillOf(buffer);
  }

  void AddFree() {
    const int buffer = PickBuffer([](const Buffer&) { return true; });
    if (buffer == kNone) return;
    if (world_.At(buffer).InHostMemory() && dice_.Percent(70)) return;
    AddFreeOf(buffer);
  }

  void AddFreeOf(int buffer) {
    const AllocForm form = world_.At(buffer).form;
    FreeForm how = FreeForm::kMemFree;
    if (IsHostMemory(form)) {
      how = FreeForm::kHost;
    } else if (IsStreamOrdered(form) ? dice_.Percent(85) : dice_.Percent(8)) {
      how = FreeForm::kFreeAsync;
    }
    Add({.kind = Kind::kFree,
         .thread = thread_,
         .form = static_cast<std::uint8_t>(how),
         .stream = PickStream(),
         .buffer = buffer});
  }

  // Memory is freed while work on it is still queued, and memory of the same or another size is taken and written.
  void AddReuse() {
    const int buffer = PickBuffer([](const Buffer& b) { return !b.InHostMemory(); });
    if (buffer == kNone) return;
    const std::uint64_t bytes = world_.At(buffer).bytes;
    const int reader = PickBuffer([](const Buffer& b) { return !b.InHostMemory(); });
    if (dice_.Percent(50)) {
      AddKernelInto(buffer);
    } else if (reader != buffer) {
      AddKernelInto(reader, buffer);
    }
    AddFreeOf(buffer);
    const std::uint64_t choice = dice_.Below(100);
    const int again = AddAllocOf(choice < 60   ? bytes
                                 : choice < 80 ? LargeBytes()
                                               : std::max<std::uint64_t>(bytes / 2, 256));
    if (again != kNone) AddWriteTo(again);
  }

  template <typename Wanted>
  int PickBuffer(Wanted wanted) {
    std::vector<int> candidates;
    for (const auto& [id, buffer] : world_.Buffers()) {
      if (buffer.live && buffer.thread == thread_ && wanted(buffer)) candidates.push_back(id);
    }
    return candidates.empty() ? kNone : candidates[dice_.Below(candidates.size())];
  }

  // A part of a buffer that has been written, at most `limit_bytes` of it; nothing where there is none.
  std::optional<View> PickReadable(int buffer, std::uint64_t limit_bytes) {
    std::vector<Segment> written;
    for (const Segment& segment : world_.At(buffer).segments) {
      if (segment.initialised) written.push_back(segment);
    }
    if (written.empty()) return std::nullopt;
    return Within(buffer, written[dice_.Below(written.size())], limit_bytes);
  }

  View Within(int buffer, const Segment& segment, std::uint64_t limit_bytes) {
    const std::uint64_t length = segment.end_bytes - segment.begin_bytes;
    const std::uint64_t bytes =
        dice_.Percent(40) && length <= limit_bytes ? length : dice_.Between(1, std::min(length, limit_bytes));
    std::uint64_t offset = segment.begin_bytes + dice_.Below(length - bytes + 1);
    return {buffer, offset, bytes};
  }

  // A part of a buffer to write: a window not written yet as a whole, else part of one that was.
  std::optional<View> PickWritable(int buffer, std::uint64_t limit_bytes) {
    const std::vector<Segment>& segments = world_.At(buffer).segments;
    for (int tries = 0; tries < 8; ++tries) {
      const Segment& segment = segments[dice_.Below(segments.size())];
      const std::uint64_t length = segment.end_bytes - segment.begin_bytes;
      if (segment.initialised && dice_.Percent(60)) return Within(buffer, segment, limit_bytes);
      if (!segment.initialised && length <= limit_bytes) return View{buffer, segment.begin_bytes, length};
    }
    return std::nullopt;
  }

  void AddKernel() {
    const int buffer = PickBuffer([](const Buffer& b) { return b.form != AllocForm::kPageable; });
    if (buffer != kNone) AddKernelInto(buffer);
  }

  void AddKernelInto(int buffer, int first_input = kNone) {
    Operation kernel{.kind = Kind::kKernel, .thread = thread_, .on_stream = true, .stream = PickStream()};
    kernel.form = static_cast<std::uint8_t>(dice_.Below(4));
    const std::optional<View> out = PickKernelOutput(buffer);
    if (!out) return;
    kernel.out = *out;
    for (std::uint64_t i = dice_.Between(first_input == kNone ? 0 : 1, 3); i > 0; --i) {
      const int from = i == 1 && first_input != kNone
                           ? first_input
                           : PickBuffer([](const Buffer& b) { return b.form != AllocForm::kPageable; });
      if (const std::optional<View> in = PickKernelInput(from)) kernel.in.push_back(*in);
    }
    if (dice_.Percent(25)) kernel.decoy = PickDecoy();
    Add(kernel);
  }

  // Mostly a window; of a buffer written all over sometimes words spread over all of it.
  std::optional<View> PickKernelInput(int buffer) {
    const Buffer& from = world_.At(buffer);
    if (from.IsWholeInitialised() && dice_.Percent(50)) return Spread(buffer);
    return PickReadable(buffer, kLargestWindowBytes);
  }
  std::optional<View> PickKernelOutput(int buffer) {
    if (world_.At(buffer).IsWholeInitialised() && dice_.Percent(30)) return Spread(buffer);
    return PickWritable(buffer, kLargestWindowBytes);
  }
  View Spread(int buffer) {
    const std::uint64_t bytes = world_.At(buffer).bytes;
    return {buffer, 0, bytes, std::max<std::uint64_t>(8, RoundUp(bytes / 2000, 8) + 8)};
  }

  // Any buffer whose pointer may lie about in a kernel's parameters: it must do no harm, freed or not.
  int PickDecoy() {
    std::vector<int> candidates;
    for (const auto& [id, buffer] : world_.Buffers()) {
      if (buffer.thread == thread_ && !buffer.InHostMemory()) candidates.push_back(id);
    }
    return candidates.empty() ? kNone : candidates[dice_.Below(candidates.size())];
  }

  void AddCopy() {
    const int buffer = PickBuffer([](const Buffer&) { return true; });
    if (buffer != kNone) AddCopyInto(buffer);
  }

  void AddCopyInto(int buffer) {
    const int from =
        PickBuffer([&](const Buffer& b) { return b.InHostMemory() != world_.At(buffer).InHostMemory(); });
    const int source = dice_.Percent(30) ? PickBuffer([](const Buffer&) { return true; }) : from;
    if (source == kNone || source == buffer) return;
    if (world_.At(source).InHostMemory() && world_.At(buffer).InHostMemory()) return;
    Operation copy{
        .kind = Kind::kCopy, .thread = thread_, .on_stream = dice_.Percent(65), .stream = kLegacyStream};
    if (copy.on_stream) copy.stream = PickStream();
    const bool placed = dice_.Percent(25)   ? PlaceBoxes(copy, source, buffer)
                        : dice_.Percent(15) ? PlaceWhole(copy, source, buffer)
                                            : PlaceLine(copy, source, buffer);
    if (placed) Add(copy);
  }

  bool PlaceLine(Operation& copy, int source, int target) {
    const std::optional<View> out = PickWritable(target, kLargestWindowBytes);
    if (!out) return false;
    for (int tries = 0; tries < 6; ++tries) {
      std::optional<View> in = PickReadable(source, ~0ull);
      if (!in || in->bytes < out->bytes) continue;
      in->offset_bytes += dice_.Below(in->bytes - out->bytes + 1);
      in->bytes = out->bytes;
      return Place(copy, *in, *out);
    }
    return false;
  }

  bool PlaceWhole(Operation& copy, int source, int target) {
    const std::uint64_t bytes = world_.At(target).bytes;
    if (bytes > kLargestDenseBytes || world_.At(source).bytes < bytes) return false;
    return Place(copy, {source, 0, bytes}, {target, 0, bytes});
  }

  bool Place(Operation& copy, const View& in, const View& out) {
    copy.form = static_cast<std::uint8_t>(dice_.Percent(30) ? CopyForm::kUnified : CopyForm::kTyped);
    copy.in = {in};
    copy.out = out;
    return true;
  }

  // Boxes of the same shape in a written part of both buffers, with pitches of their own.
  bool PlaceBoxes(Operation& copy, int source, int target) {
    const std::optional<View> in = PickReadable(source, kMiB);
    const std::optional<View> out = PickReadable(target, kMiB);
    if (!in || !out) return false;
    const std::uint64_t room_bytes = std::min(in->bytes, out->bytes);
    if (room_bytes < 64) return false;
    const bool deep = dice_.Percent(40);
    copy.box.slices = deep ? dice_.Between(1, 3) : 1;
    copy.box.rows = dice_.Between(1, 6);
    const std::uint64_t most_row_bytes = room_bytes / (copy.box.rows * copy.box.slices * 2);
    if (most_row_bytes == 0) return false;
    copy.box.row_bytes = std::min<std::uint64_t>(dice_.Between(1, most_row_bytes), 4096);
    copy.form = static_cast<std::uint8_t>(deep                                   ? CopyForm::k3D
                                          : !copy.on_stream && dice_.Percent(40) ? CopyForm::k2DUnaligned
                                                                                 : CopyForm::k2D);
    copy.in = {Boxed(*in, copy.box)};
    copy.out = Boxed(*out, copy.box);
    return true;
  }

  // `box` laid into `room` from its beginning, with the widest or a narrower pitch that fits.
  View Boxed(const View& room, const Box& box) {
    View view = room;
    const std::uint64_t all_rows = box.rows * box.slices;
    view.pitch_bytes = dice_.Between(box.row_bytes, std::max(box.row_bytes, room.bytes / all_rows));
    view.slice_rows = box.rows;
    view.bytes = view.pitch_bytes * (all_rows - 1) + box.row_bytes;
    return view;
  }

  void AddFill() {
    const int buffer = PickBuffer([](const Buffer& b) { return !b.InHostMemory(); });
    if (buffer != kNone) AddFillOf(buffer);
  }

  void AddFillOf(int buffer) {
    Operation fill{
        .kind = Kind::kFill, .thread = thread_, .on_stream = dice_.Percent(60), .stream = kLegacyStream};
    if (fill.on_stream) fill.stream = PickStream();
    const std::uint64_t whole_bytes = world_.At(buffer).bytes;
    std::optional<View> out = PickWritable(buffer, kLargestWindowBytes);
    const bool whole = dice_.Percent(whole_bytes <= kLargestDenseBytes ? 40 : 4);
    if (whole) out = View{buffer, 0, whole_bytes};
    if (!out) return;
    fill.out = *out;
    fill.form = static_cast<std::uint8_t>(PickFillForm(fill));
    Add(fill);
  }

  // Wider elements need aligned ends; rows only where bytes between them may stay as they are.
  FillForm PickFillForm(Operation& fill) {
    const std::uint64_t ends = fill.out.offset_bytes | fill.out.bytes;
    const int widest = ends % 4 == 0 ? 3 : ends % 2 == 0 ? 2 : 1;
    const auto element = static_cast<int>(dice_.Below(widest));
    const std::uint64_t element_bytes = 1ull << element;
    if (!IsWritten(fill.out) || fill.out.bytes < 64 * element_bytes || dice_.Percent(60)) {
      return static_cast<FillForm>(element);
    }
    fill.box.rows = dice_.Between(1, 5);
    fill.out.pitch_bytes = fill.out.bytes / fill.box.rows / element_bytes * element_bytes;
    fill.box.row_bytes = dice_.Between(1, fill.out.pitch_bytes / element_bytes) * element_bytes;
    fill.out.bytes = fill.out.pitch_bytes * (fill.box.rows - 1) + fill.box.row_bytes;
    return static_cast<FillForm>(element + 3);
  }

  bool IsWritten(const View& view) const {
    return world_.Allows({.kind = Kind::kInspect, .thread = thread_, .in = {view}});
  }

  void AddHostBuffer() {
    const auto form = static_cast<AllocForm>(
        dice_.Between(static_cast<int>(AllocForm::kPinned), static_cast<int>(AllocForm::kPageable)));
    Operation alloc{.kind = Kind::kAlloc, .thread = thread_, .form = static_cast<std::uint8_t>(form)};
    alloc.buffer = next_buffer_++;
    alloc.bytes = dice_.Percent(15) ? dice_.Between(1, 3) * kMiB : dice_.Magnitude(4 * kKiB, 256 * kKiB);
    alloc.cuts_bytes = {0, alloc.bytes / 3, alloc.bytes / 2};
    Add(alloc);
  }

  void AddHostAccess() {
    const int buffer = PickBuffer([](const Buffer& b) { return b.InHostMemory(); });
    if (buffer == kNone) return;
    const std::optional<View> view = PickReadable(buffer, kMiB);
    if (!view) return;
    if (dice_.Percent(60)) {
      Add({.kind = Kind::kHostFold, .thread = thread_, .in = {*view}});
    } else {
      Add({.kind = Kind::kHostFill, .thread = thread_, .out = *view});
    }
  }

  void AddHostFunction() {
    const int buffer = PickBuffer([](const Buffer& b) { return b.form == AllocForm::kPinned; });
    const int stream = PickStream();
    if (buffer == kNone || stream == kLegacyStream) return;
    const std::optional<View> view = PickReadable(buffer, kLargestWindowBytes);
    if (!view) return;
    Add({.kind = Kind::kHostFunction, .thread = thread_, .on_stream = true, .stream = stream, .out = *view});
  }

  void AddEvent() {
    const std::vector<int> events = world_.EventsOf(thread_);
    const std::uint64_t choice = dice_.Below(100);
    if (events.empty() || choice < 50) {
      const int event = thread_ * kEventsPerThread + static_cast<int>(dice_.Below(kEventsPerThread));
      Add({.kind = Kind::kEventRecord, .thread = thread_, .stream = PickStream(), .event = event});
      return;
    }
    const int event = events[dice_.Below(events.size())];
    if (choice < 90) {
      Add({.kind = Kind::kEventWait, .thread = thread_, .stream = PickStream(), .event = event});
    } else {
      Add({.kind = Kind::kEventSync, .thread = thread_, .event = event});
    }
  }

  void AddSync() {
    if (dice_.Percent(60)) {
      Add({.kind = Kind::kStreamSync, .thread = thread_, .stream = PickStream()});
    } else {
      Add({.kind = Kind::kContextSync, .thread = thread_});
    }
  }

  void AddPoolCall() {
    const std::vector<int> pools = world_.PoolsOf(thread_);
    if (pools.empty() || dice_.Percent(30)) {
      Add({.kind = Kind::kPoolCreate, .thread = thread_, .pool = next_pool_++});
    } else {
      const Kind kind = dice_.Percent(70) ? Kind::kPoolTrim : Kind::kPoolDestroy;
      Add({.kind = kind, .thread = thread_, .pool = pools[dice_.Below(pools.size())]});
    }
  }

  void AddInspect() {
    const int buffer = PickBuffer([](const Buffer& b) { return !b.InHostMemory(); });
    if (buffer == kNone) return;
    if (const std::optional<View> view = PickReadable(buffer, kMiB)) {
      Add({.kind = Kind::kInspect, .thread = thread_, .in = {*view}});
    }
  }

  void AddHandOver() {
    if (shape_.threads < 2) return;
    const int buffer = PickBuffer([](const Buffer& b) { return b.form != AllocForm::kPageable; });
    if (buffer == kNone) return;
    Add({.kind = Kind::kGive, .thread = thread_, .stream = PickStream(), .buffer = buffer});
  }

  const Shape shape_;
  Random dice_;
  World world_;
  std::vector<Operation> program_;
  std::uint64_t live_limit_bytes_ = 0;
  int thread_ = 0;
  int next_buffer_ = 0;
  int next_stream_ = kFirstCreatedStream;
  int next_pool_ = 0;
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
