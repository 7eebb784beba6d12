#include "interposer/execute/state/timeline.h"

#include <algorithm>

#include "interposer/driver/calling_context.h"
#include "interposer/driver/driver_api.h"

namespace spillway::interposer {

using base::MutexLock;
using driver::Driver;

constinit thread_local Timeline::RecentStreams Timeline::recent_;

namespace {

constinit std::atomic<std::uint64_t> last_generation{0};
constinit std::atomic<std::uint64_t> last_serial{1};

std::uint64_t ThisThread() {
  static constinit std::atomic<std::uint64_t> last{0};
  static constinit thread_local std::uint64_t number = 0;
  if (!number) number = last.fetch_add(1, std::memory_order_relaxed) + 1;
  return number;
}

// Becomes true when the calling thread ends. Streams that later destructors use are kept.
std::shared_ptr<const std::atomic<bool>> ThisThreadsEnd() {
  static constinit thread_local bool is_over = false;
  struct Mark {
    std::shared_ptr<std::atomic<bool>> ended = std::make_shared<std::atomic<bool>>(false);
    ~Mark() {
      *ended = true;
      is_over = true;
    }
  };
  if (is_over) return std::make_shared<std::atomic<bool>>(false);
  static thread_local Mark mark;
  return mark.ended;
}

bool IsPerThread(StreamName name) {
  return name.handle == CU_STREAM_PER_THREAD || (name.handle == nullptr && name.per_thread);
}

// Then the context does no more work (cuda.h, CUresult: "the context cannot be used").
bool EndsTheContext(CUresult result) {
  switch (result) {
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_DEINITIALIZED:
      return true;
    default:
      return false;
  }
}

// The context that must be current for calls about the stream; null when any will do. A default
// stream's handle means the current context's, and an event must be of its stream's context.
CUcontext ContextFor(const StreamState* stream) {
  return driver::KnownContexts::HasSeveral() ? stream->context : nullptr;
}

// Beyond this many checkpoints, a stream's completed ones are looked for.
constexpr std::size_t kManyCheckpoints = 8;

}  // namespace

void UseList::Add(Use use) {
  for (Use& u : uses_) {
    if (u.stream == use.stream) {
      u.sequence = std::max(u.sequence, use.sequence);
      return;
    }
  }
  uses_.push_back(use);
}

void FirstUses::Add(Use use) {
  if (!use.stream) return;
  for (Use& known : uses_) {
    if (known.stream != use.stream) continue;
    known.sequence = std::min(known.sequence, use.sequence);
    return;
  }
  uses_.push_back(use);
}

void UseList::Merge(const UseList& other) {
  for (const Use& use : other.uses_) Add(use);
}

Timeline::Timeline(CUcontext context) : context_(context), generation_(++last_generation) {}
Timeline::~Timeline() = default;

std::size_t Timeline::KeyHash::operator()(const Key& key) const {
  const auto mix = [](std::uint64_t a, std::uint64_t b) { return (a ^ b) * 0x9e3779b97f4a7c15u; };
  return mix(mix(reinterpret_cast<std::uint64_t>(key.handle), key.thread),
             reinterpret_cast<std::uint64_t>(key.context));
}

Timeline::Key Timeline::KeyOf(StreamName name) const {
  const bool per_thread = IsPerThread(name);
  if (!per_thread && name.handle && name.handle != CU_STREAM_LEGACY)
    return {name.handle, nullptr, 0};
  CUcontext context = context_;
  if (driver::KnownContexts::HasSeveral()) Driver().cuCtxGetCurrent(&context);
  return {per_thread ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY, context,
          per_thread ? ThisThread() : 0};
}

CUcontext Timeline::OwnerOf(const Key& key) const {
  CUcontext context = context_;
  if (key.context) return key.context;
  if (driver::KnownContexts::HasSeveral()) Driver().cuStreamGetCtx(key.handle, &context);
  return context;
}

bool Timeline::IsForeign(CUcontext context) const {
  if (context == context_ || !context || !context_) return false;
  return driver::DeviceOf(context) != driver::DeviceOf(context_);
}

StreamState* Timeline::FindRecent(const Key& key) const {
  const std::uint64_t generation = generation_.load(std::memory_order_acquire);
  for (const Recent& entry : recent_.entries) {
    if (entry.generation == generation && entry.key == key) return entry.state;
  }
  return nullptr;
}

void Timeline::Remember(const Key& key, StreamState* state) const {
  recent_.entries[recent_.next++ % kRecent] = {generation_.load(std::memory_order_relaxed), key,
                                               state};
}

void Timeline::ForgetRecent() { generation_.store(++last_generation, std::memory_order_release); }

StreamState* Timeline::Of(StreamName name) {
  const Key key = KeyOf(name);
  if (StreamState* known = FindRecent(key)) return known;
  StreamState*& state = by_key_[key];
  if (!state) state = NewState(key);
  Remember(key, state);
  return state;
}

StreamState* Timeline::NewState(const Key& key) {
  if (key.thread) CollectEndedThreads();
  if (idle_states_.empty()) {
    states_.push_back(std::make_unique<StreamState>());
    states_.back()->number = static_cast<std::uint32_t>(states_.size());
    idle_states_.push_back(states_.back().get());
  }
  StreamState* state = idle_states_.back();
  idle_states_.pop_back();
  state->serial = ++last_serial;
  state->promises.store(0);
  state->per_thread = key.thread != 0;
  state->thread_ended = state->per_thread ? ThisThreadsEnd() : nullptr;
  state->handle = key.handle;
  const CUcontext context = OwnerOf(key);
  if (state->context != context) {
    const MutexLock lock(state->events);
    for (CUevent event : state->spare_events) Driver().cuEventDestroy_v2(event);
    state->spare_events.clear();
  }
  state->context = context;
  state->foreign = IsForeign(context);
  return state;
}

// On other threads a per-thread stream's name means another stream, so only its own thread records
// its events. Other threads that see an operation's number find its event.
Use Timeline::IssuePerThread(StreamState* stream) {
  const MutexLock lock(stream->events);
  const Use use{stream, stream->issued.fetch_add(1) + 1};
  if (stream->checkpoints.size() > kManyCheckpoints) Poll(stream);
  Record(stream);
  return use;
}

Use Timeline::IssueWithCheckpoint(StreamState* stream) {
  if (stream->per_thread) return IssuePerThread(stream);
  const Use use{stream, stream->issued.fetch_add(1) + 1};
  if (stream->events.TryLock()) {
    // If another thread holds the lock, the next operation's checkpoint covers this one.
    if (stream->checkpoints.size() > kManyCheckpoints) Poll(stream);
    Record(stream);
    stream->events.Unlock();
  }
  return use;
}

UseList Timeline::Unfinished() {
  UseList list;
  for (const auto& state : states_) {
    const Use last{state.get(), state->issued.load()};
    if (!state->is_ours && !Done(last)) list.Add(last);
  }
  return list;
}

void Timeline::Show(Use use) {
  any_shown_.store(true, std::memory_order_relaxed);
  std::atomic<std::uint64_t>& shown = use.stream->shown;
  std::uint64_t last = shown.load();
  while (last < use.sequence && !shown.compare_exchange_weak(last, use.sequence)) {
  }
  EventFor(use);
}

bool Timeline::HasSeveralStreams() const {
  int used = 0;
  for (const auto& [key, state] : by_key_) {
    const bool is_used =
        state && !state->is_ours && !state->is_for_replays && state->issued.load() != 0;
    if (is_used && ++used > 1) return true;
  }
  return false;
}

UseList Timeline::UnfinishedVisible() {
  UseList list;
  if (!any_shown_.load(std::memory_order_relaxed)) return list;
  for (const auto& state : states_) {
    const Use last{state.get(), state->shown.load()};
    if (!state->is_ours && !state->foreign && !Done(last)) list.Add(last);
  }
  return list;
}

bool Timeline::Done(Use use) {
  if (use.stream->completed.load() >= use.sequence) return true;
  const MutexLock lock(use.stream->events);
  Poll(use.stream);
  return use.stream->completed.load() >= use.sequence;
}

bool Timeline::AllDone(UseList* uses) {
  uses->items().EraseIf([this](Use use) { return Done(use); });
  return uses->empty();
}

bool Timeline::AnyOn(const UseList& streams, const UseList& uses) {
  const auto& all = streams.items();
  return std::any_of(uses.items().begin(), uses.items().end(), [&](Use use) {
    const auto is_its_stream = [use](Use other) { return other.stream == use.stream; };
    return std::any_of(all.begin(), all.end(), is_its_stream) && !Done(use);
  });
}

bool Timeline::AllKnownDone(UseList* uses) {
  uses->items().EraseIf([](Use use) { return KnownDone(use); });
  return uses->empty();
}

void Timeline::Poll() {
  for (const auto& state : states_) {
    if (KnownDone({state.get(), state->issued.load()})) continue;
    const MutexLock lock(state->events);
    Poll(state.get());
  }
}

// Relaxed: a global capture on any thread forbids queries.
void Timeline::Poll(StreamState* stream) {
  if (stream->checkpoints.empty()) return;
  const driver::RelaxedCapture relaxed(true);
  while (!stream->checkpoints.empty()) {
    const Checkpoint front = stream->checkpoints.front();
    const CUresult result = Driver().cuEventQuery(front.event);
    NoteResult(result);
    if (result != CUDA_SUCCESS && !EndsTheContext(result)) return;
    // In a context that a fault has ended, no work touches memory any more.
    CompletedLocked(stream, result == CUDA_SUCCESS ? front.sequence : stream->issued.load());
  }
}

void Timeline::Completed(StreamState* stream, std::uint64_t sequence) {
  const MutexLock lock(stream->events);
  CompletedLocked(stream, sequence);
}

void Timeline::CompletedLocked(StreamState* stream, std::uint64_t sequence) {
  stream->completed.store(std::max(stream->completed.load(), sequence));
  while (!stream->checkpoints.empty() &&
         stream->checkpoints.front().sequence <= stream->completed.load()) {
    stream->spare_events.push_back(stream->checkpoints.front().event);
    stream->checkpoints.pop_front();
  }
}

void Timeline::OrderAfter(StreamState* stream, Use use) {
  if (use.stream == stream || KnownDone(use)) return;
  const CUevent event = EventFor(use);
  const driver::CurrentContext current(ContextFor(stream));
  const bool ordered = event && Driver().cuStreamWaitEvent(stream->handle, event,
                                                           CU_EVENT_WAIT_DEFAULT) == CUDA_SUCCESS;
  if (!ordered) WaitFor(use.stream);
}

CUresult Timeline::WaitFor(const StreamState* stream) {
  const driver::CurrentContext current(ContextFor(stream));
  return Driver().cuStreamSynchronize(stream->handle);
}

bool Timeline::AllKnownDone() const {
  return std::all_of(states_.begin(), states_.end(), [](const auto& state) {
    return state->foreign || KnownDone({state.get(), state->issued.load()});
  });
}

void Timeline::NoteResult(CUresult result) {
  if (EndsTheContext(result)) fault_.store(result, std::memory_order_relaxed);
}

CUevent Timeline::EventFor(Use use) {
  const MutexLock lock(use.stream->events);
  for (const Checkpoint& checkpoint : use.stream->checkpoints) {
    if (checkpoint.sequence >= use.sequence) return checkpoint.event;
  }
  return KnownDone(use) ? EventInThePast(use.stream) : Record(use.stream);
}

// Records nothing: the stream may capture by now, and the event would join its graph.
CUevent Timeline::EventInThePast(StreamState* stream) {
  const driver::CurrentContext current(ContextFor(stream));
  if (stream->spare_events.empty()) {
    const CUevent event = TakeEvent(stream);
    if (!event) return nullptr;
    stream->spare_events.push_back(event);
  }
  return stream->spare_events.back();
}

// The number is read before the event is recorded: all work up to it was enqueued before.
CUevent Timeline::Record(StreamState* stream) {
  if (!stream->recordable) return nullptr;
  const driver::CurrentContext current(ContextFor(stream));
  const CUevent event = TakeEvent(stream);
  if (!event) return nullptr;
  const std::uint64_t sequence = stream->issued.load();
  if (Driver().cuEventRecord(event, stream->handle) != CUDA_SUCCESS) {
    stream->recordable = false;
    stream->spare_events.push_back(event);
    return nullptr;
  }
  stream->checkpoints.push_back({sequence, event});
  return event;
}

CUevent Timeline::TakeEvent(StreamState* stream) {
  CUevent event = nullptr;
  if (stream->spare_events.empty())
    return Driver().cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS ? event
                                                                                   : nullptr;
  event = stream->spare_events.back();
  stream->spare_events.pop_back();
  return event;
}

std::vector<Use> Timeline::IssuedIn(CUcontext context) const {
  std::vector<Use> all;
  for (const auto& state : states_) {
    if (state->context == context) all.push_back({state.get(), state->issued.load()});
  }
  return all;
}

std::uint64_t Timeline::UndocumentedBegun() const {
  std::uint64_t sum = 0;
  for (const auto& state : states_) sum += state->undocumented_begun.Read();
  return sum;
}

bool Timeline::AllUndocumentedDone() {
  return std::all_of(states_.begin(), states_.end(), [this](const auto& state) {
    const std::uint64_t ended = state->undocumented_ended.Read();
    return ended == state->undocumented_begun.Read() &&
           (ended == 0 || Done({state.get(), state->last_undocumented.Read()}));
  });
}

Timeline::Totals Timeline::Sum() const {
  Totals totals;
  for (const auto& state : states_) {
    totals.launches += state->undocumented_ended.Read() + state->documented_launches.Read();
    totals.copies += state->copies.Read();
  }
  return totals;
}

void Timeline::TakeCheckpoint(StreamState* stream) {
  const Use last{stream, stream->issued.load()};
  if (!Done(last)) EventFor(last);
}

void Timeline::AboutToWait(StreamState* stream) {
  TakeCheckpoint(stream);
  const bool is_over =
      stream->held_from == StreamState::kNotHeld || Done({stream, stream->held_from + 1});
  if (is_over) stream->held_from = stream->issued.load();
}

bool Timeline::IsHeld(Use use) {
  if (use.sequence <= use.stream->held_from) return false;
  EventFor(use);
  if (!Done(use)) return true;
  use.stream->held_from = StreamState::kNotHeld;
  return false;
}

bool Timeline::AnyHeld(const UseList& uses) {
  return std::any_of(uses.items().begin(), uses.items().end(),
                     [this](Use use) { return IsHeld(use); });
}

bool Timeline::AnyStreamIsHeld() {
  return std::any_of(states_.begin(), states_.end(), [this](const auto& state) {
    return IsHeld({state.get(), state->issued.load()});
  });
}

Use Timeline::OneToAwait(UseList* uses) {
  return AllKnownDone(uses) || AnyHeld(*uses) ? Use{} : uses->items().front();
}

void Timeline::TakeCheckpoints() {
  for (const auto& state : states_) TakeCheckpoint(state.get());
}

// The stream's work goes on after cuStreamDestroy: a last checkpoint tells when it is complete.
void Timeline::Destroyed(CUstream handle) {
  const auto at = by_key_.find({handle, nullptr, 0});
  if (at == by_key_.end()) return;
  StreamState* state = at->second;
  by_key_.erase(at);
  ForgetRecent();
  TakeCheckpoint(state);
  dying_.push_back(state);
  const auto finished = [this](StreamState* s) {
    if (!Done({s, s->issued.load()})) return false;
    Recycle(s);
    return true;
  };
  dying_.erase(std::remove_if(dying_.begin(), dying_.end(), finished), dying_.end());
}

void Timeline::ContextDestroyed(CUcontext context) {
  const auto erase_if = [this](auto is_gone) {
    for (auto at = by_key_.begin(); at != by_key_.end();)
      at = is_gone(at->second) ? by_key_.erase(at) : std::next(at);
    dying_.erase(std::remove_if(dying_.begin(), dying_.end(), is_gone), dying_.end());
  };
  erase_if([&](StreamState* state) {
    if (state->context != context) return false;
    state->completed.store(state->issued.load());
    Recycle(state);
    return true;
  });
  ForgetRecent();
  for (const auto& state : states_) {
    if (state->context != context) continue;
    const MutexLock lock(state->events);
    state->checkpoints.clear();
    state->spare_events.clear();
    state->context = nullptr;
  }
}

// No other thread can name such a stream.
void Timeline::CollectEndedThreads() {
  for (auto at = by_key_.begin(); at != by_key_.end();) {
    StreamState* const state = at->second;
    const bool is_over =
        state && state->thread_ended && *state->thread_ended && Done({state, state->issued.load()});
    if (is_over) Recycle(state);
    at = is_over ? by_key_.erase(at) : std::next(at);
  }
}

void Timeline::Recycle(StreamState* stream) {
  const MutexLock lock(stream->events);
  stream->handle = nullptr;
  stream->recordable = true;
  stream->held_from = StreamState::kNotHeld;
  idle_states_.push_back(stream);
}

void Timeline::Reset() {
  by_key_.clear();
  ForgetRecent();
  for (const auto& state : states_) {
    const MutexLock lock(state->events);
    state->completed.store(state->issued.load());
    state->checkpoints.clear();
    state->spare_events.clear();
  }
}

}  // namespace spillway::interposer
