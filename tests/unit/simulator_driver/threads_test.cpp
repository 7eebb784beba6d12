// Two application threads, host functions, and the default streams of threads.
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "driver_test.h"

namespace spillway::simulator {
namespace {

class ThreadsTest : public DriverTest {};

TEST_F(ThreadsTest, WaitForAValueDoesNotBlockTheThreadThatWritesIt) {
  CUcontext context = nullptr;
  ASSERT_OK(cuCtxGetCurrent(&context));
  CUdeviceptr flag = 0;
  ASSERT_OK(cuMemAlloc(&flag, 4));
  ASSERT_OK(cuMemsetD32(flag, 0, 1));
  ASSERT_OK(cuCtxSynchronize());
  const CUstream held = MakeStream();
  ASSERT_OK(cuStreamWaitValue32(held, flag, 1, CU_STREAM_WAIT_VALUE_EQ));

  std::thread waiter([&] {
    EXPECT_OK(cuCtxSetCurrent(context));
    EXPECT_OK(cuStreamSynchronize(held));
  });
  const CUstream writer = MakeStream();
  EXPECT_OK(cuStreamWriteValue32(writer, flag, 1, 0));
  waiter.join();
}

TEST_F(ThreadsTest, HostFunctionMayTakeALockThatACallerHolds) {
  std::mutex mutex;
  const CUstream stream = MakeStream();
  {
    const std::lock_guard hold(mutex);
    ASSERT_OK(cuLaunchHostFunc(
        stream, [](void* lock) { std::lock_guard(*static_cast<std::mutex*>(lock)); }, &mutex));
    EXPECT_EQ(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
  }
  EXPECT_OK(cuStreamSynchronize(stream));
}

TEST_F(ThreadsTest, ProgramMayWaitForItsHostFunctionWithoutTheDriver) {
  struct Signal {
    std::mutex mutex;
    std::condition_variable raised;
    bool is_up = false;
  } signal;
  const CUstream stream = MakeStream();
  CUdeviceptr words = 0;
  ASSERT_OK(cuMemAlloc(&words, 64));
  for (int i = 0; i < 10; ++i) Fill(words, 16, i, stream);
  ASSERT_OK(cuLaunchHostFunc(
      stream,
      [](void* argument) {
        auto* const up = static_cast<Signal*>(argument);
        const std::lock_guard hold(up->mutex);
        up->is_up = true;
        up->raised.notify_all();
      },
      &signal));

  std::unique_lock hold(signal.mutex);
  signal.raised.wait(hold, [&] { return signal.is_up; });

  EXPECT_TRUE(signal.is_up);
}

TEST_F(ThreadsTest, EveryThreadHasItsOwnDefaultStream) {
  CUcontext context = nullptr;
  ASSERT_OK(cuCtxGetCurrent(&context));
  unsigned long long own = 0, others = 0, legacy = 0;
  ASSERT_OK(cuStreamGetId(CU_STREAM_PER_THREAD, &own));
  ASSERT_OK(cuStreamGetId(CU_STREAM_LEGACY, &legacy));
  std::thread other([&] {
    EXPECT_OK(cuCtxSetCurrent(context));
    EXPECT_OK(cuStreamGetId(CU_STREAM_PER_THREAD, &others));
  });
  other.join();

  EXPECT_NE(own, others);
  EXPECT_NE(own, legacy);
}

TEST_F(ThreadsTest, PerThreadVariantsUseTheThreadsStreamAndPlainOnesTheLegacyStream) {
  void* twin = nullptr;
  ASSERT_OK(cuGetProcAddress("cuStreamGetId", &twin, 12000,
                             CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, nullptr));
  unsigned long long of_twin = 0, of_plain = 0, own = 0, legacy = 0;
  ASSERT_OK(reinterpret_cast<decltype(&cuStreamGetId)>(twin)(nullptr, &of_twin));
  ASSERT_OK(cuStreamGetId(nullptr, &of_plain));
  ASSERT_OK(cuStreamGetId(CU_STREAM_PER_THREAD, &own));
  ASSERT_OK(cuStreamGetId(CU_STREAM_LEGACY, &legacy));

  EXPECT_EQ(of_twin, own);
  EXPECT_EQ(of_plain, legacy);
}

// Two pieces of a pool are freed behind one flag each. One thread destroys the pool, which waits
// for both. Meanwhile the other sets the first flag and synchronises, which removes the first piece
// from the pool's list.
TEST_F(ThreadsTest, PoolMayBeDestroyedWhileAnotherThreadTrimsIt) {
  CUcontext context = nullptr;
  ASSERT_OK(cuCtxGetCurrent(&context));
  CUmemPoolProps properties = {};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  CUmemoryPool pool = nullptr;
  ASSERT_OK(cuMemPoolCreate(&pool, &properties));
  CUdeviceptr flags = 0;
  ASSERT_OK(cuMemAlloc(&flags, 8));
  ASSERT_OK(cuMemsetD32(flags, 0, 2));
  ASSERT_OK(cuCtxSynchronize());
  const CUstream held[] = {MakeStream(), MakeStream()};
  for (int i = 0; i < 2; ++i) {
    CUdeviceptr piece = 0;
    ASSERT_OK(cuMemAllocFromPoolAsync(&piece, 4, pool, held[i]));
    ASSERT_OK(cuStreamWaitValue32(held[i], flags + 4 * i, 1, CU_STREAM_WAIT_VALUE_EQ));
    Fill(piece, 1, 1, held[i]);
    ASSERT_OK(cuMemFreeAsync(piece, held[i]));
  }

  std::thread destroyer([&] {
    EXPECT_OK(cuCtxSetCurrent(context));
    EXPECT_OK(cuMemPoolDestroy(pool));
  });
  std::uint64_t used_bytes = 0;
  while (cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used_bytes) ==
         CUDA_SUCCESS) {
  }
  const CUstream writer = MakeStream();
  for (int i = 0; i < 2; ++i) {
    ASSERT_OK(cuStreamWriteValue32(writer, flags + 4 * i, 1, 0));
    ASSERT_OK(cuStreamSynchronize(held[i]));
  }
  destroyer.join();
}

TEST_F(ThreadsTest, ManyThreadsWorkAtOnceAndEachSeesItsOwnBytes) {
  CUcontext context = nullptr;
  ASSERT_OK(cuCtxGetCurrent(&context));
  const auto work = [&](int value) {
    EXPECT_OK(cuCtxSetCurrent(context));
    const CUstream stream = MakeStream();
    for (int round = 0; round < 50; ++round) {
      CUdeviceptr words = 0;
      EXPECT_OK(cuMemAllocAsync(&words, 4000, stream));
      Fill(words, 1000, value + round, stream);
      int last = 0;
      EXPECT_OK(cuMemcpyDtoHAsync(&last, words + 3996, 4, stream));
      EXPECT_EQ(last, value + round);
      EXPECT_OK(cuMemFreeAsync(words, stream));
    }
    EXPECT_OK(cuStreamSynchronize(stream));
    EXPECT_OK(cuStreamDestroy(stream));
  };
  std::thread first(work, 1000), second(work, 2000), third(work, 3000);
  first.join();
  second.join();
  third.join();
}

}  // namespace
}  // namespace spillway::simulator
