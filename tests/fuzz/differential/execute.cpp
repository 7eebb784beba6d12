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
#include "tests/fuzz/differential/feature.h"
#include "tests/fuzz/differential/random.h"
#include "tests/fuzz/differential/schedule.h"
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

// Where one thread tells another that a hand-over's event has been recorded, or that there will be
// none.
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
    const auto known = [&] { return abandoned_ || announced_.contains(event); };
    while (Schedule::IsOn() && !known()) {
      lock.unlock();
      Schedule::Point();
      lock.lock();
    }
    changed_.wait(lock, known);
    if (!announced_.contains(event)) throw std::runtime_error("another thread failed");
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<int> announced_;  // guarded by mutex_
  bool abandoned_ = false;   // guarded by mutex_
};

class Runner {
 public:
  Runner(int host, const Shape& shape, Table& table, HandOvers& hand_overs, const Device& device,
         const Manner& manner)
      : host_(host),
        shape_(shape),
        table_(table),
        hand_overs_(hand_overs),
        device_(device),
        manner_(manner) {}

  void Run(const std::vector<Operation>& program) {
    const Schedule::Turn turn(host_);
    const Operation* current = nullptr;
    try {
      for (const Operation& operation : program) {
        if (shape_.HostOf(operation.thread) != host_) continue;
        current = &operation;
        Schedule::Point();
        EnterContextOf(operation);
        if (manner_.trace) std::fprintf(stderr, "%s\n", ToText(operation).c_str());
        Step(operation);
        if (manner_.trace && operation.kind == Kind::kAlloc) TraceAlloc(operation.buffer);
      }
      FinishAll();
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

  void EnterContextOf(const Operation& operation) {
    const CUcontext wanted = device_.Context(shape_.ContextOf(operation.thread));
    if (wanted == context_) return;
    if (operation.salt & 512 && context_ != nullptr) {
      CUcontext left = nullptr;
      SPILLWAY_DRIVER_CALL(cuCtxPopCurrent(&left));
      SPILLWAY_DRIVER_CALL(cuCtxPushCurrent(wanted));
    } else {
      SPILLWAY_DRIVER_CALL(cuCtxSetCurrent(wanted));
    }
    context_ = wanted;
  }

  void FinishAll() {
    for (int number = 0; number < shape_.contexts; ++number) {
      SPILLWAY_DRIVER_CALL(cuCtxSetCurrent(device_.Context(number)));
      SPILLWAY_DRIVER_CALL(cuCtxSynchronize());
    }
  }

  void RunFeature(const Operation& operation) {
    const Feature& feature = *AllFeatures()[operation.feature];
    feature.Run(operation, {table_, device_, manner_, context_, digest_});
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
        Allocate(operation, table_);
        if (static_cast<AllocForm>(operation.form) == AllocForm::kFeature) RunFeature(operation);
        return;
      case Kind::kFree:
        if (static_cast<FreeForm>(operation.form) == FreeForm::kFeature) RunFeature(operation);
        return Free(operation, table_);
      case Kind::kFeatureCall:
      case Kind::kFeatureWork:
        RunFeature(operation);
        if (operation.object_use == ObjectUse::kEnd) table_.objects[operation.object].reset();
        return;
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
        table_.Record(operation);
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
      case Kind::kFreeBarrier:
        return FreeSomething();
      case Kind::kGive:
        table_.Record(operation);
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
    SPILLWAY_DRIVER_CALL(
        cuStreamWaitEvent(table_.StreamOf(operation), table_.events[operation.event], 0));
  }

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
    SPILLWAY_DRIVER_CALL(
        cuLaunchHostFunc(table_.StreamOf(operation), RunHostWrite, &host_writes_.back()));
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

  // Too small to count in what the program holds.
  static void FreeSomething() {
    CUdeviceptr address = 0;
    SPILLWAY_DRIVER_CALL(cuMemAlloc(&address, 256));
    SPILLWAY_DRIVER_CALL(cuMemFree(address));
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

  const int host_;
  const Shape& shape_;
  CUcontext context_ = nullptr;  // current
  Table& table_;
  HandOvers& hand_overs_;
  const Device& device_;
  const Manner manner_;
  std::deque<HostWrite> host_writes_;
  std::uint64_t digest_ = kDigestStart;
  std::string error_;
};

// In the order of the buffers' numbers.
std::uint64_t FoldMemory(std::uint64_t digest, const std::vector<Operation>& program,
                         const Table& table) {
  World world;
  for (const Operation& operation : program) world.Apply(operation);
  std::vector<std::uint8_t> bytes;
  for (const auto& [id, buffer] : world.Buffers()) {
    if (!buffer.live) continue;
    for (const Segment& segment : buffer.segments) {
      if (!segment.initialised) continue;
      bytes.resize(segment.end_bytes - segment.begin_bytes);
      const std::uint64_t address = table.slots[id].address + segment.begin_bytes;
      SPILLWAY_DRIVER_CALL(cuCtxSetCurrent(table.slots[id].context));
      SPILLWAY_DRIVER_CALL(
          cuMemcpy(reinterpret_cast<CUdeviceptr>(bytes.data()), address, bytes.size()));
      digest = FoldBytes(digest, bytes.data(), bytes.size());
    }
  }
  return digest;
}

// Returns what the hosts folded, in their order.
std::uint64_t RunHosts(const std::vector<Operation>& program, std::deque<Runner>& runners,
                       std::string& error) {
  std::vector<std::thread> others;
  for (std::size_t host = 1; host < runners.size(); ++host)
    others.emplace_back([&program, &runner = runners[host]] { runner.Run(program); });
  runners.front().Run(program);
  for (std::thread& other : others) other.join();
  std::uint64_t digest = kDigestStart;
  for (const Runner& runner : runners) {
    error += runner.Error();
    digest = FoldWord(digest, runner.Digest());
  }
  return digest;
}

}  // namespace

Outcome Execute(const std::vector<Operation>& program, const Shape& shape, Device& device,
                const Manner& manner) {
  Outcome outcome;
  Table table(program);
  HandOvers hand_overs;
  std::deque<Runner> runners;
  for (int host = 0; host < shape.hosts; ++host)
    runners.emplace_back(host, shape, table, hand_overs, device, manner);
  try {
    if (shape.contexts > 1) device.OpenSecondContext();
    outcome.digest = RunHosts(program, runners, outcome.error);
    if (!outcome.error.empty()) return outcome;
    outcome.digest = FoldMemory(outcome.digest, program, table);
    Clear(table);
    SPILLWAY_DRIVER_CALL(cuCtxSetCurrent(device.Context(0)));
    if (shape.contexts > 1) device.CloseSecondContext();
  } catch (const std::exception& failure) {
    outcome.error = failure.what();
  }
  return outcome;
}

}  // namespace spillway::fuzz
