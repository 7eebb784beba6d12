#include "interposer/record/recorder.h"

#include <utility>

namespace spillway::interposer {

using base::MutexLock;

namespace {

constinit std::atomic<EventRing*> rings{nullptr};  // all rings ever made; never freed

std::uint64_t NextSerial() {
  static constinit std::atomic<std::uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

template <class Accepts>
EventRing* FindRing(Accepts accepts) {
  EventRing* ring = rings.load(std::memory_order_acquire);
  while (ring && !accepts(ring)) ring = ring->next;
  return ring;
}

// The rings that this thread wrote to last. The address of `recent` identifies the thread.
struct Recent {
  std::uint64_t recorder = 0;
  EventRing* ring = nullptr;
};
constexpr std::size_t kRecent = 4;
constinit thread_local Recent recent[kRecent] __attribute__((tls_model("initial-exec"))) = {};

// Leaves the thread's rings to other threads. If a later destructor records events, they go to a
// new ring, which stays the thread's.
struct Ending {
  bool armed = false;
  ~Ending() {
    for (Recent& entry : recent) entry = {};
    for (EventRing* ring = rings.load(std::memory_order_acquire); ring; ring = ring->next) {
      if (ring->owner.load(std::memory_order_relaxed) == &recent)
        ring->owner.store(nullptr, std::memory_order_release);
    }
  }
};
thread_local Ending ending;

// Takes a ring of the recorder whose thread has ended, or one that serves no recorder.
bool TakeOver(EventRing* ring, std::uint64_t recorder) {
  const std::uint64_t serves = ring->recorder.load(std::memory_order_acquire);
  const void* owner = ring->owner.load(std::memory_order_acquire);
  if (serves == recorder)
    return owner == nullptr && ring->owner.compare_exchange_strong(owner, &recent);
  if (serves != 0 || (owner && owner != &recent)) return false;
  if (!owner && !ring->owner.compare_exchange_strong(owner, &recent)) return false;
  std::uint64_t nobody = 0;
  return ring->recorder.compare_exchange_strong(nobody, recorder);
}

EventRing* Add(std::uint64_t recorder) {
  auto* const ring = new EventRing;
  ring->owner.store(&recent, std::memory_order_relaxed);
  ring->recorder.store(recorder, std::memory_order_relaxed);
  static constinit std::atomic<std::uint32_t> count{0};
  ring->number = count.fetch_add(1, std::memory_order_relaxed) + 1;
  ring->next = rings.load(std::memory_order_relaxed);
  while (!rings.compare_exchange_weak(ring->next, ring, std::memory_order_release)) {
  }
  return ring;
}

EventRing* FindMine(std::uint64_t recorder) {
  ending.armed = true;
  const auto is_mine = [recorder](const EventRing* ring) {
    return ring->owner.load(std::memory_order_relaxed) == &recent && ring->recorder == recorder;
  };
  if (EventRing* const mine = FindRing(is_mine)) return mine;
  if (EventRing* const taken =
          FindRing([recorder](EventRing* ring) { return TakeOver(ring, recorder); }))
    return taken;
  return Add(recorder);
}

}  // namespace

Recorder::Recorder(LearnChoice choice)
    : serial_(NextSerial()),
      waits_(choice == LearnChoice::kOff      ? Waits::kForNothing
             : choice == LearnChoice::kAlways ? Waits::kForAllocation
                                              : Waits::kForPressure) {}

// No thread writes any more: the rings' events are discarded.
Recorder::~Recorder() {
  FindRing([this](EventRing* ring) {
    if (ring->recorder.load(std::memory_order_relaxed) != serial_) return false;
    RecordedEvent front;
    while (ring->Front(&front)) ring->Pop(front);
    ring->recorder.store(0, std::memory_order_release);
    return false;
  });
}

void Recorder::Attach(RecordListener* listener, bool begins_at_once) {
  attached_.store(listener, std::memory_order_release);
  if (begins_at_once && waits_.load(std::memory_order_relaxed) == Waits::kForPressure)
    waits_.store(Waits::kForAllocation, std::memory_order_relaxed);
}

void Recorder::Begin(std::vector<LiveAllocation> live) {
  const MutexLock lock(begun_lock_);
  waits_.store(Waits::kForNothing, std::memory_order_relaxed);
  has_begun_ = true;
  begun_ticket_ = tickets_.load(std::memory_order_relaxed);
  begun_with_ = std::move(live);
  recording_.store(true, std::memory_order_relaxed);
  listener_.store(attached_.load(std::memory_order_acquire), std::memory_order_release);
}

bool Recorder::TakeRecordingStart(std::vector<LiveAllocation>* live) {
  const MutexLock lock(begun_lock_);
  if (!has_begun_ || next_ticket_ < begun_ticket_) return false;
  has_begun_ = false;
  *live = std::move(begun_with_);
  return true;
}

EventRing* Recorder::MyRing() const {
  for (const Recent& entry : recent) {
    if (entry.recorder == serial_) return entry.ring;
  }
  Recent& entry = recent[serial_ % kRecent];
  entry = {serial_, FindMine(serial_)};
  return entry.ring;
}

void Recorder::Put(const RecordedEvent& event, std::span<const RecordedTouch> touches) {
  if (!MyRing()->Put(event, touches, &tickets_)) dropped_.fetch_add(1, std::memory_order_relaxed);
}

void Recorder::Allocated(std::uint64_t id, std::int64_t requested_bytes) {
  Put({.kind = RecordedKind::kAllocate,
       .value = static_cast<std::uint64_t>(requested_bytes),
       .allocation = id},
      {});
}

void Recorder::Freed(std::uint64_t id) { Put({.kind = RecordedKind::kFree, .allocation = id}, {}); }

void Recorder::Enqueued(std::uint64_t shape, std::span<const RecordedTouch> touches,
                        Sample sample) {
  Put({.kind = RecordedKind::kOperation, .sample = sample.number, .value = shape}, touches);
}

void Recorder::Synchronized() { Put({.kind = RecordedKind::kSynchronize}, {}); }

void Recorder::NotifyListener() {
  if (RecordListener* const listener = listener_.load(std::memory_order_acquire))
    listener->ServeEvents();
}

EventRing* Recorder::RingWithNext(RecordedEvent* front) {
  const auto has_next = [this, front](const EventRing* ring) {
    return ring->recorder.load(std::memory_order_acquire) == serial_ && ring->Front(front) &&
           front->ticket == next_ticket_;
  };
  if (last_ring_ && has_next(last_ring_)) return last_ring_;
  return FindRing(has_next);
}

bool Recorder::Next(Drained* out) {
  RecordedEvent front;
  EventRing* const ring = RingWithNext(&front);
  if (!ring) return false;
  if (touches_.size() < front.touch_count) touches_.resize(front.touch_count);
  ring->CopyTouches(front.touch_count, touches_.data());
  ring->Pop(front);
  last_ring_ = ring;
  ++next_ticket_;
  *out = {front, {touches_.data(), front.touch_count}, ring->number};
  return true;
}

}  // namespace spillway::interposer
