// The targets of CUcontext, CUstream and CUevent.
//
// All under the engine's mutex, except a thread's own stack of current contexts. The tables in
// Simulator own them; operations share what they need.
//
// Invariants
//  1. Work in a stream starts after the stream's tail, which is always its newest operation.
//  2. The legacy stream waits for all blocking streams of its context, and they wait for it.
//     Non-blocking streams take no part. Per-thread default streams are blocking streams.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "simulator/driver/engine/engine.h"
#include "simulator/driver/engine/shared_event.h"

namespace spillway::simulator {

struct Context;
struct Device;
struct Capture;
struct GraphNode;

struct Stream {
  std::uint64_t id;
  Context* context;
  bool legacy;
  bool blocking;
  unsigned flags;
  int priority;
  OperationRef tail;
  std::shared_ptr<Capture> capture = nullptr;
  std::vector<GraphNode*> capture_after = {};  // of the next captured node
  std::vector<CUgraphNode> capture_reported = {};
};
using StreamRef = std::shared_ptr<Stream>;

// Removed when the thread and the stream's work have ended.
struct PerThreadStream {
  StreamRef stream;
  std::shared_ptr<const std::atomic<bool>> thread_ended;
};

struct Event {
  unsigned flags;
  Context* context;
  OperationRef recorded;  // null until the first record, and after a record in a capture
  std::shared_ptr<SharedEvent> shared = nullptr;
  std::shared_ptr<Capture> capture = nullptr;  // in which it was last recorded
  std::vector<GraphNode*> captured_after = {};

  void Record(OperationRef operation) {
    recorded = std::move(operation);
    capture = nullptr;
    captured_after.clear();
  }
};

struct Context {
  std::uint64_t id;
  Device* device;
  bool primary;
  unsigned flags;
  std::set<const Context*> peers = {};  // contexts that may use this one's ordinary memory
  std::shared_ptr<ErrorState> errors = std::make_shared<ErrorState>();
  StreamRef legacy;
  std::map<std::uint64_t, PerThreadStream> per_thread;
  std::map<std::uint64_t, StreamRef> streams;
  std::vector<OperationRef> orphans;  // tails of destroyed streams
  std::map<int, std::size_t> limits;
  unsigned long long cache_config = 0;

  int ordinal() const;
  // Bit n: some context of device n is a peer.
  unsigned PeerDevices() const;
  Stream& OwnStream(std::uint64_t& next_stream_id);

  std::vector<OperationRef> Tails() const;
  std::vector<OperationRef> BlockingTails() const;
};

void BelongTo(const Stream& stream, Operation& operation);

void SubmitTo(Engine& engine, Engine::Lock& lock, Stream& stream, const OperationRef& operation,
              const std::vector<OperationRef>& also_after = {});

std::vector<OperationRef> EndOf(const Stream& stream);

// The last context is current. There is no destructor: an ended thread may still call, from its
// other destructors and, on the main thread, from exit handlers.
class ContextStack {
 public:
  bool empty() const { return size_ == 0; }
  Context*& back() { return contexts_[size_ - 1]; }
  void push_back(Context* context);
  void pop_back() { --size_; }

 private:
  static constexpr int kMost = 100;
  Context* contexts_[kMost];
  int size_ = 0;
};
ContextStack& CurrentContexts();
std::uint64_t ThreadNumber();
std::shared_ptr<const std::atomic<bool>> ThisThreadsEnd();

// While one lives, stream handle 0 means the thread's own default stream (_ptds, _ptsz functions).
class PerThreadDefault {
 public:
  PerThreadDefault();
  ~PerThreadDefault();
  PerThreadDefault(const PerThreadDefault&) = delete;
  PerThreadDefault& operator=(const PerThreadDefault&) = delete;

  static bool active();

 private:
  const bool before_;
};

}  // namespace spillway::simulator
