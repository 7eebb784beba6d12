#include "interposer/execute/timeline.h"

#include <algorithm>
#include <atomic>

#include "interposer/driver/calling_context.h"
#include "interposer/driver/driver_api.h"

namespace spillway::interposer {

using driver::Driver;

struct Checkpoint {
  std::uint64_t sequence;
  CUevent event;
};

struct StreamState {
  CUstream handle = nullptr;
  CUcontext context = nullptr;
  std::uint64_t serial = 0;  // another one for each stream that the slot serves
  bool per_thread = false;
  bool recordable = true;
  std::uint64_t issued = 0;
  std::uint64_t completed = 0;
  std::deque<Checkpoint> checkpoints;  // ascending
};

namespace {

std::uint64_t ThisThread() {
  static std::atomic<std::uint64_t> next{1};
  static thread_local const std::uint64_t number = next.fetch_add(1, std::memory_order_relaxed);
  return number;
}

bool IsPerThread(StreamName name) {
  return name.handle == CU_STREAM_PER_THREAD || (name.handle == nullptr && name.per_thread);
}

// Errors after which the context does no more work (cuda.h, CUresult: "the context cannot be used").
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

// More checkpoints than this on one stream are looked through for those that have completed.
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

void UseList::Merge(const UseList& other) {
  for (const Use& use : other.uses_) Add(use);
}

Timeline::Timeline(CUcontext context) : context_(context) {}
Timeline::~Timeline() = default;

std::size_t Timeline::KeyHash::operator()(const Key& key) const {
  const auto mix = [](std::uint64_t a, std::uint64_t b) { return (a ^ b) * 0x9e3779b97f4a7c15u; };
  return mix(mix(reinterpret_cast<std::uint64_t>(key.handle), key.thread),
             reinterpret_cast<std::uint64_t>(key.context));
}

Timeline::Key Timeline::KeyOf(StreamName name) const {
  const bool per_thread = IsPerThread(name);
  if (!per_thread && name.handle && name.handle != CU_STREAM_LEGACY) return {name.handle, nullptr, 0};
  CUcontext context = context_;
  if (driver::ContextCensus::HasSeveral()) Driver().cuCtxGetCurrent(&context);
  return {per_thread ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY, context, per_thread ? ThisThread() : 0};
}

CUcontext Timeline::OwnerOf(const Key& key) const {
  CUcontext context = context_;
  if (key.context) return key.context;
  if (driver::ContextCensus::HasSeveral()) Driver().cuStreamGetCtx(key.handle, &context);
  return context;
}

StreamState* Timeline::Of(StreamName name) {
  const Key key = KeyOf(name);
  if (last_state_ && key == last_key_) return last_state_;
  StreamState*& state = by_key_[key];
  if (!state) {
    state = NewState();
    state->per_thread = key.thread != 0;
    state->handle = key.handle;
    state->context = OwnerOf(key);
  }
  last_key_ = key;
  last_state_ = state;
  return state;
}

StreamState* Timeline::NewState() {
  if (idle_states_.empty()) {
    states_.push_back(std::make_unique<StreamState>());
    idle_states_.push_back(states_.back().get());
  }
  StreamState* state = idle_states_.back();
  idle_states_.pop_back();
  state->serial = ++last_serial_;
  return state;
}

CUstream Timeline::HandleOf(const StreamState* stream) const { return stream->handle; }

std::uint64_t Timeline::SerialOf(const StreamState* stream) const { return stream->serial; }

Use Timeline::Issue(StreamState* stream) {
  const Use use{stream, ++stream->issued};
  if (stream->checkpoints.size() > kManyCheckpoints) Poll(stream);
  const std::uint64_t last =
      stream->checkpoints.empty() ? stream->completed : stream->checkpoints.back().sequence;
  if (stream->per_thread || (checkpoint_interval_ && use.sequence - last >= checkpoint_interval_))
    Record(stream);
  return use;
}

UseList Timeline::Unfinished() {
  UseList list;
  for (const auto& state : states_) list.Merge(UnfinishedOn(state.get()));
  return list;
}

UseList Timeline::UnfinishedOn(StreamState* stream) {
  UseList list;
  if (!Done({stream, stream->issued})) list.Add({stream, stream->issued});
  return list;
}

bool Timeline::Done(Use use) {
  if (use.stream->completed >= use.sequence) return true;
  Poll(use.stream);
  return use.stream->completed >= use.sequence;
}

bool Timeline::AllDone(UseList* uses) {
  auto& items = uses->items();
  items.erase(std::remove_if(items.begin(), items.end(), [this](Use u) { return Done(u); }), items.end());
  return items.empty();
}

void Timeline::Poll(StreamState* stream) {
  while (!stream->checkpoints.empty()) {
    const Checkpoint front = stream->checkpoints.front();
    const CUresult result = Driver().cuEventQuery(front.event);
    if (result != CUDA_SUCCESS && !EndsTheContext(result)) return;
    // In a context that a fault has ended no work touches memory any more.
    Completed(stream, result == CUDA_SUCCESS ? front.sequence : stream->issued);
  }
}

void Timeline::Completed(StreamState* stream, std::uint64_t sequence) {
  stream->completed = std::max(stream->completed, sequence);
  while (!stream->checkpoints.empty() && stream->checkpoints.front().sequence <= stream->completed) {
    free_events_.push_back(stream->checkpoints.front().event);
    stream->checkpoints.pop_front();
  }
}

void Timeline::OrderAfter(StreamState* stream, Use use) {
  if (use.stream == stream || Done(use)) return;
  const CUevent event = EventFor(use);
  if (event) {
    Driver().cuStreamWaitEvent(stream->handle, event, CU_EVENT_WAIT_DEFAULT);
  } else {
    Driver().cuStreamSynchronize(use.stream->handle);
  }
}

CUevent Timeline::EventFor(Use use) {
  for (const Checkpoint& checkpoint : use.stream->checkpoints) {
    if (checkpoint.sequence >= use.sequence) return checkpoint.event;
  }
  return Record(use.stream);
}

CUevent Timeline::Record(StreamState* stream) {
  if (!stream->recordable) return nullptr;
  CUevent event = nullptr;
  if (!free_events_.empty()) {
    event = free_events_.back();
    free_events_.pop_back();
  } else if (Driver().cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) {
    return nullptr;
  }
  if (Driver().cuEventRecord(event, stream->handle) != CUDA_SUCCESS) {
    stream->recordable = false;
    free_events_.push_back(event);
    return nullptr;
  }
  stream->checkpoints.push_back({stream->issued, event});
  return event;
}

std::uint64_t Timeline::IssuedOn(const StreamState* stream) const { return stream->issued; }

std::vector<Use> Timeline::IssuedIn(CUcontext context) const {
  std::vector<Use> all;
  for (const auto& state : states_) {
    if (state->context == context) all.push_back({state.get(), state->issued});
  }
  return all;
}

void Timeline::TakeCheckpoint(StreamState* stream) {
  if (!Done({stream, stream->issued})) EventFor({stream, stream->issued});
}

// The stream's work goes on after cuStreamDestroy: a last checkpoint, recorded before, tells when it is complete.
void Timeline::Destroyed(CUstream handle) {
  const auto at = by_key_.find({handle, nullptr, 0});
  if (at == by_key_.end()) return;
  StreamState* state = at->second;
  by_key_.erase(at);
  last_state_ = nullptr;
  if (!Done({state, state->issued})) EventFor({state, state->issued});
  dying_.push_back(state);
  const auto finished = [this](StreamState* s) {
    if (!Done({s, s->issued})) return false;
    Recycle(s);
    return true;
  };
  dying_.erase(std::remove_if(dying_.begin(), dying_.end(), finished), dying_.end());
}

void Timeline::Recycle(StreamState* stream) {
  stream->handle = nullptr;
  stream->recordable = true;
  idle_states_.push_back(stream);
}

// The context is gone, and with it all streams and events.
void Timeline::Reset() {
  by_key_.clear();
  last_state_ = nullptr;
  for (const auto& state : states_) {
    state->completed = state->issued;
    state->checkpoints.clear();
  }
  free_events_.clear();
}

}  // namespace spillway::interposer
