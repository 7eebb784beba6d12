#include "scheduler/learn/event_history.h"

#include <algorithm>
#include <bit>

namespace spillway::scheduler {
namespace {

constexpr size_t kFirstEvents = 1024;
constexpr uint64_t kMostTouchesPerEvent = 8;  // on average
constexpr int64_t kUnknownBytes = 1;

// A ring holds the elements [from, to), each at its number's low bits.
template <typename Element>
void Double(std::vector<Element>* ring, uint64_t from, uint64_t to) {
  std::vector<Element> larger(2 * ring->size());
  for (uint64_t i = from; i < to; ++i)
    larger[i & (larger.size() - 1)] = (*ring)[i & (ring->size() - 1)];
  ring->swap(larger);
}

}  // namespace

EventHistory::EventHistory(int64_t most_events)
    : most_events_(static_cast<int64_t>(
          std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(most_events, kFirstEvents))))),
      tokens_(kFirstEvents),
      entries_(kFirstEvents),
      mask_(kFirstEvents - 1),
      touches_(kFirstEvents),
      touch_mask_(kFirstEvents - 1) {}

void EventHistory::MakeRoom() {
  const int64_t size = static_cast<int64_t>(entries_.size());
  if (end_ - begin_ < size) return;
  if (size == most_events_) {
    ++begin_;
    return;
  }
  Double(&tokens_, static_cast<uint64_t>(begin_), static_cast<uint64_t>(end_));
  Double(&entries_, static_cast<uint64_t>(begin_), static_cast<uint64_t>(end_));
  mask_ = entries_.size() - 1;
}

// `pending` is the first touch of the event being added.
void EventHistory::PutTouch(uint64_t pending, const JobTouch& touch) {
  const auto first = [&] { return begin_ < end_ ? At(begin_).first_touch : pending; };
  const auto is_full = [&] { return touch_end_ - first() == touches_.size(); };
  if (touches_.size() >= static_cast<uint64_t>(most_events_) * kMostTouchesPerEvent) {
    while (begin_ < end_ && is_full()) ++begin_;
  }
  if (is_full()) {
    Double(&touches_, first(), touch_end_);
    touch_mask_ = touches_.size() - 1;
  }
  touches_[static_cast<size_t>(touch_end_++) & touch_mask_] =
      touch.allocation << 2 | (touch.reads ? 2u : 0u) | (touch.writes ? 1u : 0u);
}

void EventHistory::Add(const JobEvent& event, uint64_t token, bool explained) {
  MakeRoom();
  ForgetFreed();
  Entry entry;
  entry.first_touch = touch_end_;
  entry.kind = event.kind;
  entry.unexplained_before = unexplained_;
  if (event.kind == JobEventKind::kAllocate) {
    *allocations_.Insert(event.allocation).first = {
        .size_bytes = event.size_bytes, .content_bytes = event.content_bytes, .born = end_};
    PutTouch(entry.first_touch, {event.allocation});
  }
  for (const JobTouch& touch : event.touches) {
    const auto [known, is_new] = allocations_.Insert(touch.allocation);
    if (is_new) known->size_bytes = known->content_bytes = kUnknownBytes;
    PutTouch(entry.first_touch, touch);
  }
  entry.touch_count = static_cast<uint32_t>(touch_end_ - entry.first_touch) & 0x3fffffff;
  unexplained_ += explained ? 0 : 1;
  tokens_[static_cast<size_t>(end_) & mask_] = token;
  entries_[static_cast<size_t>(end_) & mask_] = entry;
  ++end_;
}

void EventHistory::AddForeign(uint64_t allocation, int64_t size_bytes, int64_t content_bytes,
                              bool was_there) {
  *allocations_.Insert(allocation).first = {
      .size_bytes = size_bytes, .content_bytes = content_bytes, .arrived = was_there ? -1 : end_};
}

void EventHistory::Free(uint64_t allocation) {
  KnownAllocation* known = allocations_.Find(allocation);
  if (known == nullptr || known->freed != KnownAllocation::kAlive) return;
  known->freed = end_;
  freed_.push_back({end_, allocation});
}

void EventHistory::ForgetFreed() {
  while (!freed_.empty() && freed_.front().first <= begin_) {
    allocations_.Erase(freed_.front().second);
    freed_.pop_front();
  }
}

}  // namespace spillway::scheduler
