#include "tests/fuzz/differential/choose.h"

#include <set>

namespace spillway::fuzz {

int Chooser::PickStream() {
  const std::vector<int> streams = world_.StreamsOf(thread_);
  return streams[dice_.Below(streams.size())];
}

std::vector<std::uint64_t> Chooser::Cuts(std::uint64_t bytes) {
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

std::optional<View> Chooser::PickReadable(int buffer, std::uint64_t limit_bytes) {
  std::vector<Segment> written;
  for (const Segment& segment : world_.At(buffer).segments) {
    if (segment.initialised) written.push_back(segment);
  }
  if (written.empty()) return std::nullopt;
  return Within(buffer, written[dice_.Below(written.size())], limit_bytes);
}

View Chooser::Within(int buffer, const Segment& segment, std::uint64_t limit_bytes) {
  const std::uint64_t length = segment.end_bytes - segment.begin_bytes;
  const std::uint64_t bytes = dice_.Percent(40) && length <= limit_bytes
                                  ? length
                                  : dice_.Between(1, std::min(length, limit_bytes));
  std::uint64_t offset = segment.begin_bytes + dice_.Below(length - bytes + 1);
  return {buffer, offset, bytes};
}

std::optional<View> Chooser::PickWritable(int buffer, std::uint64_t limit_bytes) {
  const std::vector<Segment>& segments = world_.At(buffer).segments;
  for (int tries = 0; tries < 8; ++tries) {
    const Segment& segment = segments[dice_.Below(segments.size())];
    const std::uint64_t length = segment.end_bytes - segment.begin_bytes;
    if (segment.initialised && dice_.Percent(60)) return Within(buffer, segment, limit_bytes);
    if (!segment.initialised && length <= limit_bytes)
      return View{buffer, segment.begin_bytes, length};
  }
  return std::nullopt;
}

std::optional<View> Chooser::PickKernelInput(int buffer) {
  const Buffer& from = world_.At(buffer);
  if (from.IsWholeInitialised() && dice_.Percent(50)) return Spread(buffer);
  return PickReadable(buffer, kLargestWindowBytes);
}
std::optional<View> Chooser::PickKernelOutput(int buffer) {
  if (world_.At(buffer).IsWholeInitialised() && dice_.Percent(30)) return Spread(buffer);
  return PickWritable(buffer, kLargestWindowBytes);
}
View Chooser::Spread(int buffer) const {
  const std::uint64_t bytes = world_.At(buffer).bytes;
  return {buffer, 0, bytes, std::max<std::uint64_t>(8, RoundUp(bytes / 2000, 8) + 8)};
}

int Chooser::PickDecoy() {
  std::vector<int> candidates;
  for (const auto& [id, buffer] : world_.Buffers()) {
    if (buffer.thread == thread_ && !buffer.InHostMemory()) candidates.push_back(id);
  }
  return PickOf(candidates);
}

bool Chooser::PlaceCopy(Operation& copy, int source, int target) {
  if (dice_.Percent(25)) return PlaceBoxes(copy, source, target);
  if (dice_.Percent(15)) return PlaceWhole(copy, source, target);
  return PlaceLine(copy, source, target);
}

bool Chooser::PlaceLine(Operation& copy, int source, int target) {
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

bool Chooser::PlaceWhole(Operation& copy, int source, int target) {
  const std::uint64_t bytes = world_.At(target).bytes;
  if (bytes > kLargestDenseBytes || world_.At(source).bytes < bytes) return false;
  return Place(copy, {source, 0, bytes}, {target, 0, bytes});
}

bool Chooser::Place(Operation& copy, const View& in, const View& out) {
  copy.form = static_cast<std::uint8_t>(dice_.Percent(30) ? CopyForm::kUnified : CopyForm::kTyped);
  copy.in = {in};
  copy.out = out;
  return true;
}

// Boxes of the same shape in a written part of both buffers, with pitches of their own.
bool Chooser::PlaceBoxes(Operation& copy, int source, int target) {
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
  copy.form =
      static_cast<std::uint8_t>(deep                                   ? CopyForm::k3D
                                : !copy.on_stream && dice_.Percent(40) ? CopyForm::k2DUnaligned
                                                                       : CopyForm::k2D);
  copy.in = {Boxed(*in, copy.box)};
  copy.out = Boxed(*out, copy.box);
  return true;
}

// From the beginning of `room`, with the widest or a narrower pitch that fits.
View Chooser::Boxed(const View& room, const Box& box) {
  View view = room;
  const std::uint64_t all_rows = box.rows * box.slices;
  view.pitch_bytes = dice_.Between(box.row_bytes, std::max(box.row_bytes, room.bytes / all_rows));
  view.slice_rows = box.rows;
  view.bytes = view.pitch_bytes * (all_rows - 1) + box.row_bytes;
  return view;
}

bool Chooser::PlaceFill(Operation& fill, int buffer) {
  const std::uint64_t whole_bytes = world_.At(buffer).bytes;
  const bool whole = dice_.Percent(whole_bytes <= kLargestDenseBytes ? 40 : 4);
  const std::optional<View> out =
      whole ? View{buffer, 0, whole_bytes} : PickWritable(buffer, kLargestWindowBytes);
  if (!out) return false;
  fill.out = *out;
  fill.form = static_cast<std::uint8_t>(PickFillForm(fill));
  return true;
}

// Wider elements need aligned ends; rows only where bytes between them may stay as they are.
FillForm Chooser::PickFillForm(Operation& fill) {
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

bool Chooser::IsWritten(const View& view) const {
  return world_.Allows({.kind = Kind::kInspect, .thread = thread_, .in = {view}});
}

}  // namespace spillway::fuzz
