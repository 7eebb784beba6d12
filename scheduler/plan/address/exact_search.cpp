#include "scheduler/plan/address/exact_search.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <utility>

namespace spillway::scheduler::address {
namespace {

constexpr int64_t kNowhere = -1;
constexpr int64_t kHighest = std::numeric_limits<int64_t>::max();

// A buffer in sections; a section is the time between consecutive births or deaths.
struct Block {
  int first_section = 0;
  int end_section = 0;
  int64_t size = 0;
  int64_t alignment = 1;
  int64_t lifetime = 1;
  int64_t fixed = kNowhere;
  std::vector<int> neighbours;
};

struct Section {
  std::vector<int> blocks;
};

struct Sections {
  explicit Sections(const Problem& problem);

  std::vector<Block> blocks;
  std::vector<Section> sections;
  bool has_fixed = false;
};

Sections::Sections(const Problem& problem) {
  std::vector<int64_t> moments;
  for (const Buffer& buffer : problem.buffers) {
    moments.push_back(buffer.lower);
    moments.push_back(buffer.upper);
  }
  std::sort(moments.begin(), moments.end());
  moments.erase(std::unique(moments.begin(), moments.end()), moments.end());
  const auto section_at = [&](int64_t moment) {
    return static_cast<int>(std::lower_bound(moments.begin(), moments.end(), moment) -
                            moments.begin());
  };
  sections.resize(moments.empty() ? 0 : moments.size() - 1);
  for (const Buffer& buffer : problem.buffers) {
    Block block{section_at(buffer.lower),
                section_at(buffer.upper),
                buffer.size_bytes,
                buffer.alignment_bytes,
                buffer.upper - buffer.lower,
                buffer.fixed_offset_bytes.value_or(kNowhere),
                {}};
    has_fixed = has_fixed || block.fixed != kNowhere;
    for (int s = block.first_section; s < block.end_section; ++s) {
      sections[s].blocks.push_back(static_cast<int>(blocks.size()));
    }
    blocks.push_back(std::move(block));
  }
  for (size_t i = 0; i < blocks.size(); ++i) {
    for (size_t j = 0; j < blocks.size(); ++j) {
      if (i != j && OverlapInTime(problem.buffers[i], problem.buffers[j]))
        blocks[i].neighbours.push_back(static_cast<int>(j));
    }
  }
}

// Width is a lifetime, span a number of sections. Each preference solves problems quickly on which
// the others never end.
enum class Preference {
  kCrowdedWideLarge,
  kCrowdedLargeSpan,
  kCrowdedSpanLarge,
  kLargeSpanCrowded
};
constexpr std::array kPreferences = {Preference::kCrowdedWideLarge, Preference::kCrowdedLargeSpan,
                                     Preference::kCrowdedSpanLarge, Preference::kLargeSpanCrowded};

using Key = std::array<int64_t, 3>;

// `crowd` is the largest sum of waiting sizes in one of the block's sections. Products may wrap:
// the order is a heuristic.
Key KeyOf(const Block& block, int64_t crowd, Preference preference) {
  const int64_t span = block.end_section - block.first_section;
  const auto area = [&](int64_t length) {
    return static_cast<int64_t>(static_cast<uint64_t>(length) * static_cast<uint64_t>(block.size));
  };
  switch (preference) {
    case Preference::kCrowdedWideLarge:
      return {crowd, block.lifetime, area(block.lifetime)};
    case Preference::kCrowdedLargeSpan:
      return {crowd, area(span), span};
    case Preference::kCrowdedSpanLarge:
      return {crowd, span, area(span)};
    case Preference::kLargeSpanCrowded:
      return {area(span), crowd, span};
  }
  return {};
}

class Round {
 public:
  Round(const Sections& sections, int64_t capacity, Preference preference, int64_t node_limit);

  SearchVerdict Run();
  int64_t nodes() const { return nodes_; }
  const std::vector<int64_t>& offsets() const { return offsets_; }

 private:
  struct Part {  // waiting blocks, by rank, in sections [first, end)
    std::vector<int> blocks;
    int first_section;
    int end_section;
  };
  struct Undo {
    int index;
    int64_t value;
  };
  struct Mark {  // lengths of the undo lists
    size_t placed;
    size_t least;
    size_t floors;
  };

  SearchVerdict Search(const Part& part, int64_t least_offset, int least_rank);
  SearchVerdict GoBelow(const Part& part, int placed, int64_t offset);
  SearchVerdict SolveAlone(std::vector<Part> parts);
  void RankBlocks(Part& part);
  std::vector<Part> Split(const Part& part, int placed) const;
  bool Place(int block, int64_t offset);
  bool RaiseNeighbours(const Block& block, int64_t height);
  void UndoTo(const Mark& mark);
  int64_t LowestWaiting(int section) const;
  void RaiseLeast(int block, int64_t height);
  void RaiseFloor(int section, int64_t floor);
  bool SectionsFit(const Part& part, int64_t offset) const;
  int64_t LowestTop(const std::vector<int>& order) const;

  const std::vector<Block>& blocks_;
  const std::vector<Section>& sections_;
  const bool may_skip_gaps_;
  const int64_t capacity_;
  const int64_t node_limit_;
  const Preference preference_;
  std::vector<int> rank_;  // by block: its rank in its part

  std::vector<int64_t> offsets_;    // by block; kNowhere while waiting
  std::vector<int64_t> least_;      // by block: the lowest offset at which it can rest
  std::vector<int64_t> floors_;     // by section: a lower limit for waiting blocks
  std::vector<int64_t> remaining_;  // by section: total size of waiting blocks
  std::vector<int> crossing_;  // by section: waiting blocks alive in it and in the previous one
  std::vector<int> placed_;
  std::vector<Undo> least_undo_;
  std::vector<Undo> floor_undo_;
  std::vector<int> stamp_;    // by section: the last placement that touched it
  std::vector<int> touched_;  // sections of blocks that it raised
  int stamp_now_ = 0;
  int64_t nodes_ = 0;
};

Round::Round(const Sections& sections, int64_t capacity, Preference preference, int64_t node_limit)
    : blocks_(sections.blocks),
      sections_(sections.sections),
      may_skip_gaps_(!sections.has_fixed),
      capacity_(capacity),
      node_limit_(node_limit),
      preference_(preference),
      rank_(blocks_.size()),
      offsets_(blocks_.size(), kNowhere),
      least_(blocks_.size(), 0),
      floors_(sections_.size(), 0),
      remaining_(sections_.size(), 0),
      crossing_(sections_.size() + 1, 0),
      stamp_(sections_.size(), 0) {
  for (size_t i = 0; i < blocks_.size(); ++i) {
    const Block& block = blocks_[i];
    if (block.fixed != kNowhere) least_[i] = block.fixed;
    for (int s = block.first_section; s < block.end_section; ++s) {
      remaining_[s] += block.size;
      if (s > block.first_section) ++crossing_[s];
    }
  }
}

SearchVerdict Round::Run() {
  Part all{{}, 0, static_cast<int>(sections_.size())};
  all.blocks.resize(blocks_.size());
  std::iota(all.blocks.begin(), all.blocks.end(), 0);
  if (!SectionsFit(all, 0)) return SearchVerdict::kImpossible;
  return SolveAlone(Split(all, kNowhere));
}

SearchVerdict Round::Search(const Part& part, int64_t least_offset, int least_rank) {
  if (part.blocks.empty()) return SearchVerdict::kFound;
  if (++nodes_ > node_limit_) return SearchVerdict::kGaveUp;
  std::vector<int> order = part.blocks;
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return least_[a] < least_[b]; });
  const int64_t too_high = may_skip_gaps_ ? LowestTop(order) : kHighest;
  for (const int block : order) {
    const int64_t offset = least_[block];
    if (offset >= too_high) break;
    if (offset < least_offset || (offset == least_offset && rank_[block] < least_rank)) continue;
    const Mark before{placed_.size(), least_undo_.size(), floor_undo_.size()};
    SearchVerdict verdict = SearchVerdict::kImpossible;
    if (Place(block, offset) && SectionsFit(part, offset)) verdict = GoBelow(part, block, offset);
    if (verdict == SearchVerdict::kFound) return verdict;
    UndoTo(before);
    if (verdict != SearchVerdict::kImpossible) return verdict;
  }
  return SearchVerdict::kImpossible;
}

SearchVerdict Round::GoBelow(const Part& part, int placed, int64_t offset) {
  std::vector<Part> parts = Split(part, placed);
  if (parts.size() == 1) return Search(parts.front(), offset, rank_[placed]);
  return SolveAlone(std::move(parts));
}

// Parts share no waiting block, so each may restart from the lowest offset in an order of its own.
SearchVerdict Round::SolveAlone(std::vector<Part> parts) {
  for (Part& part : parts) {
    std::vector<Undo> old_ranks;
    for (const int block : part.blocks) old_ranks.push_back({block, rank_[block]});
    RankBlocks(part);
    const SearchVerdict verdict = Search(part, 0, 0);
    for (const Undo& old : old_ranks) rank_[old.index] = static_cast<int>(old.value);
    if (verdict != SearchVerdict::kFound) return verdict;
  }
  return SearchVerdict::kFound;
}

void Round::RankBlocks(Part& part) {
  std::vector<std::pair<Key, int>> order;
  for (const int block : part.blocks) {
    int64_t crowd = 0;
    for (int s = blocks_[block].first_section; s < blocks_[block].end_section; ++s)
      crowd = std::max(crowd, remaining_[s]);
    order.emplace_back(KeyOf(blocks_[block], crowd, preference_), block);
  }
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  for (size_t i = 0; i < order.size(); ++i) {
    part.blocks[i] = order[i].second;
    rank_[order[i].second] = static_cast<int>(i);
  }
}

// Splits wherever no waiting block connects two sections.
std::vector<Round::Part> Round::Split(const Part& part, int placed) const {
  std::vector<Part> parts;
  parts.push_back({{}, part.first_section, part.end_section});
  for (int s = part.first_section + 1; s < part.end_section; ++s) {
    if (crossing_[s] != 0) continue;
    parts.back().end_section = s;
    parts.push_back({{}, s, part.end_section});
  }
  for (const int block : part.blocks) {
    if (block == placed) continue;
    const auto home = std::upper_bound(
        parts.begin(), parts.end(), blocks_[block].first_section,
        [](int section, const Part& other) { return section < other.end_section; });
    home->blocks.push_back(block);
  }
  std::erase_if(parts, [](const Part& one) { return one.blocks.empty(); });
  return parts;
}

// False if a waiting block no longer fits. Call UndoTo() in either case.
bool Round::Place(int placed, int64_t offset) {
  const Block& block = blocks_[placed];
  const int64_t height = offset + block.size;
  offsets_[placed] = offset;
  placed_.push_back(placed);
  for (int s = block.first_section; s < block.end_section; ++s) {
    remaining_[s] -= block.size;
    if (s > block.first_section) --crossing_[s];
    RaiseFloor(s, height);
  }
  if (!RaiseNeighbours(block, height)) return false;
  for (const int s : touched_) {
    RaiseFloor(s, LowestWaiting(s));
    if (floors_[s] + remaining_[s] > capacity_) return false;
  }
  return true;
}

// Waiting neighbours must rest at or above the block's top. Lists the affected sections.
bool Round::RaiseNeighbours(const Block& block, int64_t height) {
  ++stamp_now_;
  touched_.clear();
  for (int s = block.first_section; s < block.end_section; ++s) {
    stamp_[s] = stamp_now_;
    touched_.push_back(s);
  }
  for (const int other : block.neighbours) {
    if (offsets_[other] != kNowhere || least_[other] >= height) continue;
    if (blocks_[other].fixed != kNowhere) return false;
    const int64_t was = least_[other];
    RaiseLeast(other, height);
    if (least_[other] + blocks_[other].size > capacity_) return false;
    for (int s = blocks_[other].first_section; s < blocks_[other].end_section; ++s) {
      if (stamp_[s] == stamp_now_ || was > floors_[s]) continue;  // others hold the floor down
      stamp_[s] = stamp_now_;
      touched_.push_back(s);
    }
  }
  return true;
}

// 0 if no block waits. Stops at the floor, because only a higher result matters.
int64_t Round::LowestWaiting(int section) const {
  int64_t lowest = kHighest;
  for (const int block : sections_[section].blocks) {
    if (offsets_[block] != kNowhere) continue;
    lowest = std::min(lowest, least_[block]);
    if (lowest <= floors_[section]) return lowest;
  }
  return lowest == kHighest ? 0 : lowest;
}

void Round::UndoTo(const Mark& mark) {
  for (; least_undo_.size() > mark.least; least_undo_.pop_back())
    least_[least_undo_.back().index] = least_undo_.back().value;
  for (; floor_undo_.size() > mark.floors; floor_undo_.pop_back())
    floors_[floor_undo_.back().index] = floor_undo_.back().value;
  for (; placed_.size() > mark.placed; placed_.pop_back()) {
    const Block& block = blocks_[placed_.back()];
    for (int s = block.first_section; s < block.end_section; ++s) {
      remaining_[s] += block.size;
      if (s > block.first_section) ++crossing_[s];
    }
    offsets_[placed_.back()] = kNowhere;
  }
}

void Round::RaiseLeast(int block, int64_t height) {
  const int64_t alignment = blocks_[block].alignment;
  least_undo_.push_back({block, least_[block]});
  least_[block] = (height + alignment - 1) / alignment * alignment;
}

void Round::RaiseFloor(int section, int64_t floor) {
  if (floors_[section] >= floor) return;
  floor_undo_.push_back({section, floors_[section]});
  floors_[section] = floor;
}

// Offsets only grow along a branch, so no waiting block can lie below `offset`.
bool Round::SectionsFit(const Part& part, int64_t offset) const {
  for (int s = part.first_section; s < part.end_section; ++s) {
    if (remaining_[s] != 0 && std::max(floors_[s], offset) + remaining_[s] > capacity_)
      return false;
  }
  return true;
}

// A block at or above this leaves a gap that the block with the lowest top would fit.
int64_t Round::LowestTop(const std::vector<int>& order) const {
  int64_t lowest = kHighest;
  for (const int block : order) lowest = std::min(lowest, least_[block] + blocks_[block].size);
  return lowest;
}

}  // namespace

SearchOutcome SearchLayout(const Problem& problem, const SearchOptions& options) {
  SearchOutcome outcome;
  if (problem.buffers.size() > kMostSearchedBuffers) return outcome;
  const Sections sections(problem);
  // Rounds with growing limits: one preference often succeeds quickly where another never does.
  for (int64_t limit = 2 * static_cast<int64_t>(problem.buffers.size()) + 16;; limit *= 2) {
    for (const Preference preference : kPreferences) {
      const int64_t left = options.node_limit - outcome.nodes;
      if (left <= 0) return outcome;
      Round round(sections, problem.capacity_bytes, preference, std::min(limit, left));
      outcome.verdict = round.Run();
      outcome.nodes += round.nodes();
      if (outcome.verdict == SearchVerdict::kGaveUp) continue;
      if (outcome.verdict == SearchVerdict::kFound) {
        outcome.layout.offsets_bytes = round.offsets();
        outcome.layout.height_bytes = HeightOf(problem.buffers, outcome.layout.offsets_bytes);
      }
      return outcome;
    }
  }
}

}  // namespace spillway::scheduler::address
