// Streams: order within one stream, implicit order between some streams, and waits.
#include <chrono>
#include <thread>

#include "tests/contract/device.h"

namespace spillway::contract {
namespace {

constexpr double kLongMs = 60;  // so long that work meant to wait cannot run before it ends

double SecondsOf(void (*action)(CUdeviceptr), CUdeviceptr argument) {
  const auto start = std::chrono::steady_clock::now();
  action(argument);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

CONTRACT(Stream, FlagsAndPriorityAreReadBack, "cuda.h:15002 cuStreamCreateWithPriority") {
  UseDevice();
  unsigned flags = 99;
  ASSERT_OK(cuStreamGetFlags(MakeStream(CU_STREAM_NON_BLOCKING), &flags));
  EXPECT_EQ(flags, unsigned{CU_STREAM_NON_BLOCKING});
  ASSERT_OK(cuStreamGetFlags(MakeStream(CU_STREAM_DEFAULT), &flags));
  EXPECT_EQ(flags, unsigned{CU_STREAM_DEFAULT});
  int least = 0, greatest = 0, priority = 99;
  ASSERT_OK(cuCtxGetStreamPriorityRange(&least, &greatest));
  CUstream stream = nullptr;
  ASSERT_OK(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, greatest - 100));
  ASSERT_OK(cuStreamGetPriority(stream, &priority));
  EXPECT_EQ(priority, greatest);
  EXPECT_EQ(cuStreamCreate(&stream, 0x100), CUDA_ERROR_INVALID_VALUE);
}

CONTRACT(Stream, KnowsItsContextAndIdentity, "cuda.h:15173 cuStreamGetCtx") {
  UseDevice();
  const CUstream first = MakeStream(), second = MakeStream();
  CUcontext own = nullptr, current = nullptr;
  ASSERT_OK(cuStreamGetCtx(first, &own));
  ASSERT_OK(cuCtxGetCurrent(&current));
  EXPECT_TRUE(own == current);
  unsigned long long first_id = 0, second_id = 0, legacy_id = 0, null_id = 0;
  ASSERT_OK(cuStreamGetId(first, &first_id));
  ASSERT_OK(cuStreamGetId(second, &second_id));
  EXPECT_TRUE(first_id != second_id);
  ASSERT_OK(cuStreamGetId(CU_STREAM_LEGACY, &legacy_id));
  ASSERT_OK(cuStreamGetId(nullptr, &null_id));
  EXPECT_EQ(legacy_id, null_id);
}

CONTRACT(Stream, RunsItsWorkInOrder, "CUDA programming guide, streams") {
  UseDevice();
  const CUstream stream = MakeStream();
  const CUdeviceptr words = Allocate(4000);
  Spin(kLongMs, stream);
  Fill(words, 1, 1000, stream);
  for (int i = 0; i < 10; ++i)
    Launch("add", 2, 128, stream, words, std::uint32_t{2}, std::uint64_t{1000});
  ASSERT_OK(cuStreamSynchronize(stream));
  EXPECT_TRUE(AllWordsAre(words, 1000, 21));
}

CONTRACT(Stream, LegacyStreamWaitsForBlockingStreams,
         "CUDA driver API, stream synchronization behavior") {
  UseDevice();
  const CUstream blocking = MakeStream(CU_STREAM_DEFAULT);
  const CUdeviceptr word = Allocate(4), copy = Allocate(4);
  ASSERT_OK(cuMemsetD32(word, 0, 1));
  Spin(kLongMs, blocking, word, 7);
  Launch("copy", 1, 1, nullptr, copy, word, std::uint64_t{1});
  EXPECT_EQ(ReadWord(copy), 7u);
}

CONTRACT(Stream, BlockingStreamsWaitForTheLegacyStream,
         "CUDA driver API, stream synchronization behavior") {
  UseDevice();
  const CUstream blocking = MakeStream(CU_STREAM_DEFAULT);
  const CUdeviceptr word = Allocate(4), copy = Allocate(4);
  ASSERT_OK(cuMemsetD32(word, 0, 1));
  Spin(kLongMs, CU_STREAM_LEGACY, word, 8);
  Launch("copy", 1, 1, blocking, copy, word, std::uint64_t{1});
  ASSERT_OK(cuStreamSynchronize(blocking));
  EXPECT_EQ(ReadWord(copy), 8u);
}

CONTRACT(Stream, PerThreadStreamIsBlocking, "CUDA driver API, stream synchronization behavior") {
  UseDevice();
  const CUdeviceptr word = Allocate(4), copy = Allocate(4);
  ASSERT_OK(cuMemsetD32(word, 0, 1));
  Spin(kLongMs, CU_STREAM_LEGACY, word, 9);
  Launch("copy", 1, 1, CU_STREAM_PER_THREAD, copy, word, std::uint64_t{1});
  ASSERT_OK(cuStreamSynchronize(CU_STREAM_PER_THREAD));
  EXPECT_EQ(ReadWord(copy), 9u);
}

CONTRACT(Stream, PerThreadStreamsDiffer, "CUDA driver API, stream synchronization behavior") {
  UseDevice();
  CUcontext context = nullptr;
  ASSERT_OK(cuCtxGetCurrent(&context));
  unsigned long long here = 0, there = 0;
  ASSERT_OK(cuStreamGetId(CU_STREAM_PER_THREAD, &here));
  std::thread([&] {
    EXPECT_OK(cuCtxSetCurrent(context));
    EXPECT_OK(cuStreamGetId(CU_STREAM_PER_THREAD, &there));
  }).join();
  EXPECT_TRUE(here != there);
}

CONTRACT_ALONE(Stream, NonBlockingStreamsMayRunBesideTheLegacyStream,
               "cuda.h:429 CU_STREAM_NON_BLOCKING") {
  UseDevice();
  const CUstream beside = MakeStream(CU_STREAM_NON_BLOCKING);
  const CUdeviceptr words = Allocate(4000);
  Fill(words, 1, 1000);
  ASSERT_OK(cuCtxSynchronize());
  Spin(10 * kLongMs, beside);
  Fill(words, 2, 1000);
  ASSERT_OK(cuStreamSynchronize(CU_STREAM_LEGACY));
  OBSERVE("non_blocking_still_busy", cuStreamQuery(beside));
  ASSERT_OK(cuStreamSynchronize(beside));
  EXPECT_OK(cuStreamQuery(beside));
}

CONTRACT(Stream, QueryDistinguishesBusyFromIdle, "cuda.h:15766 cuStreamQuery") {
  UseDevice();
  const CUstream stream = MakeStream();
  EXPECT_OK(cuStreamQuery(stream));
  Spin(10 * kLongMs, stream);
  EXPECT_EQ(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
  ASSERT_OK(cuStreamSynchronize(stream));
  EXPECT_OK(cuStreamQuery(stream));
}

CONTRACT(Stream, QueryingAloneReachesCompletion, "cuda.h:15766 cuStreamQuery: programs poll") {
  UseDevice();
  const CUstream stream = MakeStream();
  Spin(kLongMs, stream);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  CUresult state = CUDA_ERROR_NOT_READY;
  while (state == CUDA_ERROR_NOT_READY && std::chrono::steady_clock::now() < deadline)
    state = cuStreamQuery(stream);
  EXPECT_OK(state);
}

CONTRACT(Stream, DestroyLetsItsWorkFinish, "cuda.h:15825 cuStreamDestroy") {
  UseDevice();
  const CUstream stream = MakeStream();
  const CUdeviceptr word = Allocate(4);
  Spin(kLongMs, stream, word, 14);
  ASSERT_OK(cuStreamDestroy(stream));
  ASSERT_OK(cuCtxSynchronize());
  EXPECT_EQ(ReadWord(word), 14u);
}

CONTRACT(Stream, ContextSynchronizeWaitsForAllStreams, "cuda.h:6621 cuCtxSynchronize") {
  UseDevice();
  const CUstream first = MakeStream(), second = MakeStream(CU_STREAM_DEFAULT);
  const CUdeviceptr words = Allocate(8);
  Spin(kLongMs, first, words, 1);
  Spin(kLongMs, second, words + 4, 2);
  ASSERT_OK(cuCtxSynchronize());
  EXPECT_OK(cuStreamQuery(first));
  EXPECT_OK(cuStreamQuery(second));
  EXPECT_TRUE((ReadWords(words, 2) == std::vector<std::uint32_t>{1, 2}));
}

CONTRACT(Stream, SynchronousCopyWaitsForBlockingWork,
         "CUDA driver API, API synchronization behavior") {
  UseDevice();
  const CUstream blocking = MakeStream(CU_STREAM_DEFAULT);
  const CUdeviceptr word = Allocate(4);
  Spin(kLongMs, blocking, word, 15);
  EXPECT_EQ(ReadWord(word), 15u);
}

CONTRACT_ALONE(Stream, FreeOfMemoryInUseIsObserved,
               "cuda.h:8708 cuMemFree: may perform implicit synchronization") {
  UseDevice();
  const CUstream stream = MakeStream();
  const CUdeviceptr in_use = Allocate(64 * kMiB);
  Fill(in_use, 0, 1);
  ASSERT_OK(cuCtxSynchronize());
  Spin(4 * kLongMs, stream, in_use, 1);
  OBSERVE("seconds_in_free_with_240_ms_of_work",
          SecondsOf([](CUdeviceptr address) { EXPECT_OK(cuMemFree(address)); }, in_use));
  OBSERVE("stream_after_free", cuStreamQuery(stream));
  EXPECT_OK(cuCtxSynchronize());
}

CONTRACT(Stream, WrittenValuesKeepStreamOrder, "cuda.h:17008 cuStreamWriteValue32") {
  UseDevice();
  const CUstream stream = MakeStream();
  const CUdeviceptr word = Allocate(8);
  Spin(kLongMs, stream, word, 1);
  ASSERT_OK(cuStreamWriteValue32(stream, word, 50, CU_STREAM_WRITE_VALUE_DEFAULT));
  Launch("add", 1, 1, stream, word, std::uint32_t{3}, std::uint64_t{1});
  ASSERT_OK(cuStreamSynchronize(stream));
  EXPECT_EQ(ReadWord(word), 53u);
}

CONTRACT(Stream, WaitedValueHoldsWorkBack, "cuda.h:16936 cuStreamWaitValue32") {
  UseDevice();
  const CUstream waiter = MakeStream(), writer = MakeStream();
  const CUdeviceptr flag = Allocate(8), word = Allocate(4), copy = Allocate(4);
  ASSERT_OK(cuMemsetD32(flag, 0, 2));
  ASSERT_OK(cuMemsetD32(word, 0, 1));
  // The first use of a kernel may wait for the whole context (CUDA C++ Programming Guide, Lazy
  // Loading): not behind the held stream.
  Launch("copy", 1, 1, waiter, copy, word, std::uint64_t{1});
  Spin(1, writer, word, 0);
  ASSERT_OK(cuCtxSynchronize());
  ASSERT_OK(cuStreamWaitValue32(waiter, flag, 5, CU_STREAM_WAIT_VALUE_EQ));
  Launch("copy", 1, 1, waiter, copy, word, std::uint64_t{1});
  Spin(kLongMs, writer, word, 16);
  ASSERT_OK(cuStreamWriteValue32(writer, flag, 5, CU_STREAM_WRITE_VALUE_DEFAULT));
  ASSERT_OK(cuStreamSynchronize(waiter));
  EXPECT_EQ(ReadWord(copy), 16u);
}

}  // namespace spillway::contract
