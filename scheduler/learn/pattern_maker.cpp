#include "scheduler/learn/pattern_maker.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>

namespace spillway::scheduler {
namespace {

constexpr int64_t kCutContext = 8;

int64_t Modulo(int64_t value, int64_t divisor) { return (value % divisor + divisor) % divisor; }

// If still alive, extrapolates from the earlier repetition.
int64_t FreedAt(const EventHistory& history, const Repetition& repetition, uint64_t allocation) {
  const int64_t freed = history.Find(allocation)->freed;
  const uint64_t earlier = repetition.InA(allocation);
  if (freed != KnownAllocation::kAlive || earlier == 0 || earlier == allocation) return freed;
  const int64_t earlier_freed = history.Find(earlier)->freed;
  return earlier_freed == KnownAllocation::kAlive ? earlier_freed
                                                  : earlier_freed + repetition.distance();
}

// Bytes of changing allocations alive before each event of A, in a circle.
std::vector<int64_t> LiveBytes(const EventHistory& history, const Repetition& repetition) {
  const int64_t distance = repetition.distance(), begin = repetition.a_begin();
  std::vector<int64_t> change(static_cast<size_t>(distance) + 1, 0);
  const auto add = [&](int64_t from, int64_t until, int64_t bytes) {
    change[static_cast<size_t>(from)] += bytes;
    change[static_cast<size_t>(until)] -= bytes;
  };
  for (int64_t position = begin; position < begin + distance; ++position) {
    if (history.kind(position) != JobEventKind::kAllocate) continue;
    const uint64_t allocation = history.touch(position, 0).allocation;
    const int64_t freed = FreedAt(history, repetition, allocation);
    if (freed == KnownAllocation::kAlive) continue;  // always alive, so it favours no position
    // One that lives longer than an iteration adds to every position, and once more to some.
    const int64_t from = position - begin + 1, until = from + (freed - position - 1) % distance;
    const int64_t size_bytes = history.Find(allocation)->size_bytes;
    add(from, std::min(until, distance), size_bytes);
    if (until > distance) add(0, until - distance, size_bytes);
  }
  change.pop_back();
  for (size_t i = 1; i < change.size(); ++i) change[i] += change[i - 1];
  return change;
}

// Independent of where the repetition begins.
uint64_t ContextHashOf(const EventHistory& history, const Repetition& repetition, int64_t offset) {
  uint64_t hash = 1;
  for (int64_t i = offset - kCutContext; i < offset + kCutContext; ++i)
    hash = MixToken(hash, history.token(repetition.a_begin() + Modulo(i, repetition.distance())));
  return hash;
}

int64_t CutOf(const EventHistory& history, const Repetition& repetition) {
  const std::vector<int64_t> live = LiveBytes(history, repetition);
  const int64_t distance = repetition.distance();
  const int64_t least = *std::min_element(live.begin(), live.end());
  const auto is_least = [&](int64_t i) {
    return live[static_cast<size_t>(Modulo(i, distance))] == least;
  };
  struct Choice {
    int64_t stretch = 0;
    uint64_t surroundings = 0;
    int64_t offset = 0;
  };
  std::optional<Choice> best;
  int64_t stretch = 0;
  // Twice around, to see a stretch across the end whole.
  for (int64_t i = 0; i < 2 * distance; ++i) {
    stretch = is_least(i) ? std::min(stretch + 1, distance) : 0;
    const bool ends = stretch > 0 && (!is_least(i + 1) || stretch == distance);
    if (!ends || i < distance || (best && stretch < best->stretch)) continue;
    const Choice choice{stretch, ContextHashOf(history, repetition, i), i - distance};
    if (!best || stretch > best->stretch || choice.surroundings < best->surroundings) best = choice;
  }
  return best->offset;
}

class PatternMaker {
 public:
  PatternMaker(const EventHistory& history, const Repetition& repetition)
      : history_(history),
        repetition_(repetition),
        size_(repetition.distance()),
        begin_(repetition.a_begin() + CutOf(history, repetition)) {}

  MadePattern Make() {
    for (int64_t i = 0; i < size_; ++i) AddEvent(i);
    for (int32_t i = 0, count = BufferCount(); i < count; ++i) HandOn(i);
    MakeProfile();
    pattern_.fingerprint = FingerprintOf(pattern_);
    return {std::move(pattern_), static_cast<int32_t>((history_.end() - begin_) % size_)};
  }

 private:
  // The event that makes an allocation, `age` iterations ago.
  struct Origin {
    int64_t offset = -1;
    int64_t age = 0;
    auto operator<=>(const Origin&) const = default;
  };

  int32_t BufferCount() const { return static_cast<int32_t>(pattern_.buffers.size()); }
  PatternBuffer& At(int32_t buffer) { return pattern_.buffers[static_cast<size_t>(buffer)]; }
  bool IsPersistent(uint64_t allocation) const {
    return repetition_.InB(allocation) == allocation || repetition_.InA(allocation) == allocation;
  }

  void AddEvent(int64_t i) {
    const int64_t position = begin_ + i;
    PatternEvent event;
    event.kind = history_.kind(position);
    const bool is_stray = repetition_.IsStray((position - repetition_.a_begin()) % size_);
    event.token = is_stray ? kAnyToken : history_.token(position);
    event.first_touch = static_cast<int32_t>(pattern_.touches.size());
    if (event.kind == JobEventKind::kAllocate) {
      event.buffer = BufferOf(history_.touch(position, 0).allocation, i);
    } else {
      event.operation = operations_++;
    }
    const bool is_operation = event.kind == JobEventKind::kOperation;
    const int64_t touches = is_operation ? history_.touch_count(position) : 0;
    for (int64_t touch = 0; touch < touches; ++touch) {
      const JobTouch of_job = history_.touch(position, touch);
      if (is_stray && !IsInBoth(position, of_job.allocation)) continue;
      ++event.touch_count;
      const int32_t buffer = BufferOf(of_job.allocation, i);
      pattern_.touches.push_back({buffer, of_job.writes, of_job.reads});
      last_touch_[static_cast<size_t>(buffer)] = i;
    }
    pattern_.events.push_back(event);
  }

  // Whether a stray operation names the allocation, or its match, in both repetitions.
  bool IsInBoth(int64_t position, uint64_t allocation) const {
    const bool is_in_a = position < repetition_.a_begin() + size_;
    const int64_t other = is_in_a ? position + size_ : position - size_;
    const uint64_t match = is_in_a ? repetition_.InB(allocation) : repetition_.InA(allocation);
    for (int64_t i = 0; match != 0 && i < history_.touch_count(other); ++i) {
      if (history_.touch(other, i).allocation == match) return true;
    }
    return false;
  }

  int32_t BufferOf(uint64_t allocation, int64_t event) {
    const auto [buffer, is_new] = by_allocation_.Insert(allocation);
    if (is_new) *buffer = NewBuffer(allocation, event);
    return *buffer;
  }

  int32_t NewBuffer(uint64_t allocation, int64_t event) {
    const KnownAllocation& known = *history_.Find(allocation);
    PatternBuffer buffer;
    buffer.size_bytes = known.size_bytes;
    buffer.persistent = known.born < begin_ && IsPersistent(allocation);
    Origin origin;
    if (buffer.persistent) {
      buffer.allocation = allocation;
    } else {
      origin = OriginOf(allocation);
      buffer.born_event = origin.age == 0 ? static_cast<int32_t>(origin.offset) : -1;
    }
    const int32_t index = Append(buffer, known.content_bytes, origin, event);
    const int64_t freed = FreedAt(history_, repetition_, allocation);
    freed_.back() = freed == KnownAllocation::kAlive ? freed : freed - begin_;
    return index;
  }

  int32_t Append(const PatternBuffer& buffer, int64_t content_bytes, Origin origin, int64_t event) {
    const int32_t index = BufferCount();
    pattern_.buffers.push_back(buffer);
    content_bytes_.push_back(content_bytes);
    origins_.push_back(origin);
    freed_.push_back(KnownAllocation::kAlive);
    first_seen_.push_back(event);
    last_touch_.push_back(-1);
    if (origin.offset >= 0) by_origin_[origin] = index;
    return index;
  }

  // Offset -1 if the allocation was made outside the sequence.
  Origin OriginOf(uint64_t allocation) const {
    int64_t back = 0;
    const KnownAllocation* known = history_.Find(allocation);
    // Before A the iteration may have differed; the later repetition's allocation is reliable.
    while (known->born < repetition_.a_begin()) {
      const uint64_t later = repetition_.InB(allocation);
      if (later == 0 || later == allocation) break;
      allocation = later;
      known = history_.Find(allocation);
      back += size_;
    }
    if (known->born == KnownAllocation::kForeign) return {-1, 1};
    const int64_t born = known->born - back - begin_;
    return {Modulo(born, size_), born >= 0 ? 0 : (size_ - 1 - born) / size_};
  }

  void HandOn(int32_t index) {
    const Origin origin = origins_[static_cast<size_t>(index)];
    if (At(index).persistent || origin.offset < 0) return;
    const Origin next{origin.offset, origin.age + 1};
    const int64_t freed = freed_[static_cast<size_t>(index)];
    const bool outlives = freed != KnownAllocation::kAlive && freed > size_;
    const bool is_touched_later = by_origin_.lower_bound(next) != by_origin_.end() &&
                                  by_origin_.lower_bound(next)->first.offset == origin.offset;
    if (!outlives && !is_touched_later) return;
    const auto known = by_origin_.find(next);
    int32_t becomes = known == by_origin_.end() ? -1 : known->second;
    if (becomes < 0) {
      PatternBuffer buffer;
      buffer.size_bytes = At(index).size_bytes;
      becomes = Append(buffer, content_bytes_[static_cast<size_t>(index)], next, 0);
      freed_.back() = outlives ? freed - size_ : KnownAllocation::kAlive;
      HandOn(becomes);
    }
    At(index).becomes = becomes;
  }

  void MakeProfile() {
    IterationProfile& profile = pattern_.profile;
    profile.name = "iteration";
    for (int32_t i = 0; i < BufferCount(); ++i) profile.buffers.push_back(ProfileBuffer(i));
    for (const PatternEvent& event : pattern_.events) {
      if (event.kind != JobEventKind::kOperation) continue;
      profile.operations.emplace_back().name = "o" + std::to_string(event.operation);
    }
    SetUses(&pattern_);
  }

  Buffer ProfileBuffer(int32_t index) {
    PatternBuffer& of_pattern = At(index);
    SetDeath(index);
    Buffer buffer;
    buffer.name = "b" + std::to_string(index);
    buffer.size_bytes = content_bytes_[static_cast<size_t>(index)];
    buffer.persistent = of_pattern.persistent;
    if (buffer.persistent) return buffer;
    const int64_t born =
        of_pattern.born_event >= 0 || origins_[static_cast<size_t>(index)].offset >= 0
            ? std::max(of_pattern.born_event, 0)
            : first_seen_[static_cast<size_t>(index)];
    buffer.born.index = std::min(OperationsBefore(born), operations_ - 1);
    buffer.dies.index =
        std::max(buffer.born.index, OperationsBefore(of_pattern.dies_event + 1) - 1);
    buffer.handed_on = of_pattern.becomes >= 0;
    return buffer;
  }

  void SetDeath(int32_t index) {
    PatternBuffer& buffer = At(index);
    const auto i = static_cast<size_t>(index);
    const bool is_from_outside = !buffer.persistent && origins_[i].offset < 0;
    int64_t dies = is_from_outside ? last_touch_[i] : std::min(freed_[i], size_) - 1;
    dies = std::max({dies, last_touch_[i], first_seen_[i]});
    buffer.dies_event = static_cast<int32_t>(buffer.persistent ? size_ - 1 : dies);
  }

  int32_t OperationsBefore(int64_t event) {
    if (operations_before_.empty()) {
      int32_t count = 0;
      for (const PatternEvent& each : pattern_.events) {
        operations_before_.push_back(count);
        count += each.kind == JobEventKind::kOperation;
      }
      operations_before_.push_back(count);
    }
    return operations_before_[static_cast<size_t>(event)];
  }

  const EventHistory& history_;
  const Repetition& repetition_;
  const int64_t size_;
  const int64_t begin_;
  IterationPattern pattern_;
  int32_t operations_ = 0;
  NumberMap<int32_t> by_allocation_{256};
  std::map<Origin, int32_t> by_origin_;
  // Indexed by buffer.
  std::vector<int64_t> content_bytes_;
  std::vector<Origin> origins_;
  std::vector<int64_t> freed_;  // number of the iteration's events before the free
  std::vector<int64_t> first_seen_, last_touch_;
  std::vector<int32_t> operations_before_;  // indexed by event
};

}  // namespace

MadePattern MakePattern(const EventHistory& history, const Repetition& repetition) {
  return PatternMaker(history, repetition).Make();
}

}  // namespace spillway::scheduler
