// What counts as complete. Host functions hold a stream of the simulated driver until the test
// releases it.
#include "interposer/execute/state/timeline.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <thread>

#include "interposer/driver/driver_api.h"

namespace spillway::interposer {
namespace {

using driver::Driver;

// The stream continues when the word is at least `value`. Spillway itself never calls this
// function.
CUresult WaitForWord(CUstream stream, const volatile std::uint32_t* word, std::uint32_t value) {
  using Wait = CUresult (*)(CUstream, CUdeviceptr, std::uint32_t, unsigned);
  void* const driver = dlopen(getenv("SPILLWAY_DRIVER"), RTLD_NOW | RTLD_NOLOAD);
  const auto wait = reinterpret_cast<Wait>(dlsym(driver, "cuStreamWaitValue32_v2"));
  return wait(stream, reinterpret_cast<CUdeviceptr>(word), value, /*CU_STREAM_WAIT_VALUE_GEQ*/ 0);
}

class TimelineTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(Driver().cuInit(0), CUDA_SUCCESS) << "SPILLWAY_DRIVER names the simulated driver";
    CUcontext context;
    ASSERT_EQ(Driver().cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    ASSERT_EQ(Driver().cuCtxSetCurrent(context), CUDA_SUCCESS);
    ASSERT_EQ(Driver().cuStreamCreate(&handle_, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    ASSERT_EQ(Driver().cuMemHostAlloc(&host_, kBytes, 0), CUDA_SUCCESS);
    ASSERT_EQ(Driver().cuMemAlloc_v2(&device_, kBytes), CUDA_SUCCESS);
  }
  void TearDown() override {
    Driver().cuStreamSynchronize(handle_);
    Driver().cuMemFree_v2(device_);
    Driver().cuMemFreeHost(host_);
    Driver().cuDevicePrimaryCtxRelease_v2(0);
  }
  // Work that takes long in simulated time.
  void Enqueue() {
    ASSERT_EQ(Driver().cuMemcpyHtoDAsync_v2(device_, host_, kBytes, handle_), CUDA_SUCCESS);
  }

  static constexpr size_t kBytes = size_t{64} << 20;
  CUstream handle_ = nullptr;
  void* host_ = nullptr;
  CUdeviceptr device_ = 0;
  Timeline timeline_;
};

TEST_F(TimelineTest, WorkIsCompleteOnlyWithItsEvent) {
  StreamState* stream = timeline_.Of({handle_, false});
  Enqueue();
  const Use use = timeline_.Issue(stream);

  EXPECT_FALSE(timeline_.Done(use));
  Driver().cuEventSynchronize(timeline_.EventFor(use));
  EXPECT_TRUE(timeline_.Done(use));
}

// An allocation asks the driver about faults only while this is false.
TEST_F(TimelineTest, AllWorkIsKnownToBeDoneOnceItsEventWasAsked) {
  EXPECT_TRUE(timeline_.AllKnownDone());
  StreamState* stream = timeline_.Of({handle_, false});
  Enqueue();
  const Use use = timeline_.Issue(stream);

  EXPECT_FALSE(timeline_.AllKnownDone());
  Driver().cuEventSynchronize(timeline_.EventFor(use));
  EXPECT_FALSE(timeline_.AllKnownDone()) << "nothing was asked yet";
  EXPECT_TRUE(timeline_.Done(use));
  EXPECT_TRUE(timeline_.AllKnownDone());
  EXPECT_EQ(timeline_.fault(), CUDA_SUCCESS);
}

// Regression: an event recorded during capture belonged to the graph, so the stream's work never
// completed.
TEST_F(TimelineTest, NoEventIsRecordedOnACapturingStreamForEarlierWork) {
  const auto driver = dlopen(getenv("SPILLWAY_DRIVER"), RTLD_NOW | RTLD_NOLOAD);
  const auto begin = reinterpret_cast<CUresult (*)(CUstream, CUstreamCaptureMode)>(
      dlsym(driver, "cuStreamBeginCapture_v2"));
  const auto end =
      reinterpret_cast<CUresult (*)(CUstream, CUgraph*)>(dlsym(driver, "cuStreamEndCapture"));
  StreamState* stream = timeline_.Of({handle_, false});
  Enqueue();
  const Use use = timeline_.Issue(stream);
  ASSERT_EQ(Driver().cuStreamSynchronize(handle_), CUDA_SUCCESS);
  Timeline::Completed(use.stream, use.sequence);

  ASSERT_EQ(begin(handle_, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
  const CUevent event = timeline_.EventFor(use);
  EXPECT_EQ(Driver().cuEventQuery(event), CUDA_SUCCESS);
  CUgraph graph = nullptr;
  ASSERT_EQ(end(handle_, &graph), CUDA_SUCCESS);

  Enqueue();
  const Use later = timeline_.Issue(stream);
  Driver().cuEventSynchronize(timeline_.EventFor(later));
  EXPECT_TRUE(timeline_.Done(later));
}

TEST_F(TimelineTest, EarlierCheckpointDoesNotCompleteLaterWork) {
  StreamState* stream = timeline_.Of({handle_, false});
  Enqueue();
  const Use first = timeline_.Issue(stream);
  const CUevent event = timeline_.EventFor(first);
  Enqueue();
  const Use second = timeline_.Issue(stream);

  Driver().cuEventSynchronize(event);
  EXPECT_TRUE(timeline_.Done(first));
  EXPECT_FALSE(timeline_.Done(second));
}

// Regression: the number of the launch that ended last stood for both. A host copy counted as good
// while the later launch was writing.
TEST_F(TimelineTest, LaunchesThatEndOutOfOrderCompleteWithTheLast) {
  StreamState* stream = timeline_.Of({handle_, false});
  Timeline::UndocumentedBegins(stream, true);
  Timeline::UndocumentedBegins(stream, false);
  Enqueue();
  const Use first = timeline_.Issue(stream);
  const CUevent event = timeline_.EventFor(first);
  Enqueue();
  const Use second = timeline_.Issue(stream);
  Timeline::UndocumentedEnded(second, false);
  Timeline::UndocumentedEnded(first, true);

  Driver().cuEventSynchronize(event);
  EXPECT_FALSE(timeline_.AllUndocumentedDone());
  Driver().cuEventSynchronize(timeline_.EventFor(second));
  EXPECT_TRUE(timeline_.AllUndocumentedDone());
}

TEST_F(TimelineTest, WorkOfADestroyedStreamCountsUntilComplete) {
  StreamState* stream = timeline_.Of({handle_, false});
  Enqueue();
  const Use use = timeline_.Issue(stream);
  timeline_.Destroyed(handle_);
  Driver().cuStreamDestroy_v2(handle_);
  handle_ = nullptr;

  EXPECT_FALSE(timeline_.Done(use));
  EXPECT_FALSE(timeline_.Unfinished().empty());
  Driver().cuCtxSynchronize();
  EXPECT_TRUE(timeline_.Done(use));
  EXPECT_TRUE(timeline_.Unfinished().empty());
}

// Each operation on the thread's stream is held until `word` reaches its number.
class PerThreadWork {
 public:
  PerThreadWork(CUcontext context, Timeline* timeline, volatile std::uint32_t* word)
      : word_(word), thread_([=, this] { Run(context, timeline); }) {}
  void Join() { thread_.join(); }
  bool is_over() const { return over_; }
  StreamState* stream() const { return stream_; }
  void NoteScan() { ++scans_; }

 private:
  static constexpr std::uint32_t kOperations = 500;

  void Run(CUcontext context, Timeline* timeline) {
    Driver().cuCtxSetCurrent(context);
    StreamState* const mine = timeline->Of({CU_STREAM_PER_THREAD, false});
    stream_ = mine;
    for (std::uint32_t i = 1; i <= kOperations; ++i) {
      EXPECT_EQ(WaitForWord(CU_STREAM_PER_THREAD, word_, i), CUDA_SUCCESS);
      timeline->Issue(mine);
      for (const int seen = scans_; scans_ < seen + 2;) std::this_thread::yield();
      *word_ = i;
      Driver().cuStreamSynchronize(CU_STREAM_PER_THREAD);
    }
    over_ = true;
  }

  volatile std::uint32_t* const word_;
  std::atomic<StreamState*> stream_{nullptr};
  std::atomic<int> scans_{0};
  std::atomic<bool> over_{false};
  std::thread thread_;  // last: it uses the other members
};

// Another thread's event on this handle would belong to that thread's own stream.
TEST_F(TimelineTest, PerThreadStreamWorkCompletesTheSameForEveryThread) {
  CUcontext context;
  ASSERT_EQ(Driver().cuCtxGetCurrent(&context), CUDA_SUCCESS);
  auto* const word = static_cast<volatile std::uint32_t*>(host_);
  *word = 0;
  PerThreadWork work(context, &timeline_, word);
  while (!work.stream()) std::this_thread::yield();

  int done_too_early = 0;
  for (; !work.is_over(); work.NoteScan()) {
    const Use last{work.stream(), Timeline::IssuedOn(work.stream())};
    if (!Timeline::KnownDone(last)) timeline_.EventFor(last);
    if (timeline_.Done(last) && *word < last.sequence) ++done_too_early;
  }
  work.Join();

  EXPECT_EQ(done_too_early, 0);
}

TEST_F(TimelineTest, DefaultStreamsOfBothFlavoursDiffer) {
  EXPECT_NE(timeline_.Of({nullptr, false}), timeline_.Of({nullptr, true}));
  EXPECT_EQ(timeline_.Of({nullptr, false}), timeline_.Of({CU_STREAM_LEGACY, true}));
  EXPECT_EQ(timeline_.Of({nullptr, true}), timeline_.Of({CU_STREAM_PER_THREAD, false}));
}

TEST(FirstUsesTest, KeepTheEarliestUsePerStream) {
  StreamState one, other;
  FirstUses first;
  for (const Use use : {Use{&one, 5}, Use{}, Use{&other, 9}, Use{&one, 3}, Use{&other, 12}})
    first.Add(use);

  ASSERT_EQ(first.items().size(), 2u);
  EXPECT_EQ(first.items()[0].stream, &one);
  EXPECT_EQ(first.items()[0].sequence, 3u);
  EXPECT_EQ(first.items()[1].stream, &other);
  EXPECT_EQ(first.items()[1].sequence, 9u);
}

TEST(UseListTest, KeepsTheLatestUsePerStream) {
  Timeline timeline;
  StreamState* a = timeline.Of({reinterpret_cast<CUstream>(0x1000), false});
  StreamState* b = timeline.Of({reinterpret_cast<CUstream>(0x2000), false});
  UseList list;
  list.Add({a, 3});
  list.Add({b, 1});
  list.Add({a, 2});
  ASSERT_EQ(list.items().size(), 2u);
  EXPECT_EQ(list.items()[0].sequence, 3u);
}

}  // namespace
}  // namespace spillway::interposer
