#include "interposer/execute/residency/iteration_layout.h"

#include <algorithm>
#include <utility>

namespace spillway::interposer {
namespace {

// Fewer mapped chunks in an iteration are not worth a layout.
constexpr std::int64_t kWorthwhileChunks = 16;
// Per cent of the takes. Where more is mapped, so much moves that no layout was seen to last.
constexpr std::int64_t kMostMapped = 75;
// The time to lay them out, on the program's thread, grows with their square: 600 take some 10 ms,
// 2,048 some 120.
constexpr std::size_t kMostResidences = 2048;
constexpr std::size_t kMostMissesPercent = 5;
// Iterations before the first is laid out, and before a layout is judged: memory is still as it
// was.
constexpr int kSettling = 2;
constexpr std::size_t kFollowedPercent = 90;
// Poor iterations in a row that a layout is given. What disturbs one that has been good may pass.
constexpr int kPatience = 1, kPatienceOfGood = 4;
constexpr int kGoodInARow = 4;
constexpr int kMostIrregular = 8;
constexpr int kMostLayouts = 2;
constexpr int kPause = 512;

}  // namespace

const IterationLayout::Pieces* IterationLayout::PiecesFor(Take take, std::size_t bytes) const {
  if (laid_out_.empty()) return nullptr;
  const Key key{bytes, take};
  const auto known = laid_out_.find(key);
  if (known == laid_out_.end()) return nullptr;
  const auto taken = taken_.find(key);
  const std::size_t number = taken == taken_.end() ? 0 : taken->second;
  if (number >= known->second.size() || known->second[number].empty()) return nullptr;
  return &known->second[number];
}

// Without a plan, an iteration never ends: not all of it is recorded.
void IterationLayout::Took(Range* range, Take take, bool as_laid_out) {
  const Key key{range->size_bytes, take};
  if (!laid_out_.empty()) ++taken_[key];
  as_laid_out_ += as_laid_out;
  const Residence before = std::exchange(range->residence, {});
  if (record_.size() > kMostResidences) return;
  const Residence now = {iteration_, static_cast<std::uint32_t>(record_.size()), as_laid_out};
  record_.push_back({.key = key,
                     .when = {.begin = tick_++,
                              .granules = static_cast<std::int64_t>(key.first / kGranuleBytes),
                              .moves = take == Take::kRestore}});
  if (take == Take::kRestore && before.iteration == iteration_) {
    record_[before.number].when.twin = static_cast<std::int32_t>(now.number);
    record_.back().when.twin = static_cast<std::int32_t>(before.number);
  }
  range->residence = now;
}

void IterationLayout::Gave(const Range& range, Why why) {
  const bool moves = why == Why::kMoves;
  if (range.residence.iteration == iteration_) {
    scheduler::address::Residence& when = record_[range.residence.number].when;
    when.end = tick_++;
    when.moves |= moves;
  } else if (carried_in_.size() < kMostResidences) {
    carried_in_.push_back(
        {.key = {range.size_bytes, Take::kNew}, .when = {.end = tick_++, .moves = moves}});
  }
}

std::optional<std::vector<std::size_t>> IterationLayout::IterationEnded(const Iteration& last) {
  std::optional<std::vector<std::size_t>> sizes_bytes;
  switch (Judge(last)) {
    case Verdict::kGoOn:
      break;
    case Verdict::kLayOut:
      sizes_bytes = LayOut();
      break;
    case Verdict::kGiveUp:
      laid_out_.clear();
      sizes_bytes.emplace();
      break;
  }
  BeginRecord();
  return sizes_bytes;
}

IterationLayout::Verdict IterationLayout::Judge(const Iteration& last) {
  const std::size_t takes = record_.size();
  const auto misses = static_cast<std::size_t>(last.misses);
  if (takes == 0 || takes > kMostResidences || misses * 100 > takes * kMostMissesPercent) {
    return JudgeIrregular();
  }
  irregular_ = 0;
  if (pause_ > 0) --pause_;
  if (++settled_ <= kSettling || pause_ > 0) return Verdict::kGoOn;
  if (!laid_out_.empty()) return JudgeLayout(last);
  mapped_without_ = last.mapped_chunks;
  const bool is_worthwhile = last.mapped_chunks >= kWorthwhileChunks;
  const bool may_last = mapped_without_ * 100 <= static_cast<std::int64_t>(takes) * kMostMapped;
  return is_worthwhile && may_last ? Verdict::kLayOut : Verdict::kGoOn;
}

// The layout is of iterations that do not come any more.
IterationLayout::Verdict IterationLayout::JudgeIrregular() {
  settled_ = 0;
  const bool is_outdated = !laid_out_.empty() && ++irregular_ >= kMostIrregular;
  return is_outdated ? GiveUp() : Verdict::kGoOn;
}

IterationLayout::Verdict IterationLayout::GiveUp() {
  settled_ = layouts_ = irregular_ = 0;
  pause_ = kPause;
  return Verdict::kGiveUp;
}

IterationLayout::Verdict IterationLayout::JudgeLayout(const Iteration& last) {
  const bool is_poor = IsPoor(last);
  poor_ = is_poor ? poor_ + 1 : 0;
  good_ = is_poor ? 0 : good_ + 1;
  if (good_ >= kGoodInARow) layouts_ = 0;
  if (poor_ < (layouts_ == 0 ? kPatienceOfGood : kPatience)) return Verdict::kGoOn;
  return layouts_ < kMostLayouts ? Verdict::kLayOut : GiveUp();
}

bool IterationLayout::IsPoor(const Iteration& last) const {
  if (last.mapped_chunks >= mapped_without_) return true;
  const auto followed = static_cast<std::size_t>(as_laid_out_);
  return followed * 100 < record_.size() * kFollowedPercent &&
         last.mapped_chunks >= kWorthwhileChunks;
}

std::vector<std::size_t> IterationLayout::LayOut() {
  settled_ = good_ = poor_ = 0;
  ++layouts_;
  CloseRecord();
  std::vector<scheduler::address::Residence> residences;
  for (const Recorded& recorded : record_) residences.push_back(recorded.when);
  scheduler::address::PieceLayout layout = scheduler::address::LayOutPieces(
      residences, tick_, static_cast<std::int64_t>(kLargestChunkBytes / kGranuleBytes));
  laid_out_.clear();
  for (std::size_t i = 0; i < record_.size(); ++i)
    laid_out_[record_[i].key].push_back(std::move(layout.pieces[i]));
  std::vector<std::size_t> sizes_bytes;
  for (const std::int64_t granules : layout.piece_granules)
    sizes_bytes.push_back(static_cast<std::size_t>(granules) * kGranuleBytes);
  return sizes_bytes;
}

// What has not ended lasts as long as one of its size that began in the iteration before.
void IterationLayout::CloseRecord() {
  for (Recorded& recorded : record_) {
    if (recorded.when.end != 0) continue;
    recorded.when.end = tick_;
    const auto carried =
        std::find_if(carried_in_.begin(), carried_in_.end(), [&](const Recorded& other) {
          return other.key.first == recorded.key.first && other.when.end <= recorded.when.begin;
        });
    if (carried == carried_in_.end()) continue;
    recorded.when.end = tick_ + carried->when.end;
    recorded.when.moves |= carried->when.moves;
    carried_in_.erase(carried);
  }
}

void IterationLayout::BeginRecord() {
  ++iteration_;
  takes_ = record_.size();
  taken_.clear();
  record_.clear();
  carried_in_.clear();
  tick_ = 1;  // an end of 0: not yet
  as_laid_out_ = 0;
}

}  // namespace spillway::interposer
