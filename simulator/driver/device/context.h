// Contexts, streams and events of the simulated driver: what the handles CUcontext, CUstream and
// CUevent point to.
//
// All under the engine's mutex, except the calling thread's stack of current contexts, which is its
// own. Ownership: the tables in Simulator own them; operations keep what they need alive by shared
// pointers.
//
// Invariants
//  1. Work in a stream starts after the stream's tail; the stream's tail is always its newest
//  operation.
//  2. The legacy stream waits for all blocking streams of its context, and they wait for it;
//  non-blocking streams
//     take no part. Per-thread default streams are blocking streams.
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
  std::shared_ptr<Capture> capture = nullptr;      // while it captures
  std::vector<GraphNode*> capture_after = {};      // what the next captured node comes after
  std::vector<CUgraphNode> capture_reported = {};  // the same as told to the program
};
using StreamRef = std::shared_ptr<Stream>;

// The default stream of one thread; when that has ended, and the stream's work too, it goes.
struct ThreadsStream {
  StreamRef stream;
  std::shared_ptr<const std::atomic<bool>> thread_ended;
};

struct Event {
  unsigned flags;
  Context* context;
  OperationRef recorded;  // null until the first record, and after a record in a capture
  std::shared_ptr<SharedEvent> shared = nullptr;  // of an event that other processes may use
  std::shared_ptr<Capture> capture = nullptr;     // that it was last recorded in
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
  std::set<const Context*> peers = {};  // those whose ordinary allocations work here may use
  std::shared_ptr<ErrorState> errors = std::make_shared<ErrorState>();
  StreamRef legacy;
  std::map<std::uint64_t, ThreadsStream> per_thread;  // by thread number
  std::map<std::uint64_t, StreamRef> streams;         // created ones, by id
  std::vector<OperationRef> orphans;                  // tails of destroyed streams
  std::map<int, std::size_t> limits;
  unsigned long long cache_config = 0;

  int ordinal() const;
  // Bit n: some context of device n is a peer.
  unsigned PeerDevices() const;
  // The calling thread's own default stream.
  Stream& OwnStream(std::uint64_t& next_stream_id);

  // The newest operation of every stream, unfinished or not.
  std::vector<OperationRef> Tails() const;
  // The same for those that order themselves with the legacy stream.
  std::vector<OperationRef> BlockingTails() const;
};

// Gives `operation` what it has from its stream: device, priority, the place for errors.
void BelongTo(const Stream& stream, Operation& operation);

// Puts `operation` at the end of `stream`, after `also_after` too.
void SubmitTo(Engine& engine, Engine::Lock& lock, Stream& stream, const OperationRef& operation,
              const std::vector<OperationRef>& also_after = {});

// The operations whose end means that all work in `stream` so far is done.
std::vector<OperationRef> EndOf(const Stream& stream);

// The calling thread's stack of contexts; the last one is current. It needs no destructor: a thread
// that has ended may still call, from destructors of its own and, on the main thread, from exit
// handlers.
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
// Becomes true when the calling thread has ended.
std::shared_ptr<const std::atomic<bool>> ThisThreadsEnd();

// While one lives, stream handle 0 means the calling thread's own default stream (the _ptds and
// _ptsz functions).
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
