// A job over the simulated driver that drops recomputable outputs as soon as their call has ended.
#pragma once

#include <algorithm>
#include <functional>
#include <thread>
#include <vector>

#include "interposer/ledger/tensor_maps.h"
#include "tests/unit/interposer/simulated_job.h"

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

// derive(int* y, const int* x, const int* added, int* clobbered): y = 3 x + added[0]; clobbered[0]
// grows.
void DeriveBody(const LaunchShape&, void* const* arguments) {
  auto* const y = *static_cast<int* const*>(arguments[0]);
  const auto* const x = *static_cast<const int* const*>(arguments[1]);
  const auto* const added = *static_cast<const int* const*>(arguments[2]);
  auto* const clobbered = *static_cast<int* const*>(arguments[3]);
  for (int i = 0; i < kWords; ++i) y[i] = 3 * x[i] + (added ? added[0] : 0);
  if (clobbered) ++clobbered[0];
}
// count(int* y, const int* x): differs in each run.
int times_counted = 0;
void CountBody(const LaunchShape&, void* const* arguments) {
  auto* const y = *static_cast<int* const*>(arguments[0]);
  const auto* const x = *static_cast<const int* const*>(arguments[1]);
  ++times_counted;
  for (int i = 0; i < kWords; ++i) y[i] = x[i] + times_counted;
}
// count_last(int* y, const int* x): differs in one word in each run.
void CountLastBody(const LaunchShape&, void* const* arguments) {
  auto* const y = *static_cast<int* const*>(arguments[0]);
  std::copy_n(*static_cast<const int* const*>(arguments[1]), kWords, y);
  y[kWords - 1] = ++times_counted;
}
// show(int* y, const int* x, const int* added, int* clobbered): like derive; meanwhile a test
// observes.
std::function<void()> while_it_runs;
void ShowBody(const LaunchShape& shape, void* const* arguments) {
  DeriveBody(shape, arguments);
  while_it_runs();
}
void NothingBody(const LaunchShape&, void* const*) {}
KernelCost OneMillisecond(const LaunchShape&, void* const*) { return {0, 2'000'000'000}; }

// derive_by(int* y, const int* x, unsigned long number, int* clobbered): y = 3 x + number % 1000;
// clobbered[0] grows.
void DeriveByBody(const LaunchShape&, void* const* arguments) {
  auto* const y = *static_cast<int* const*>(arguments[0]);
  const auto* const x = *static_cast<const int* const*>(arguments[1]);
  const auto number = *static_cast<const unsigned long*>(arguments[2]);
  ++**static_cast<int* const*>(arguments[3]);
  for (int i = 0; i < kWords; ++i) y[i] = 3 * x[i] + static_cast<int>(number % 1000);
}
// derive_mapped(int* y, const int* x, CUtensorMap added): like derive.
void DeriveMappedBody(const LaunchShape&, void* const* arguments) {
  auto* const y = *static_cast<int* const*>(arguments[0]);
  const auto* const x = *static_cast<const int* const*>(arguments[1]);
  const auto* const added = reinterpret_cast<const int*>(TensorMapAddress(arguments[2]));
  for (int i = 0; i < kWords; ++i) y[i] = 3 * x[i] + added[0];
}
constexpr KernelParameter kPointers[] = {{0, 8}, {8, 8}, {16, 8}, {24, 8}};
constexpr KernelParameter kWithMap[] = {{0, 8}, {8, 8}, {64, 128}};
constexpr KernelEntry kKernels[] = {{"derive", DeriveBody, nullptr, 4, kPointers},
                                    {"count", CountBody, nullptr, 2, kPointers},
                                    {"derive_by", DeriveByBody, nullptr, 4, kPointers},
                                    {"wait", NothingBody, OneMillisecond, 0, nullptr},
                                    {"count_last", CountLastBody, nullptr, 2, kPointers},
                                    {"show", ShowBody, nullptr, 4, kPointers},
                                    {"derive_mapped", DeriveMappedBody, nullptr, 3, kWithMap}};
constexpr Image kImage = {{'S', 'P', 'I', 'L', 'L', 'S', 'I', 'M'}, 1, 7, kKernels, 0, nullptr};

class RecomputeTest : public SimulatedJobTest {
 protected:
  void SetUp() override {
    SetUpDevice(&kImage);
    ASSERT_EQ(Driver().cuStreamCreate(&other_stream_, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    derive_ = Function("derive");
    MakeJob(ParkChoice::kOff);
  }
  void MakeJob(ParkChoice choice,
               size_t budget_bytes = (kBuffers + 1) * kBufferBytes + 2 * kGranuleBytes,
               size_t host_limit_bytes = size_t{1} << 30) {
    job_ = std::make_unique<JobMemory>(context_, 0, budget_bytes, host_limit_bytes, choice,
                                       LearnChoice::kOff);
    job_->proofs().DropEagerly();
    for (CUdeviceptr& buffer : buffers_)
      ASSERT_EQ(job_->allocations().Allocate(kBufferBytes, &buffer), CUDA_SUCCESS);
    ASSERT_EQ(job_->allocations().Allocate(kSmallWords * 4, &added_), CUDA_SUCCESS);
    ASSERT_EQ(job_->allocations().Allocate(kSmallWords * 4, &clobbered_), CUDA_SUCCESS);
    Set(buffers_[0], 5, kWords);
    Set(added_, 2, kSmallWords);
    Set(clobbered_, 0, kSmallWords);
  }
  void TearDown() override {
    Driver().cuCtxSynchronize();
    Driver().cuStreamDestroy_v2(other_stream_);
    SimulatedJobTest::TearDown();
  }

  // A library call that makes one launch.
  void Launch(CUfunction function, size_t y, size_t x, CUdeviceptr added = 0,
              CUdeviceptr clobbered = 0, int works = 1) {
    Claims claims;
    claims.Overwrites(buffers_[y], kBufferBytes);
    claims.Reads(buffers_[x], kBufferBytes);
    const bool is_mapped = function == Function("derive_mapped");
    if ((function == derive_ || is_mapped) && is_claimed_) claims.Reads(added, kSmallWords * 4);
    if (claimed_besides_) claims.Reads(claimed_besides_, 4);
    claims.Clobbers(clobbered, clobbered_bytes_);
    claims.MarkRepeatable();
    CUdeviceptr words[] = {buffers_[y], buffers_[x], added, clobbered};
    void* parameters[] = {&words[0], &words[1], is_mapped ? static_cast<void*>(&map_) : &words[2],
                          &words[3]};
    const std::uint32_t sizes[] = {8, 8, is_mapped ? 128u : 8u, 8};
    const bool counts = function == Function("count") || function == Function("count_last");
    const LaunchCall launch{.function = function,
                            .dimensions = {1, 1, 1, 1, 1, 1, shared_bytes_},
                            .parameters = parameters,
                            .parameter_bytes = std::span(sizes, counts      ? 2
                                                                : is_mapped ? 3
                                                                            : 4)};
    LibraryCall call{&claims};
    TouchSet set;
    set.claims = &claims;
    set.launch = &launch;
    set.call = &call;
    Addresses addresses = ManagedAmong(words);
    ASSERT_EQ(job_->calls().Begin(&addresses, {stream_, false}, Effect::kLaunches, &set),
              CUDA_SUCCESS);
    call.works = works;
    claims.NoteNamed({addresses.begin(), addresses.size()});
    ASSERT_EQ(Driver().cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, shared_bytes_, stream_,
                                      parameters, nullptr),
              CUDA_SUCCESS);
    job_->calls().End(&set, Effect::kLaunches);
    if (call.job) job_->proofs().CallEnded(call);
    if (is_free_memory_used_) OverwriteFreeMemory();
  }
  // Overwrites free memory, so dropped bytes cannot survive by chance.
  void OverwriteFreeMemory() {
    CUdeviceptr taken[2] = {};
    for (CUdeviceptr& each : taken) {
      ASSERT_EQ(job_->allocations().Allocate(kBufferBytes, &each), CUDA_SUCCESS);
      Set(each, 77, kWords, other_stream_);
    }
    Driver().cuStreamSynchronize(other_stream_);
    // Freed like pool memory: other streams may wait for a later action of the test, and a plain
    // free would wait behind them.
    for (const CUdeviceptr each : taken) ASSERT_TRUE(job_->allocations().Free(each, true));
  }
  void Derive(size_t y, size_t x) { Launch(derive_, y, x); }

  void Set(CUdeviceptr at, unsigned int word, size_t words, CUstream stream = nullptr) {
    SetWords(at, word, words, stream ? stream : stream_);
  }
  std::vector<int> Read(CUdeviceptr at, size_t words = kWords, CUstream stream = nullptr) {
    return ReadWords(at, words, stream ? stream : stream_);
  }
  void ExpectAll(size_t buffer, int value, CUstream stream = nullptr) {
    const std::vector<int> values = Read(buffers_[buffer], kWords, stream);
    EXPECT_EQ(std::count(values.begin(), values.end(), value), kWords)
        << "buffer " << buffer << " begins with " << values[0];
  }
  void Busy(CUstream stream) {
    const CUfunction wait = Function("wait");
    for (int i = 0; i < 20; ++i)
      ASSERT_EQ(Driver().cuLaunchKernel(wait, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr),
                CUDA_SUCCESS);
  }

  // The stream waits for the host, and the job does not learn of it.
  volatile std::uint32_t* WaitWithoutHook(CUstream stream) {
    void* word = nullptr;
    EXPECT_EQ(Driver().cuMemHostAlloc(&word, 4096, 0), CUDA_SUCCESS);
    *static_cast<std::uint32_t*>(word) = 0;
    EXPECT_EQ(OfDriver<decltype(cuStreamWaitValue32)>("cuStreamWaitValue32_v2")(
                  stream, reinterpret_cast<CUdeviceptr>(word), 1, CU_STREAM_WAIT_VALUE_GEQ),
              CUDA_SUCCESS);
    return static_cast<std::uint32_t*>(word);
  }
  static void EndWait(volatile std::uint32_t* word, CUstream waiting) {
    *word = 1;
    EXPECT_EQ(Driver().cuStreamSynchronize(waiting), CUDA_SUCCESS);
  }

  CUfunction derive_ = nullptr;
  CUstream other_stream_ = nullptr;
  CUdeviceptr buffers_[kBuffers] = {};
  CUdeviceptr added_ = 0, clobbered_ = 0;
  size_t clobbered_bytes_ = kSmallWords * 4;
  unsigned int shared_bytes_ = 0;
  CUtensorMap map_{};
  bool is_claimed_ = true;           // `added` is claimed
  bool is_free_memory_used_ = true;  // free memory is overwritten behind each launch
  CUdeviceptr claimed_besides_ = 0;
};

}  // namespace
}  // namespace spillway::interposer
