#include "tests/fuzz/differential/execute.h"

#include <condition_variable>
#include <cstdio>
#include <deque>
#include <exception>
#include <mutex>
#include <set>
#include <thread>

#include "tests/fuzz/differential/clocks.h"
#include "tests/fuzz/differential/digest.h"
#include "tests/fuzz/differential/random.h"
#include "tests/fuzz/differential/transfers.h"
#include "tests/fuzz/differential/world.h"
#include "tests/support/driver_check.h"

namespace spillway::fuzz {
namespace {

constexpr int kQueriesBeforeWaiting = 200;

void WriteHost(std::uint8_t* bytes, std::uint64_t count, std::uint64_t seed) {
  for (std::uint64_t i = 0; i < count; ++i)
    bytes[i] = static_cast<std::uint8_t>(Scramble(seed + i / 8) >> (i % 8 * 8));
}

struct HostWrite {
  std::uint8_t* bytes;
  std::uint64_t count;
  std::uint64_t seed;
};
void CUDA_CB RunHostWrite(void* data) {
  const auto& write = *static_cast<const HostWrite*>(data);
  WriteHost(write.bytes, write.count, write.seed);
}

// Where one thread tells the other that a hand-over's event has been recorded, or that there will be none.
class HandOvers {
 public:
  void Announce(int event) {
    const std::lock_guard lock(mutex_);
    announced_.insert(event);
    changed_.notify_all();
  }
  void Abandon() {
    const std::lock_guard lock(mutex_);
    abandoned_ = true;
    changed_.notify_all();
  }
  void Await(int event) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return abandoned_ || announced_.contains(event); });
    if (!announced_.contains(event)) throw std::runtime_error("the other thread failed");
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<int> announced_;  // guarded by mutex_
  bool abandoned_ = false;   // guarded by mutex_
};

// One thread's part of a program.
class Runner {
 public:
  Runner(int thread, Table& table, HandOvers& hand_overs, const Device& device, const Manner& manner)
      : thread_(thread), table_(table), hand_overs_(hand_overs), device_(device), manner_(manner) {}

  void Run(const std::vector<Operation>& program) {
    const Operation* current = nullptr;
    try {
      SPILLWAY_DRIVER_CALL(cuCtxSetCurrent(device_.Context()));
      for (const Operation& operation : program) {
        if (operation.thread != thread_) continue;
        current = &operation;
        if (manner_.trace) std::fprintf(stderr, "%s\n", ToText(operation).c_str());
        Step(operation);
        if (manner_.trace && operation.kind == Kind::kAlloc) TraceAlloc(operation.buffer);
      }
      SPILLWAY_DRIVER_CALL(cuCtxSynchronize());
    } catch (const std::exception& failure) {
      error_ = failure.what();
      if (current != nullptr) error_ += " in " + ToText(*current);
      hand_overs_.Abandon();
    }
  }

  std::uint64_t Digest() const { return digest_; }
  const std::string& Error() const { return error_; }

 private:
  void TraceAlloc(int buffer) const {
    std::fprintf(stderr, "  b%d at %#llx\n", buffer,
                 static_cast<unsigned long long>(table_.slots[buffer].address));
  }

  void Step(const Operation& operation) {
    switch (operation.kind) {
      case Kind::kStreamCreate:
        return CreateStream(operation, table_);
      case Kind::kStreamDestroy:
        SPILLWAY_DRIVER_CALL(cuStreamDestroy(table_.streams[operation.stream]));
        table_.streams[operation.stream] = nullptr;
        return;
      case Kind::kAlloc:
        return Allocate(operation, table_);
      case Kind::kFree:
        return Free(operation, table_);
      case Kind::kKernel:
        return Launch(operation, table_, device_, manner_.timing_salt);
      case Kind::kCopy:
        return Copy(operation, table_);
      case Kind::kFill:
        return Fill(operation, table_);
      case Kind::kPoolCreate:
        return CreatePool(operation, table_);
      case Kind::kPoolTrim:
        SPILLWAY_DRIVER_CALL(cuMemPoolTrimTo(table_.pools[operation.pool], 0));
        return;
      case Kind::kPoolDestroy:
        SPILLWAY_DRIVER_CALL(cuMemPoolDestroy(table_.pools[operation.pool]));
        table_.pools[operation.pool] = nullptr;
        return;
      default:
        StepOnHost(operation);
    }
  }

  void StepOnHost(const Operation& operation) {
    switch (operation.kind) {
      case Kind::kHostFunction:
        return EnqueueHostWrite(operation);
      case Kind::kHostFill:
        WriteHost(HostBytes(operation.out), operation.out.bytes, operation.salt);
        return;
      case Kind::kHostFold:
        digest_ = FoldBytes(digest_, HostBytes(operation.in.front()), operation.in.front().bytes);
        return;
      case Kind::kInspect:
        return Inspect(operation.in.front());
      case Kind::kMemInfo:
        return CheckMemInfo();
      case Kind::kRefusals:
        return FoldRefusals();
      default:
        Synchronise(operation);
    }
  }

  void Synchronise(const Operation& operation) {
    switch (operation.kind) {
      case Kind::kEventRecord:
        SPILLWAY_DRIVER_CALL(cuEventRecord(table_.events[operation.event], table_.StreamOf(operation)));
        return;
      case Kind::kEventWait:
        return WaitInStream(operation);
      case Kind::kEventSync:
        return AwaitEvent(operation);
      case Kind::kStreamSync:
        return AwaitStream(operation);
      case Kind::kContextSync:
        SPILLWAY_DRIVER_CALL(cuCtxSynchronize());
        return;
      case Kind::kGive:
        SPILLWAY_DRIVER_CALL(cuEventRecord(table_.events[operation.event], table_.StreamOf(operation)));
        hand_overs_.Announce(operation.event);
        return;
      case Kind::kTake:
        hand_overs_.Await(operation.event);
        operation.on_stream ? WaitInStream(operation) : AwaitEvent(operation);
        return;
      default:
        throw std::logic_error("an operation that nobody runs");
    }
  }

  std::uint8_t* HostBytes(const View& view) const {
    return table_.slots[view.buffer].HostBytes() + view.offset_bytes;
  }

  void WaitInStream(const Operation& operation) {
    SPILLWAY_DRIVER_CALL(cuStreamWaitEvent(table_.StreamOf(operation), table_.events[operation.event], 0));
  }

  // Programs wait by asking again and again, too.
  void AwaitEvent(const Operation& operation) {
    const CUevent event = table_.events[operation.event];
    for (int i = 0; operation.salt & 128 && i < kQueriesBeforeWaiting; ++i) {
      if (IsDone(cuEventQuery(event), "cuEventQuery")) return;
    }
    SPILLWAY_DRIVER_CALL(cuEventSynchronize(event));
  }

  void AwaitStream(const Operation& operation) {
    const CUstream stream = table_.StreamOf(operation);
    for (int i = 0; operation.salt & 128 && i < kQueriesBeforeWaiting; ++i) {
      if (IsDone(cuStreamQuery(stream), "cuStreamQuery")) return;
    }
    SPILLWAY_DRIVER_CALL(cuStreamSynchronize(stream));
  }

  static bool IsDone(CUresult result, const char* call) {
    if (result == CUDA_ERROR_NOT_READY) return false;
    support::CheckDriver(result, call);
    return true;
  }

  void EnqueueHostWrite(const Operation& operation) {
    host_writes_.push_back({HostBytes(operation.out), operation.out.bytes, operation.salt});
    SPILLWAY_DRIVER_CALL(cuLaunchHostFunc(table_.StreamOf(operation), RunHostWrite, &host_writes_.back()));
  }

  void Inspect(const View& view) {
    const CUdeviceptr address = table_.slots[view.buffer].address + view.offset_bytes;
    CUdeviceptr base = 0;
    std::size_t size_bytes = 0;
    unsigned type = 0;
    SPILLWAY_DRIVER_CALL(cuMemGetAddressRange(&base, &size_bytes, address));
    SPILLWAY_DRIVER_CALL(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address));
    digest_ = FoldWord(FoldWord(FoldWord(digest_, address - base), size_bytes), type);
  }

  static void CheckMemInfo() {
    std::size_t free_bytes = 0;
    std::size_t total_bytes = 0;
    SPILLWAY_DRIVER_CALL(cuMemGetInfo(&free_bytes, &total_bytes));
    if (free_bytes > total_bytes) throw std::runtime_error("cuMemGetInfo: more free than there is");
  }

  void FoldRefusals() {
    CUdeviceptr address = 0;
    digest_ = FoldWord(digest_, cuMemAlloc(&address, 1ull << 50));
    digest_ = FoldWord(digest_, cuMemAlloc(&address, 0));
    digest_ = FoldWord(digest_, cuMemFree(0));
  }

  const int thread_;
  Table& table_;
  HandOvers& hand_overs_;
  const Device& device_;
  const Manner manner_;
  std::deque<HostWrite> host_writes_;
  std::uint64_t digest_ = kDigestStart;
  std::string error_;
};

// The written bytes of every living buffer, in the order of their numbers.
std::uint64_t FoldMemory(std::uint64_t digest, const std::vector<Operation>& program, const Table& table) {
  World world;
  for (const Operation& operation : program) world.Apply(operation);
  std::vector<std::uint8_t> bytes;
  for (const auto& [id, buffer] : world.Buffers()) {
    if (!buffer.live) continue;
    for (const Segment& segment : buffer.segments) {
      if (!segment.initialised) continue;
      bytes.resize(segment.end_bytes - segment.begin_bytes);
      const std::uint64_t address = table.slots[id].address + segment.begin_bytes;
      SPILLWAY_DRIVER_CALL(cuMemcpy(reinterpret_cast<CUdeviceptr>(bytes.data()), address, bytes.size()));
      digest = FoldBytes(digest, bytes.data(), bytes.size());
    }
  }
  return digest;
}

}  // namespace

Outcome Execute(const std::vector<Operation>& program, const Device& device, const Manner& manner) {
  Outcome outcome;
  Table table(program);
  HandOvers hand_overs;
  Runner first(0, table, hand_overs, device, manner);
  Runner second(1, table, hand_overs, device, manner);
  bool two = false;
  for (const Operation& operation : program) two = two || operation.thread == 1;
  std::thread other;
  if (two) other = std::thread([&] { second.Run(program); });
  first.Run(program);
  if (two) other.join();
  outcome.error = first.Error() + second.Error();
  if (!outcome.error.empty()) return outcome;
  try {
    outcome.digest = FoldMemory(FoldWord(first.Digest(), second.Digest()), program, table);
    Clear(table);
  } catch (const std::exception& failure) {
    outcome.error = failure.what();
  }
  return outcome;
}

}  // namespace spillway::fuzz
