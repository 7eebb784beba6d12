// Events: state, timing, order between streams; host functions.
#include <atomic>
#include <thread>

#include "tests/contract/device.h"

namespace spillway::contract {
namespace {

constexpr double kLongMs = 60;

float ElapsedMs(CUevent start, CUevent end) {
  float milliseconds = -1;
  ASSERT_OK(cuEventElapsedTime(&milliseconds, start, end));
  return milliseconds;
}

}  // namespace

CONTRACT(Event, NeverRecordedIsComplete, "cuda.h:16071 cuEventQuery") {
  UseDevice();
  const CUevent event = MakeEvent();
  EXPECT_OK(cuEventQuery(event));
  EXPECT_OK(cuEventSynchronize(event));
  EXPECT_OK(cuStreamWaitEvent(MakeStream(), event, 0));
}

CONTRACT(Event, IsReadyWhenEarlierWorkIsDone, "cuda.h:16071 cuEventQuery") {
  UseDevice();
  const CUstream stream = MakeStream();
  const CUevent event = MakeEvent();
  const CUdeviceptr word = Allocate(4);
  Spin(10 * kLongMs, stream, word, 3);
  ASSERT_OK(cuEventRecord(event, stream));
  EXPECT_EQ(cuEventQuery(event), CUDA_ERROR_NOT_READY);
  ASSERT_OK(cuEventSynchronize(event));
  EXPECT_OK(cuEventQuery(event));
  EXPECT_EQ(ReadWord(word), 3u);
}

CONTRACT(Event, SynchronizeWaitsForTheLatestRecord, "cuda.h:15989 cuEventRecord") {
  UseDevice();
  const CUstream stream = MakeStream();
  const CUevent event = MakeEvent();
  ASSERT_OK(cuEventRecord(event, stream));
  Spin(kLongMs, stream);
  ASSERT_OK(cuEventRecord(event, stream));
  ASSERT_OK(cuEventSynchronize(event));
  EXPECT_OK(cuStreamQuery(stream));
}

CONTRACT_ALONE(Event, ElapsedTimeFollowsTheWork, "cuda.h:16179 cuEventElapsedTime") {
  UseDevice();
  const CUstream stream = MakeStream();
  const CUevent a = MakeEvent(), b = MakeEvent(), c = MakeEvent();
  Spin(1, stream);
  ASSERT_OK(cuEventRecord(a, stream));
  Spin(20, stream);
  ASSERT_OK(cuEventRecord(b, stream));
  Spin(80, stream);
  ASSERT_OK(cuEventRecord(c, stream));
  ASSERT_OK(cuEventSynchronize(c));
  const float short_ms = ElapsedMs(a, b), long_ms = ElapsedMs(b, c);
  EXPECT_TRUE(short_ms > 5);
  EXPECT_TRUE(long_ms > 2 * short_ms);
  EXPECT_TRUE(ElapsedMs(a, c) >= long_ms);
  OBSERVE("milliseconds_of_a_20_ms_spin", short_ms);
}

CONTRACT(Event, ElapsedTimeNeedsTimedRecordedEvents, "cuda.h:16179 cuEventElapsedTime") {
  UseDevice();
  const CUevent recorded = MakeEvent(), never = MakeEvent(),
                untimed = MakeEvent(CU_EVENT_DISABLE_TIMING);
  ASSERT_OK(cuEventRecord(recorded, nullptr));
  ASSERT_OK(cuEventRecord(untimed, nullptr));
  ASSERT_OK(cuCtxSynchronize());
  float milliseconds = 0;
  EXPECT_EQ(cuEventElapsedTime(&milliseconds, recorded, never), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuEventElapsedTime(&milliseconds, recorded, untimed), CUDA_ERROR_INVALID_HANDLE);
}

CONTRACT(Event, ElapsedTimeOfUnfinishedWorkIsNotReady, "cuda.h:16179 cuEventElapsedTime") {
  UseDevice();
  const CUstream stream = MakeStream();
  const CUevent start = MakeEvent(), end = MakeEvent();
  ASSERT_OK(cuEventRecord(start, stream));
  Spin(10 * kLongMs, stream);
  ASSERT_OK(cuEventRecord(end, stream));
  float milliseconds = 0;
  EXPECT_EQ(cuEventElapsedTime(&milliseconds, start, end), CUDA_ERROR_NOT_READY);
  EXPECT_OK(cuCtxSynchronize());
}

CONTRACT(Event, UnknownFlagsAreInvalid, "cuda.h:15946 cuEventCreate") {
  UseDevice();
  CUevent event = nullptr;
  EXPECT_EQ(cuEventCreate(&event, 0x100), CUDA_ERROR_INVALID_VALUE);
  EXPECT_OK(cuEventCreate(&event, CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING));
}

CONTRACT(Event, OrdersOtherwiseIndependentStreams, "cuda.h:15268 cuStreamWaitEvent") {
  UseDevice();
  const CUstream producer = MakeStream(), consumer = MakeStream();
  const CUevent ready = MakeEvent(CU_EVENT_DISABLE_TIMING);
  const CUdeviceptr word = Allocate(4), copy = Allocate(4);
  ASSERT_OK(cuMemsetD32(word, 0, 1));
  ASSERT_OK(cuCtxSynchronize());
  Spin(kLongMs, producer, word, 40);
  ASSERT_OK(cuEventRecord(ready, producer));
  ASSERT_OK(cuStreamWaitEvent(consumer, ready, CU_EVENT_WAIT_DEFAULT));
  Launch("copy", 1, 1, consumer, copy, word, std::uint64_t{1});
  ASSERT_OK(cuStreamSynchronize(consumer));
  EXPECT_EQ(ReadWord(copy), 40u);
}

CONTRACT(Event, WaitRefersToTheRecordAtTheCall, "cuda.h:15268 cuStreamWaitEvent") {
  UseDevice();
  const CUstream producer = MakeStream(), consumer = MakeStream();
  const CUevent event = MakeEvent();
  const CUdeviceptr word = Allocate(4);
  ASSERT_OK(cuEventRecord(event, producer));
  ASSERT_OK(cuStreamWaitEvent(consumer, event, 0));
  Spin(10 * kLongMs, producer);
  ASSERT_OK(cuEventRecord(event, producer));  // too late for the wait above
  Fill(word, 1, 1, consumer);
  ASSERT_OK(cuStreamSynchronize(consumer));
  OBSERVE("late_record_once_the_waiter_is_done", cuEventQuery(event));
  EXPECT_EQ(ReadWord(word), 1u);
}

CONTRACT(Event, MayBeDestroyedBeforeItIsReady, "cuda.h:16131 cuEventDestroy") {
  UseDevice();
  const CUstream producer = MakeStream(), consumer = MakeStream();
  const CUevent ready = MakeEvent();
  const CUdeviceptr word = Allocate(4), copy = Allocate(4);
  Spin(kLongMs, producer, word, 41);
  ASSERT_OK(cuEventRecord(ready, producer));
  ASSERT_OK(cuStreamWaitEvent(consumer, ready, 0));
  EXPECT_OK(cuEventDestroy(ready));
  Launch("copy", 1, 1, consumer, copy, word, std::uint64_t{1});
  ASSERT_OK(cuStreamSynchronize(consumer));
  EXPECT_EQ(ReadWord(copy), 41u);
}

CONTRACT(Event, OnLegacyCoversBlockingStreams, "CUDA driver API, stream synchronization behavior") {
  UseDevice();
  const CUstream blocking = MakeStream(CU_STREAM_DEFAULT);
  const CUevent event = MakeEvent();
  Spin(kLongMs, blocking);
  ASSERT_OK(cuEventRecord(event, nullptr));
  ASSERT_OK(cuEventSynchronize(event));
  EXPECT_OK(cuStreamQuery(blocking));
}

CONTRACT(HostFunction, RunsBetweenItsNeighbours, "cuda.h:18127 cuLaunchHostFunc") {
  UseDevice();
  const CUstream stream = MakeStream();
  struct State {
    std::uint32_t* words;
    std::uint32_t seen;
    std::thread::id thread;
    int calls;
  } state{nullptr, 0, {}, 0};
  ASSERT_OK(cuMemAllocHost(reinterpret_cast<void**>(&state.words), 4096));
  state.words[0] = 0;
  const CUdeviceptr word = Allocate(4), after = Allocate(4);
  Spin(kLongMs, stream, word, 60);
  ASSERT_OK(cuMemcpyDtoHAsync(state.words, word, 4, stream));
  ASSERT_OK(cuLaunchHostFunc(
      stream,
      [](void* data) {
        auto* shared = static_cast<State*>(data);
        shared->seen = shared->words[0];
        shared->words[0] = 61;
        shared->thread = std::this_thread::get_id();
        ++shared->calls;
      },
      &state));
  ASSERT_OK(cuMemcpyHtoDAsync(after, state.words, 4, stream));
  ASSERT_OK(cuStreamSynchronize(stream));
  EXPECT_EQ(state.calls, 1);
  EXPECT_EQ(state.seen, 60u);
  EXPECT_EQ(ReadWord(after), 61u);
  OBSERVE("runs_on_the_callers_thread", state.thread == std::this_thread::get_id());
}

CONTRACT(HostFunction, CallbackGetsStreamAndStatus, "cuda.h:15343 cuStreamAddCallback") {
  UseDevice();
  const CUstream stream = MakeStream();
  struct State {
    CUstream stream;
    CUresult status;
    std::atomic<int> calls;
  } state{nullptr, CUDA_ERROR_UNKNOWN, {0}};
  ASSERT_OK(cuStreamAddCallback(
      stream,
      [](CUstream from, CUresult status, void* data) {
        auto* shared = static_cast<State*>(data);
        shared->stream = from;
        shared->status = status;
        ++shared->calls;
      },
      &state, 0));
  ASSERT_OK(cuStreamSynchronize(stream));
  EXPECT_EQ(state.calls.load(), 1);
  EXPECT_TRUE(state.stream == stream);
  EXPECT_OK(state.status);
}

CONTRACT(HostFunction, NullIsInvalid, "cuda.h:18127 cuLaunchHostFunc") {
  UseDevice();
  EXPECT_EQ(cuLaunchHostFunc(MakeStream(), nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
}

}  // namespace spillway::contract
