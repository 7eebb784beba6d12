#include "interposer/execute/timeline.h"

#include <algorithm>
#include <atomic>

#include "interposer/driver/driver_api.h"

namespace spillway::interposer {

using driver::Driver;

struct Checkpoint {
  std::uint64_t sequence;
  CUevent event;
};

struct StreamState {
  CUstream handle = nullptr;
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

// Distinct for every stream: handles are addresses, default streams small numbers with the thread above bit 48.
std::uint64_t Key(StreamName name) {
  if (IsPerThread(name)) return (ThisThread() << 48) | 2;
  if (name.handle == nullptr) return reinterpret_cast<std::uint64_t>(CU_STREAM_LEGACY);
  return reinterpret_cast<std::uint64_t>(name.handle);
}

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

Timeline::Timeline() = default;
Timeline::~Timeline() = default;

StreamState* Timeline::Of(StreamName name) {
  const std::uint64_t key = Key(name);
  if (key == last_name_) return last_state_;
  StreamState*& state = by_name_[key];
  if (!state) {
    state = NewState();
    state->per_thread = IsPerThread(name);
    state->handle = state->per_thread ? CU_STREAM_PER_THREAD : name.handle ? name.handle : CU_STREAM_LEGACY;
  }
  last_name_ = key;
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
    if (result == CUDA_ERROR_NOT_READY) return;
    // Any other error has ended the context: none of its work will touch memory any more.
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

std::vector<Use> Timeline::IssuedEverywhere() const {
  std::vector<Use> all;
  for (const auto& state : states_) all.push_back({state.get(), state->issued});
  return all;
}

// The stream's work goes on after cuStreamDestroy: a last checkpoint, recorded before, tells when it is complete.
void Timeline::Destroyed(CUstream handle) {
  const auto at = by_name_.find(reinterpret_cast<std::uint64_t>(handle));
  if (at == by_name_.end()) return;
  StreamState* state = at->second;
  by_name_.erase(at);
  last_name_ = 0;
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
  by_name_.clear();
  last_name_ = 0;
  for (const auto& state : states_) {
    state->completed = state->issued;
    state->checkpoints.clear();
  }
  free_events_.clear();
}

}  // namespace spillway::interposer
