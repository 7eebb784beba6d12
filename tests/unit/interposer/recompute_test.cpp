// What is dropped because it can be made again, over the simulated driver: whoever needs the bytes finds them, whatever became of
// what they were made from.
//
// All outputs that can be made again are dropped as soon as their call has ended.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "interposer/driver/driver_api.h"
#include "interposer/execute/job_memory.h"
#include "simulator/kernels/image.h"

namespace spillway::interposer {
namespace {

using driver::Driver;
using simulator::Image;
using simulator::KernelCost;
using simulator::KernelEntry;
using simulator::KernelParameter;
using simulator::LaunchShape;

constexpr size_t kBuffers = 5;
constexpr size_t kBufferBytes = 4 * kMiB;
constexpr int kWords = kBufferBytes / sizeof(int);
constexpr size_t kSmallWords = 256;

// derive(int* y, const int* x, const int* added, int* aside): y = 3 x + added[0]; aside[0] grows.
void DeriveBody(const LaunchShape&, void* const* arguments) {
  auto* const y = *static_cast<int* const*>(arguments[0]);
  const auto* const x = *static_cast<const int* const*>(arguments[1]);
  const auto* const added = *static_cast<const int* const*>(arguments[2]);
  auto* const aside = *static_cast<int* const*>(arguments[3]);
  for (int i = 0; i < kWords; ++i) y[i] = 3 * x[i] + (added ? added[0] : 0);
  if (aside) ++aside[0];
}
// count(int* y, const int* x): not the same twice.
int times_counted = 0;
void CountBody(const LaunchShape&, void* const* arguments) {
  auto* const y = *static_cast<int* const*>(arguments[0]);
  const auto* const x = *static_cast<const int* const*>(arguments[1]);
  ++times_counted;
  for (int i = 0; i < kWords; ++i) y[i] = x[i] + times_counted;
}
// count_last(int* y, const int* x): not the same twice in one word.
void CountLastBody(const LaunchShape&, void* const* arguments) {
  auto* const y = *static_cast<int* const*>(arguments[0]);
  std::copy_n(*static_cast<const int* const*>(arguments[1]), kWords, y);
  y[kWords - 1] = ++times_counted;
}
void NothingBody(const LaunchShape&, void* const*) {}
KernelCost OneMillisecond(const LaunchShape&, void* const*) { return {0, 2'000'000'000}; }

// derive_by(int* y, const int* x, unsigned long number, int* aside): y = 3 x + number % 1000; aside[0] grows.
void DeriveByBody(const LaunchShape&, void* const* arguments) {
  auto* const y = *static_cast<int* const*>(arguments[0]);
  const auto* const x = *static_cast<const int* const*>(arguments[1]);
  const auto number = *static_cast<const unsigned long*>(arguments[2]);
  ++**static_cast<int* const*>(arguments[3]);
  for (int i = 0; i < kWords; ++i) y[i] = 3 * x[i] + static_cast<int>(number % 1000);
}
constexpr KernelParameter kPointers[] = {{0, 8}, {8, 8}, {16, 8}, {24, 8}};
constexpr KernelEntry kKernels[] = {{"derive", DeriveBody, nullptr, 4, kPointers},
                                    {"count", CountBody, nullptr, 2, kPointers},
                                    {"derive_by", DeriveByBody, nullptr, 4, kPointers},
                                    {"wait", NothingBody, OneMillisecond, 0, nullptr},
                                    {"count_last", CountLastBody, nullptr, 2, kPointers}};
constexpr Image kImage = {{'S', 'P', 'I', 'L', 'L', 'S', 'I', 'M'}, 1, 5, kKernels, 0, nullptr};

// What the interposer does not call itself.
template <class F>
F* OfDriver(const char* name) {
  void* const driver = dlopen(getenv("SPILLWAY_DRIVER"), RTLD_NOW | RTLD_NOLOAD);
  return reinterpret_cast<F*>(dlsym(driver, name));
}

class RecomputeTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(Driver().cuInit(0), CUDA_SUCCESS) << "SPILLWAY_DRIVER names the simulated driver";
    ASSERT_EQ(Driver().cuDevicePrimaryCtxRetain(&context_, 0), CUDA_SUCCESS);
    ASSERT_EQ(Driver().cuCtxSetCurrent(context_), CUDA_SUCCESS);
    ASSERT_EQ(Driver().cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    ASSERT_EQ(Driver().cuStreamCreate(&other_stream_, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    ASSERT_EQ(OfDriver<decltype(cuModuleLoadData)>("cuModuleLoadData")(&module_, &kImage), CUDA_SUCCESS);
    derive_ = Function("derive");
    MakeJob(ParkChoice::kOff);
  }
  void MakeJob(ParkChoice choice, size_t budget_bytes = (kBuffers + 1) * kBufferBytes + 2 * kGranuleBytes) {
    job_ = std::make_unique<JobMemory>(context_, 0, budget_bytes, size_t{1} << 30, choice, LearnChoice::kOff);
    job_->DropEagerly();
    for (CUdeviceptr& buffer : buffers_) ASSERT_EQ(job_->Allocate(kBufferBytes, &buffer), CUDA_SUCCESS);
    ASSERT_EQ(job_->Allocate(kSmallWords * 4, &added_), CUDA_SUCCESS);
    ASSERT_EQ(job_->Allocate(kSmallWords * 4, &aside_), CUDA_SUCCESS);
    Set(buffers_[0], 5, kWords);
    Set(added_, 2, kSmallWords);
    Set(aside_, 0, kSmallWords);
  }
  void TearDown() override {
    Driver().cuCtxSynchronize();
    job_->ReleaseAll();
    Driver().cuModuleUnload(module_);
    Driver().cuStreamDestroy_v2(stream_);
    Driver().cuStreamDestroy_v2(other_stream_);
    Driver().cuDevicePrimaryCtxRelease_v2(0);
  }
  CUfunction Function(const char* name) {
    CUfunction function = nullptr;
    EXPECT_EQ(OfDriver<decltype(cuModuleGetFunction)>("cuModuleGetFunction")(&function, module_, name),
              CUDA_SUCCESS);
    return function;
  }

  // A call of a library that makes one launch.
  void Launch(CUfunction function, size_t y, size_t x, CUdeviceptr added = 0, CUdeviceptr aside = 0,
              int works = 1) {
    Claims claims;
    claims.Overwrites(buffers_[y], kBufferBytes);
    claims.Reads(buffers_[x], kBufferBytes);
    if (function == derive_) claims.Reads(added, kSmallWords * 4);
    claims.WritesAside(aside, aside_bytes_);
    claims.IsRepeatable();
    CUdeviceptr words[] = {buffers_[y], buffers_[x], added, aside};
    void* parameters[] = {&words[0], &words[1], &words[2], &words[3]};
    const std::uint32_t sizes[] = {8, 8, 8, 8};
    const bool counts = function == Function("count") || function == Function("count_last");
    const LaunchCall launch{.function = function,
                            .dimensions = {1, 1, 1, 1, 1, 1, shared_bytes_},
                            .parameters = parameters,
                            .parameter_bytes = std::span(sizes, counts ? 2 : 4)};
    LibraryCall call{&claims};
    TouchSet set;
    set.claims = &claims;
    set.launch = &launch;
    set.call = &call;
    Addresses addresses;
    for (const CUdeviceptr word : words) {
      if (job_->MightBeManaged(word)) addresses.push_back(word);
    }
    ASSERT_EQ(job_->Begin(addresses, {stream_, false}, Effect::kLaunches, &set), CUDA_SUCCESS);
    call.works = works;
    claims.NoteNamed({addresses.begin(), addresses.size()});
    ASSERT_EQ(
        Driver().cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, shared_bytes_, stream_, parameters, nullptr),
        CUDA_SUCCESS);
    job_->End(&set, Effect::kLaunches);
    if (call.job) job_->CallEnded(call);
    UseWhatIsFree();
  }
  // What was dropped must not be found where it was.
  void UseWhatIsFree() {
    CUdeviceptr taken[2] = {};
    for (CUdeviceptr& each : taken) {
      ASSERT_EQ(job_->Allocate(kBufferBytes, &each), CUDA_SUCCESS);
      Set(each, 77, kWords, other_stream_);
    }
    Driver().cuStreamSynchronize(other_stream_);
    for (const CUdeviceptr each : taken) ASSERT_TRUE(job_->Free(each));
  }
  void Derive(size_t y, size_t x) { Launch(derive_, y, x); }

  // A call that may write the memory, and fills it.
  void Set(CUdeviceptr at, unsigned int word, size_t words, CUstream stream = nullptr) {
    stream = stream ? stream : stream_;
    Addresses addresses;
    addresses.push_back(at);
    TouchSet set;
    ASSERT_EQ(job_->Begin(addresses, {stream, false}, Effect::kMayWrite, &set), CUDA_SUCCESS);
    Driver().cuMemsetD32Async(at, word, words, stream);
    job_->End(&set, Effect::kMayWrite);
  }
  std::vector<int> Read(CUdeviceptr at, size_t words = kWords, CUstream stream = nullptr) {
    stream = stream ? stream : stream_;
    std::vector<int> values(words);
    Addresses addresses;
    addresses.push_back(at);
    TouchSet set;
    EXPECT_EQ(job_->Begin(addresses, {stream, false}, Effect::kReads, &set), CUDA_SUCCESS);
    Driver().cuMemcpyDtoHAsync_v2(values.data(), at, words * 4, stream);
    job_->End(&set, Effect::kReads);
    Driver().cuStreamSynchronize(stream);
    return values;
  }
  void ExpectAll(size_t buffer, int value, CUstream stream = nullptr) {
    const std::vector<int> values = Read(buffers_[buffer], kWords, stream);
    EXPECT_EQ(std::count(values.begin(), values.end(), value), kWords)
        << "buffer " << buffer << " begins with " << values[0];
  }
  void Busy(CUstream stream) {
    const CUfunction wait = Function("wait");
    for (int i = 0; i < 20; ++i)
      ASSERT_EQ(Driver().cuLaunchKernel(wait, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr), CUDA_SUCCESS);
  }
  Counters Count() { return job_->Read().counters; }

  CUcontext context_ = nullptr;
  CUmodule module_ = nullptr;
  CUfunction derive_ = nullptr;
  CUstream stream_ = nullptr, other_stream_ = nullptr;
  std::unique_ptr<JobMemory> job_;
  CUdeviceptr buffers_[kBuffers] = {};
  CUdeviceptr added_ = 0, aside_ = 0;
  size_t aside_bytes_ = kSmallWords * 4;
  unsigned int shared_bytes_ = 0;
};

TEST_F(RecomputeTest, AnOutputIsMadeAgainWhenItIsRead) {
  Derive(1, 0);
  ASSERT_EQ(Count().recipe_drops, 1u);
  EXPECT_EQ(Count().offloaded_bytes, 0u);

  ExpectAll(1, 15);

  EXPECT_EQ(Count().recomputes, 1u);
  EXPECT_EQ(Count().recomputed_bytes, kBufferBytes);
  ExpectAll(1, 15);
  EXPECT_EQ(Count().recomputes, 1u) << "it is there";
}

TEST_F(RecomputeTest, WhatItWasMadeFromMayBeOverwritten) {
  Derive(1, 0);
  ASSERT_EQ(Count().recipe_drops, 1u);
  Set(buffers_[0], 7, kWords);
  ExpectAll(0, 7);
  ExpectAll(1, 15);
}

TEST_F(RecomputeTest, WhatItWasMadeFromMayBeOverwrittenInPart) {
  Derive(1, 0);
  Set(buffers_[0] + kBufferBytes / 2, 7, 16);
  ExpectAll(1, 15);
}

TEST_F(RecomputeTest, WhatItWasMadeFromMayBeFreed) {
  Derive(1, 0);
  ASSERT_EQ(Count().recipe_drops, 1u);
  ASSERT_TRUE(job_->Free(buffers_[0]));
  EXPECT_EQ(Count().recomputes, 1u);
  CUdeviceptr next = 0;
  ASSERT_EQ(job_->Allocate(kBufferBytes, &next), CUDA_SUCCESS);
  Set(next, 9, kWords);
  ExpectAll(1, 15);
}

TEST_F(RecomputeTest, WhatItWasMadeFromMayBeFreedInAStreamsOrder) {
  Derive(1, 0);
  ASSERT_TRUE(job_->FreeAsync(buffers_[0], {other_stream_, false}));
  EXPECT_EQ(Count().recomputes, 1u);
  CUdeviceptr next = 0;
  ASSERT_EQ(job_->Allocate(kBufferBytes, &next), CUDA_SUCCESS);
  Set(next, 9, kWords, other_stream_);
  ExpectAll(1, 15);
}

TEST_F(RecomputeTest, SmallInputsCountToo) {
  Launch(derive_, 1, 0, added_);
  ASSERT_EQ(Count().recipe_drops, 1u);
  Set(added_, 100, kSmallWords);
  ExpectAll(1, 17);
}

TEST_F(RecomputeTest, SmallInputsMayBeFreed) {
  Launch(derive_, 1, 0, added_);
  ASSERT_TRUE(job_->Free(added_));
  EXPECT_EQ(Count().recomputes, 1u);
  CUdeviceptr next = 0;
  ASSERT_EQ(job_->Allocate(kSmallWords * 4, &next), CUDA_SUCCESS);
  Set(next, 100, kSmallWords);
  ExpectAll(1, 17);
}

TEST_F(RecomputeTest, WhatIsWrittenAsideIsWrittenOnce) {
  // Given a job that has memory for what is written aside since the first call that needs some
  Launch(derive_, 1, 0, added_, aside_);
  ASSERT_EQ(Count().recipe_drops, 0u);

  Launch(derive_, 1, 0, added_, aside_);
  ASSERT_EQ(Count().recipe_drops, 1u);
  ExpectAll(1, 17);

  EXPECT_EQ(Count().recomputes, 1u);
  EXPECT_EQ(Read(aside_, 1)[0], 2);
}

// As a convolution's often is: a call's workspace lies in a slab, and is no larger than that allows.
TEST_F(RecomputeTest, AsideThereIsRoomForTheLargestSmallAllocation) {
  aside_bytes_ = kSmallBytes - 512;
  ASSERT_EQ(job_->Allocate(aside_bytes_, &aside_), CUDA_SUCCESS);
  Launch(derive_, 1, 0, added_, aside_);
  Launch(derive_, 1, 0, added_, aside_);
  ASSERT_EQ(Count().recipe_drops, 1u);
  ASSERT_TRUE(job_->Free(aside_));

  ExpectAll(1, 17);

  EXPECT_EQ(Count().recomputes, 1u);
}

TEST_F(RecomputeTest, ANumberThatLooksLikeAnAddressAsideStaysWhatItIs) {
  // Given an operation that was proved with a number that leads nowhere
  const CUfunction derive_by = Function("derive_by");
  Launch(derive_by, 1, 0, 4, aside_);
  Launch(derive_by, 1, 0, 4, aside_);
  ASSERT_EQ(Count().recipe_drops, 1u);

  // When the same operation has one that could be an address in what it writes aside
  const CUdeviceptr number = aside_ + 16;
  Launch(derive_by, 2, 0, number, aside_);

  ExpectAll(2, 15 + static_cast<int>(number % 1000));
  ExpectAll(1, 19);
}

TEST_F(RecomputeTest, AChainIsMadeFromItsBeginning) {
  // Given three outputs, each made from the one before, none of which is anywhere
  Derive(1, 0);
  Derive(2, 1);
  Derive(3, 2);
  const std::uint64_t before = Count().recomputes;

  ExpectAll(3, 5 * 27);

  EXPECT_EQ(Count().recomputes - before, 3u);
  Set(buffers_[0], 7, kWords);
  ExpectAll(1, 15);
  ExpectAll(2, 45);
}

TEST_F(RecomputeTest, FreedOutputsLetGoOfTheirInputs) {
  Derive(1, 0);
  ASSERT_TRUE(job_->Free(buffers_[1]));
  Set(buffers_[0], 7, kWords);
  EXPECT_EQ(Count().recomputes, 0u);
  ASSERT_EQ(job_->Allocate(kBufferBytes, &buffers_[1]), CUDA_SUCCESS);
  Set(buffers_[1], 8, kWords);
  ExpectAll(1, 8);
}

TEST_F(RecomputeTest, WhatIsOverwrittenWhileItIsNowhereIsNew) {
  Derive(1, 0);
  Set(buffers_[1], 8, kWords);
  Derive(2, 0);
  Set(buffers_[0], 7, kWords);
  ExpectAll(1, 8);
  ExpectAll(2, 15);
}

TEST_F(RecomputeTest, WhatWasMadeAgainIsNotDroppedByARecipeThatIsOver) {
  Derive(1, 0);
  Set(buffers_[0], 7, kWords);
  Derive(2, 0);
  ExpectAll(1, 15);
  ExpectAll(2, 21);
}

TEST_F(RecomputeTest, AnotherStreamFindsTheBytes) {
  Busy(stream_);
  Derive(1, 0);
  ExpectAll(1, 15, other_stream_);
}

TEST_F(RecomputeTest, AWriterOnAnotherStreamWaitsForWhatIsMadeAgain) {
  // Given an output that is made again behind much other work
  Derive(1, 0);
  ASSERT_EQ(Count().recipe_drops, 1u);
  Busy(stream_);
  Addresses addresses;
  addresses.push_back(buffers_[1]);
  TouchSet set;
  ASSERT_EQ(job_->Begin(addresses, {stream_, false}, Effect::kReads, &set), CUDA_SUCCESS);
  job_->End(&set, Effect::kReads);
  ASSERT_EQ(Count().recomputes, 1u);

  Set(buffers_[0], 7, kWords, other_stream_);

  ExpectAll(1, 15);
}

TEST_F(RecomputeTest, AReaderOnAnotherStreamWaitsForWhatIsMadeAgain) {
  // Given an output that is made again behind much other work
  Derive(1, 0);
  Busy(stream_);
  Addresses addresses;
  addresses.push_back(buffers_[1]);
  TouchSet set;
  ASSERT_EQ(job_->Begin(addresses, {stream_, false}, Effect::kReads, &set), CUDA_SUCCESS);
  job_->End(&set, Effect::kReads);
  ASSERT_EQ(Count().recomputes, 1u);

  // When another stream copies it within the device
  addresses.push_back(buffers_[3]);
  TouchSet copies;
  ASSERT_EQ(job_->Begin(addresses, {other_stream_, false}, Effect::kMayWrite, &copies), CUDA_SUCCESS);
  Driver().cuMemcpyDtoDAsync_v2(buffers_[3], buffers_[1], kBufferBytes, other_stream_);
  job_->End(&copies, Effect::kMayWrite);

  ExpectAll(3, 15, other_stream_);
}

TEST_F(RecomputeTest, WhatIsNotTheSameTwiceIsNotDroppedAndStays) {
  const CUfunction count = Function("count");
  times_counted = 0;
  Launch(count, 1, 0);
  EXPECT_EQ(Count().refuted_operations, 1u);
  ExpectAll(1, 6);
  Launch(count, 1, 0);
  EXPECT_EQ(Count().recipe_drops, 0u);
  ExpectAll(1, 5 + 3);  // it has run for the first call and for its proof
}

// Outputs are compared, and put back, by pieces.
TEST_F(RecomputeTest, WhatDiffersInItsLastWordIsNotTheSame) {
  times_counted = 0;
  Launch(Function("count_last"), 1, 0);

  EXPECT_EQ(Count().refuted_operations, 1u);
  EXPECT_EQ(times_counted, 2);
  const std::vector<int> values = Read(buffers_[1]);
  EXPECT_EQ(values[0], 5);
  EXPECT_EQ(values.back(), 1);
}

TEST_F(RecomputeTest, AProofNeedsPinnedMemoryForAPieceOnly) {
  Derive(1, 0);

  EXPECT_EQ(Count().proved_operations, 1u);
  EXPECT_LT(job_->Read().pinned_peak_bytes, kBufferBytes);
}

TEST_F(RecomputeTest, ACallThatDoesMoreThanOneLaunchIsNotMadeAgain) {
  Launch(derive_, 1, 0, 0, 0, 2);
  EXPECT_EQ(Count().recipe_drops, 0u);
  ExpectAll(1, 15);
}

TEST_F(RecomputeTest, InputsThatAreAwayAreBroughtBackForIt) {
  // Given a budget for three
  Derive(1, 0);
  ASSERT_EQ(Count().recipe_drops, 1u);
  job_->SetBudget(3 * kBufferBytes);
  for (const size_t i : {2, 3, 4}) Set(buffers_[i], static_cast<unsigned int>(i), kWords);
  Driver().cuCtxSynchronize();
  ASSERT_TRUE(job_->IsAway(buffers_[0]));

  ExpectAll(1, 15);

  ExpectAll(0, 5);
  for (const size_t i : {2, 3, 4}) ExpectAll(i, static_cast<int>(i));
}

TEST_F(RecomputeTest, WithoutRoomForItTheCallIsRefusedAndTheBytesComeLater) {
  Derive(1, 0);
  ASSERT_EQ(Count().recipe_drops, 1u);
  job_->SetBudget(kBufferBytes + kGranuleBytes);  // and a slab
  Addresses addresses;
  addresses.push_back(buffers_[0]);
  TouchSet set;
  EXPECT_EQ(job_->Begin(addresses, {stream_, false}, Effect::kMayWrite, &set), CUDA_ERROR_OUT_OF_MEMORY);
  ASSERT_TRUE(job_->Free(buffers_[0])) << "it stays until it is not needed any more";

  job_->SetBudget(3 * kBufferBytes);

  ExpectAll(1, 15);
}

// Libraries set a kernel's largest shared memory before each launch, to what that launch needs.
TEST_F(RecomputeTest, ALaterLaunchMayHaveNeededLessSharedMemory) {
  const auto allow = [this](int bytes) {
    ASSERT_EQ(OfDriver<decltype(cuFuncSetAttribute)>("cuFuncSetAttribute")(
                  derive_, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes),
              CUDA_SUCCESS);
  };
  shared_bytes_ = 96 << 10;
  allow(96 << 10);
  Derive(1, 0);
  ASSERT_EQ(Count().recipe_drops, 1u);
  allow(64 << 10);
  ExpectAll(1, 15);
}

TEST_F(RecomputeTest, BeforeKernelsGoAllIsMade) {
  Derive(1, 0);
  Derive(2, 1);
  const std::uint64_t before = Count().recomputes;
  EXPECT_TRUE(job_->EndRecipes());
  EXPECT_EQ(Count().recomputes - before, 2u);
  Set(buffers_[0], 7, kWords);
  EXPECT_EQ(Count().recomputes - before, 2u);
  ExpectAll(1, 15);
  ExpectAll(2, 45);
}

TEST_F(RecomputeTest, WhileAStreamCapturesNothingIsDropped) {
  Derive(1, 0);
  JobMemory::CaptureBegan();
  ASSERT_TRUE(job_->EndRecipes());
  Derive(2, 0);
  EXPECT_EQ(Count().recipe_drops, 1u);
  JobMemory::CaptureEnded();
  ExpectAll(1, 15);
  ExpectAll(2, 15);
}

TEST_F(RecomputeTest, ThreadsThatReadAndWriteFindTheirBytes) {
  for (int round = 0; round < 20; ++round) {
    Set(buffers_[0], static_cast<unsigned int>(round), kWords);
    Driver().cuStreamSynchronize(stream_);
    Derive(1, 0);
    Driver().cuStreamSynchronize(stream_);
    std::thread writer([&] {
      Driver().cuCtxSetCurrent(context_);
      Set(buffers_[0], 1000, kWords, other_stream_);
    });
    ExpectAll(1, 3 * round);
    writer.join();
    ExpectAll(1, 3 * round);
    ExpectAll(0, 1000, other_stream_);
  }
}

}  // namespace
}  // namespace spillway::interposer
