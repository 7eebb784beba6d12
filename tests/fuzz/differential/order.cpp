#include "tests/fuzz/differential/order.h"

#include <algorithm>

#include "tests/fuzz/differential/clocks.h"
#include "tests/fuzz/differential/random.h"
#include "tests/fuzz/differential/world.h"

namespace spillway::fuzz {
namespace {

constexpr int kInsertedEventsPerThread = 5;
constexpr int kFirstInsertedEvent = kMaximumThreads * kEventsPerThread;
constexpr int kFirstHandOverEvent =
    kFirstInsertedEvent + kMaximumThreads * kInsertedEventsPerThread;

struct LaneState {
  int stream = kNone;
  int thread = 0;
  bool live = false;
  bool blocking = true;
  Clock clock;      // what the stream's next operation comes after
  Clock published;  // the same at its last kernel, copy or set: what the legacy stream's rule
                    // carries over
};

struct EventState {
  int thread = 0;
  Clock clock;
};

class Orderer {
 public:
  Orderer(std::optional<Kind> omitted, bool frees_are_waits)
      : omitted_(omitted), frees_are_waits_(frees_are_waits) {
    for (int thread = 0; thread < kMaximumThreads; ++thread) {
      OpenLane(kLegacyStream, thread, true);
      OpenLane(kPerThreadStream, thread, true);
    }
  }

  void Add(const Operation& operation) {
    dice_ = Random(operation.salt);
    switch (operation.kind) {
      case Kind::kKernel:
      case Kind::kCopy:
      case Kind::kFill:
      case Kind::kHostFunction:
        AddStreamWork(operation, Rule::kLegacyToo);
        break;
      case Kind::kFeatureWork:
        AddStreamWork(operation, Rule::kPlain);
        break;
      case Kind::kHostFill:
      case Kind::kHostFold:
      case Kind::kFeatureCall:
        AwaitOnHost(operation, Needs(operation));
        Emit(operation);
        break;
      case Kind::kAlloc:
        AddAlloc(operation);
        break;
      case Kind::kFree:
        AddFree(operation);
        break;
      case Kind::kGive:
        AddHandOver(operation);
        break;
      default:
        AddOrdering(operation);
        Emit(operation);
    }
  }

  std::vector<Operation> Take() { return std::move(completed_); }

 private:
  // Whether all of the legacy rule is relied on: for kernels, copies and sets only.
  enum class Rule { kPlain, kLegacyToo };

  LaneState& LaneFor(const Operation& operation) {
    return lanes_[LaneOf(operation.stream, operation.thread)];
  }

  void OpenLane(int stream, int thread, bool blocking) {
    LaneState& lane = lanes_[LaneOf(stream, thread)];
    lane.stream = stream;
    lane.thread = thread;
    lane.live = true;
    lane.blocking = blocking;
  }

  void Emit(const Operation& operation) {
    world_.Apply(operation);
    completed_.push_back(operation);
  }

  std::vector<Access> Needs(const Operation& operation) {
    std::vector<Access> needs;
    for (const View& view : operation.in) {
      ForEachHistory(view, [&](History& history) { needs.push_back(history.last_write); });
    }
    operation.ForEachOut([&](const View& view) { AddAllAccesses(view, needs); });
    AddObjectNeeds(operation, needs);
    return needs;
  }

  // What the object has been used for, and what its uses access: anything may be written.
  void AddObjectNeeds(const Operation& operation, std::vector<Access>& needs) {
    if (operation.object == kNone || operation.object_use == ObjectUse::kMake) return;
    History& history = objects_[operation.object];
    needs.push_back(history.last_write);
    if (operation.object_use != ObjectUse::kRead) history.CollectReads(needs);
    if (operation.object_use == ObjectUse::kEnd) return;
    for (const View& view : world_.ObjectAt(operation.object).maker.names)
      AddAllAccesses(view, needs);
  }

  void NoteAccess(const Operation& operation, const Access& access) {
    for (const View& view : operation.in) {
      ForEachHistory(view, [&](History& history) { history.AddRead(access); });
    }
    const auto note_write = [&](const View& view) {
      ForEachHistory(view, [&](History& history) { history.SetWrite(access); });
    };
    operation.ForEachOut(note_write);
    if (operation.object == kNone) return;
    if (operation.object_use != ObjectUse::kMake) {
      for (const View& view : world_.ObjectAt(operation.object).maker.names) note_write(view);
    }
    if (operation.object_use == ObjectUse::kRead) {
      objects_[operation.object].AddRead(access);
    } else {
      objects_[operation.object].SetWrite(access);
    }
  }

  void AddAllAccesses(const View& view, std::vector<Access>& needs) {
    ForEachHistory(view, [&](History& history) {
      needs.push_back(history.last_write);
      history.CollectReads(needs);
    });
  }

  template <typename Visit>
  void ForEachHistory(const View& view, Visit visit) {
    const std::vector<Segment>& segments = world_.At(view.buffer).segments;
    std::vector<History>& histories = histories_[view.buffer];
    for (std::size_t i = 0; i < segments.size(); ++i) {
      const bool touched = segments[i].begin_bytes < view.offset_bytes + view.bytes &&
                           view.offset_bytes < segments[i].end_bytes;
      if (touched) visit(histories[i]);
    }
  }

  static View Whole(int buffer, std::uint64_t bytes) { return {buffer, 0, bytes}; }

  // The clock of an operation enqueued now.
  Clock Arrival(const LaneState& lane, Rule rule) {
    Clock clock = lane.clock;
    clock.Join(host_[lane.thread]);
    if (rule == Rule::kPlain) return clock;
    if (lane.stream == kLegacyStream) {
      for (const auto& [id, other] : lanes_) {
        if (other.thread == lane.thread && other.live && other.blocking)
          clock.Join(other.published);
      }
    } else if (lane.blocking) {
      clock.Join(lanes_[LaneOf(kLegacyStream, lane.thread)].published);
    }
    return clock;
  }

  void AddStreamWork(const Operation& operation, Rule rule) {
    LaneState& lane = LaneFor(operation);
    AwaitOnStream(operation, lane, rule, Needs(operation));
    const Access access = Enqueue(lane, rule);
    if (rule == Rule::kLegacyToo) lane.published = lane.clock;
    NoteAccess(operation, access);
    if (IsSynchronousForHost(operation)) host_[operation.thread].Join(lane.clock);
    Emit(operation);
  }

  Access Enqueue(LaneState& lane, Rule rule) {
    lane.clock = Arrival(lane, rule);
    return lane.clock.Advance(LaneOf(lane.stream, lane.thread));
  }

  // Synchronous copies into or out of host memory return when the host may use its memory again.
  bool IsSynchronousForHost(const Operation& operation) const {
    if (operation.kind != Kind::kCopy || operation.on_stream) return false;
    return world_.At(operation.out.buffer).InHostMemory();
  }

  void AddAlloc(const Operation& operation) {
    histories_[operation.buffer].resize(operation.cuts_bytes.size());
    const bool stream_ordered = IsStreamOrdered(static_cast<AllocForm>(operation.form));
    Emit(operation);
    if (!stream_ordered) return;
    const Access access = Enqueue(LaneFor(operation), Rule::kPlain);
    for (History& history : histories_[operation.buffer]) history.SetWrite(access);
  }

  void AddFree(const Operation& operation) {
    const Buffer& buffer = world_.At(operation.buffer);
    std::vector<Access> uses;
    AddAllAccesses(Whole(operation.buffer, buffer.bytes), uses);
    const auto form = static_cast<FreeForm>(operation.form);
    if (form == FreeForm::kFreeAsync) {
      AwaitOnStream(operation, LaneFor(operation), Rule::kPlain, uses);
      Enqueue(LaneFor(operation), Rule::kPlain);
    } else if (form != FreeForm::kMemFree || IsStreamOrdered(buffer.form)) {
      AwaitOnHost(operation, uses);
    }
    Emit(operation);
    const bool is_wait = form == FreeForm::kMemFree && !IsStreamOrdered(buffer.form);
    if (frees_are_waits_ && is_wait) JoinAll(operation.thread);
  }

  void JoinAll(int thread) {
    for (const auto& [id, lane] : lanes_) {
      if (lane.thread == thread) host_[thread].Join(lane.clock);
    }
  }

  // The giver's stream reaches all uses; an event carries that to the taker.
  void AddHandOver(const Operation& operation) {
    std::vector<Access> uses;
    AddAllAccesses(Whole(operation.buffer, world_.At(operation.buffer).bytes), uses);
    LaneState& from = LaneFor(operation);
    AwaitOnStream(operation, from, Rule::kPlain, uses);
    Operation give = operation;
    give.event = kFirstHandOverEvent + hand_overs_++;
    from.clock = Arrival(from, Rule::kPlain);
    const Clock carried = from.clock;
    Emit(give);
    Operation take = give;
    take.kind = Kind::kTake;
    take.thread = operation.to_thread;
    take.on_stream = dice_.Percent(60);
    take.stream = PickStream(take.thread);
    (take.on_stream ? LaneFor(take).clock : host_[take.thread]).Join(carried);
    Emit(take);
  }

  int PickStream(int thread) {
    const std::vector<int> streams = world_.StreamsOf(thread);
    return streams[dice_.Below(streams.size())];
  }

  // Of the program's own, or inserted.
  void AddOrdering(const Operation& operation) {
    Clock& host = host_[operation.thread];
    switch (operation.kind) {
      case Kind::kStreamCreate:
        OpenLane(operation.stream, operation.thread, (operation.salt & 1) == 0);
        break;
      case Kind::kStreamDestroy:
        LaneFor(operation).live = false;
        break;
      case Kind::kEventRecord:
        LaneFor(operation).clock.Join(host);
        events_[operation.event] = {operation.thread, LaneFor(operation).clock};
        break;
      case Kind::kEventWait:
        LaneFor(operation).clock.Join(events_.at(operation.event).clock);
        break;
      case Kind::kEventSync:
        host.Join(events_.at(operation.event).clock);
        break;
      case Kind::kStreamSync:
        host.Join(LaneFor(operation).clock);
        break;
      case Kind::kContextSync:
      case Kind::kFreeBarrier:
        JoinAll(operation.thread);
        break;
      default:
        break;
    }
  }

  void Insert(Operation inserted, const Operation& cause) {
    inserted.thread = cause.thread;
    inserted.origin = cause.origin;
    inserted.salt = dice_.Next();
    AddOrdering(inserted);
    if (omitted_ == inserted.kind) return;
    Emit(inserted);
  }

  void AwaitOnStream(const Operation& cause, LaneState& lane, Rule rule,
                     const std::vector<Access>& needs) {
    for (const Access& need : needs) {
      if (Arrival(lane, rule).Covers(need)) continue;
      if (dice_.Percent(frees_are_waits_ ? 40 : 15)) {
        AwaitOnHost(cause, {need});
        continue;
      }
      const int event = EventCovering(cause, need);
      if (event == kNone) {
        Insert({.kind = Kind::kContextSync}, cause);
      } else {
        Insert({.kind = Kind::kEventWait, .stream = lane.stream, .event = event}, cause);
      }
    }
  }

  void AwaitOnHost(const Operation& cause, const std::vector<Access>& needs) {
    for (const Access& need : needs) {
      if (host_[cause.thread].Covers(need)) continue;
      if (frees_are_waits_) {
        Insert({.kind = Kind::kFreeBarrier}, cause);
        continue;
      }
      const int stream = StreamCovering(cause, need);
      const int event = dice_.Percent(60) ? EventCovering(cause, need) : kNone;
      if (event != kNone) {
        Insert({.kind = Kind::kEventSync, .event = event}, cause);
      } else if (stream != kNone && dice_.Percent(80)) {
        Insert({.kind = Kind::kStreamSync, .stream = stream}, cause);
      } else {
        Insert({.kind = Kind::kContextSync}, cause);
      }
    }
  }

  // A stream of the thread that has passed `need`, preferably the work's own, or kNone.
  int StreamCovering(const Operation& cause, const Access& need) {
    const auto own = lanes_.find(need.lane);
    if (own->second.live && own->second.thread == cause.thread) return own->second.stream;
    for (const auto& [id, lane] : lanes_) {
      if (lane.live && lane.thread == cause.thread && lane.clock.Covers(need)) return lane.stream;
    }
    return kNone;
  }

  int EventCovering(const Operation& cause, const Access& need) {
    for (const auto& [id, event] : events_) {
      if (event.thread == cause.thread && event.clock.Covers(need) && dice_.Percent(60)) return id;
    }
    const int stream = StreamCovering(cause, need);
    if (stream == kNone) return kNone;
    const int event = kFirstInsertedEvent + cause.thread * kInsertedEventsPerThread +
                      static_cast<int>(dice_.Below(kInsertedEventsPerThread));
    Insert({.kind = Kind::kEventRecord, .stream = stream, .event = event}, cause);
    return event;
  }

  const std::optional<Kind> omitted_;
  const bool frees_are_waits_;
  World world_;
  Random dice_{0};
  std::map<Lane, LaneState> lanes_;
  std::map<int, EventState> events_;
  std::map<int, std::vector<History>> histories_;  // per buffer, one per segment
  std::map<int, History> objects_;
  std::array<Clock, kMaximumThreads> host_;
  int hand_overs_ = 0;
  std::vector<Operation> completed_;
};

}  // namespace

std::vector<Operation> Complete(const std::vector<Operation>& program,
                                std::optional<Kind> omitted) {
  const auto is_barrier = [](const Operation& operation) {
    return operation.kind == Kind::kFreeBarrier;
  };
  Orderer orderer(omitted, std::any_of(program.begin(), program.end(), is_barrier));
  for (const Operation& operation : program) orderer.Add(operation);
  return orderer.Take();
}

}  // namespace spillway::fuzz
