// A recorded job over the simulated driver, whose program launches undocumented kernels.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "interposer/execute/call_recorder.h"
#include "interposer/ledger/libraries.h"
#include "scheduler/learn/job_event.h"
#include "tests/unit/interposer/simulated_job.h"

namespace spillway::interposer {
namespace {

using driver::Driver;
using simulator::GlobalEntry;
using simulator::Image;
using simulator::KernelCost;
using simulator::KernelEntry;
using simulator::KernelParameter;
using simulator::LaunchShape;

constexpr size_t kBytes = 4 * kMiB;
constexpr size_t kWords = kBytes / sizeof(int);
constexpr size_t kSmallBytes = 1024;

// What a kernel could keep between launches, beside all memory.
struct Hidden {
  int runs = 0;
  int launches = 0;  // of kernels that count them
  bool lies = false;
  int* kept = nullptr;
};
Hidden hidden;
int variable = 0;  // of the module
int constant = 0;  // that the program writes between launches

template <class T>
T Argument(void* const* arguments, size_t i) {
  return *static_cast<const T*>(arguments[i]);
}
int* Memory(void* const* arguments, size_t i) { return Argument<int*>(arguments, i); }

// scale(y, x, number): y = 3 x + number.
void ScaleBody(const LaunchShape&, void* const* arguments) {
  int *const y = Memory(arguments, 0), *const x = Memory(arguments, 1);
  const auto number = Argument<long>(arguments, 2);
  ++hidden.launches;
  for (size_t i = 0; i < kWords; ++i) y[i] = 3 * x[i] + static_cast<int>(number % 1000);
}
// half_at(y, x, number): y = x; at 9 only the first half.
void HalfAtBody(const LaunchShape&, void* const* arguments) {
  ++hidden.launches;
  const size_t words = Argument<long>(arguments, 2) == 9 ? kWords / 2 : kWords;
  std::copy_n(Memory(arguments, 1), words, Memory(arguments, 0));
}
// norm(y, x, mean, deviation): y = x + 1; two numbers beside it.
void NormBody(const LaunchShape&, void* const* arguments) {
  int *const y = Memory(arguments, 0), *const x = Memory(arguments, 1);
  ++hidden.launches;
  for (size_t i = 0; i < kWords; ++i) y[i] = x[i] + 1;
  std::fill_n(Memory(arguments, 2), kSmallBytes / 4, x[0] * 2);
  std::fill_n(Memory(arguments, 3), kSmallBytes / 4, x[0] * 5);
}
// add(y, x): y += x.
void AddBody(const LaunchShape&, void* const* arguments) {
  int *const y = Memory(arguments, 0), *const x = Memory(arguments, 1);
  for (size_t i = 0; i < kWords; ++i) y[i] += x[i];
}
// copy(y, x): y = x.
void CopyBody(const LaunchShape&, void* const* arguments) {
  std::copy_n(Memory(arguments, 1), kWords, Memory(arguments, 0));
}
// half(y, x): the first half of y = x.
void HalfBody(const LaunchShape&, void* const* arguments) {
  std::copy_n(Memory(arguments, 1), kWords / 2, Memory(arguments, 0));
}
// last_old(y, x): y = x, but for the last word, to which x is added.
void LastOldBody(const LaunchShape&, void* const* arguments) {
  int *const y = Memory(arguments, 0), *const x = Memory(arguments, 1);
  std::copy_n(x, kWords - 1, y);
  y[kWords - 1] += x[kWords - 1];
}
// order(y, x): y = x, but for one word that shows the order in which atomics came.
void OrderBody(const LaunchShape&, void* const* arguments) {
  int *const y = Memory(arguments, 0), *const x = Memory(arguments, 1);
  std::copy_n(x, kWords, y);
  y[kWords / 2] = 1000 + ++hidden.runs;
}
// through_variable(y, x): y = x + variable, which grows.
void ThroughVariableBody(const LaunchShape&, void* const* arguments) {
  int *const y = Memory(arguments, 0), *const x = Memory(arguments, 1);
  for (size_t i = 0; i < kWords; ++i) y[i] = x[i];
  ++variable;
  ++hidden.launches;
}
// liar(y, x): y = x, until it lies: then it reads its old output.
void LiarBody(const LaunchShape&, void* const* arguments) {
  int *const y = Memory(arguments, 0), *const x = Memory(arguments, 1);
  for (size_t i = 0; i < kWords; ++i) y[i] = hidden.lies && i % 100 == 0 ? y[i] + 1 : x[i];
}
// plus_constant(y, x): y = x + constant.
void PlusConstantBody(const LaunchShape&, void* const* arguments) {
  int *const y = Memory(arguments, 0), *const x = Memory(arguments, 1);
  for (size_t i = 0; i < kWords; ++i) y[i] = x[i] + constant;
}
KernelCost OneMillisecond(const LaunchShape&, void* const*) { return {0, 2'000'000'000}; }
// writer(y, x): y = x, until it lies: then it writes what it reads, too.
void WriterBody(const LaunchShape&, void* const* arguments) {
  int *const y = Memory(arguments, 0), *const x = Memory(arguments, 1);
  std::copy_n(x, kWords, y);
  ++hidden.launches;
  if (hidden.lies) x[kWords - 1] = 99;
}
// writes_second(y, x): y = x; its third run writes what it reads, too.
void WritesSecondBody(const LaunchShape&, void* const* arguments) {
  int *const y = Memory(arguments, 0), *const x = Memory(arguments, 1);
  std::copy_n(x, kWords, y);
  if (++hidden.runs == 3) x[kWords - 1] = 96;
}
// keeper(y, x): y = x; when it lies, it writes through a pointer from an earlier launch.
void KeeperBody(const LaunchShape&, void* const* arguments) {
  std::copy_n(Memory(arguments, 1), kWords, Memory(arguments, 0));
  if (hidden.lies) hidden.kept[3] = 98;
  if (!hidden.kept) hidden.kept = Memory(arguments, 1);
}
// unless(y, x, counter): counts; y = x, but each third time the first half stays.
void UnlessBody(const LaunchShape&, void* const* arguments) {
  const size_t begin = ++*Memory(arguments, 2) % 3 == 0 ? kWords / 2 : 0;
  std::copy_n(Memory(arguments, 1) + begin, kWords - begin, Memory(arguments, 0) + begin);
}
// varies(y, x): y = x, but for one word once it lies.
void VariesBody(const LaunchShape& shape, void* const* arguments) {
  OrderBody(shape, arguments);
  if (!hidden.lies) Memory(arguments, 0)[kWords / 2] = Memory(arguments, 1)[kWords / 2];
}
// biased(y, x, b): y = x + the first word of b.
void BiasedBody(const LaunchShape&, void* const* arguments) {
  int *const y = Memory(arguments, 0), *const x = Memory(arguments, 1);
  for (size_t i = 0; i < kWords; ++i) y[i] = x[i] + *Memory(arguments, 2);
}
// biased_before(y, x, b, end): y = x + the first word of b + that of the block before the end.
void BiasedBeforeBody(const LaunchShape& shape, void* const* arguments) {
  BiasedBody(shape, arguments);
  const int more = *(Memory(arguments, 3) - kSmallBytes / sizeof(int));
  for (size_t i = 0; i < kWords; ++i) Memory(arguments, 0)[i] += more;
}
// sum(small, x): reads x; when it lies, it writes x, too.
void SumBody(const LaunchShape&, void* const* arguments) {
  int sum = 0;
  for (size_t i = 0; i < kWords; ++i) sum += Memory(arguments, 1)[i];
  *Memory(arguments, 0) = sum;
  if (hidden.lies) Memory(arguments, 1)[7] = 97;
}

constexpr KernelParameter kParameters[] = {{0, 8}, {8, 8}, {16, 8}, {24, 8}};
constexpr KernelEntry kKernels[] = {
    {"scale", ScaleBody, nullptr, 3, kParameters},
    {"norm", NormBody, nullptr, 4, kParameters},
    {"half_at", HalfAtBody, nullptr, 3, kParameters},
    {"add", AddBody, nullptr, 2, kParameters},
    {"copy", CopyBody, nullptr, 2, kParameters},
    {"half", HalfBody, nullptr, 2, kParameters},
    {"last_old", LastOldBody, nullptr, 2, kParameters},
    {"order", OrderBody, nullptr, 2, kParameters},
    {"through_variable", ThroughVariableBody, nullptr, 2, kParameters},
    {"liar", LiarBody, OneMillisecond, 2, kParameters},
    {"plus_constant", PlusConstantBody, OneMillisecond, 2, kParameters},
    {"writer", WriterBody, nullptr, 2, kParameters},
    {"keeper", KeeperBody, nullptr, 2, kParameters},
    {"writes_second", WritesSecondBody, nullptr, 2, kParameters},
    {"varies", VariesBody, nullptr, 2, kParameters},
    {"unless", UnlessBody, nullptr, 3, kParameters},
    {"biased", BiasedBody, nullptr, 3, kParameters},
    {"biased_before", BiasedBeforeBody, nullptr, 4, kParameters},
    {"sum", SumBody, nullptr, 2, kParameters}};
constexpr GlobalEntry kGlobals[] = {{"variable", &variable, sizeof variable}};
constexpr Image kImage = {{'S', 'P', 'I', 'L', 'L', 'S', 'I', 'M'},
                          1,
                          std::size(kKernels),
                          kKernels,
                          std::size(kGlobals),
                          kGlobals};

class EffectsTest : public SimulatedJobTest {
 protected:
  static constexpr size_t kBudgetBytes = 16 * kBytes;

  void SetUp() override {
    hidden = {};
    SetUpDevice(&kImage);
    Libraries::Instance().Note(module_, DependsOn::kNothingElse);
    MakeJob();
  }
  void TearDown() override {
    Libraries::Instance().Remove(module_);
    SimulatedJobTest::TearDown();
  }
  void MakeJob(size_t budget_bytes = kBudgetBytes, bool experiments = true) {
    job_ = std::make_unique<JobMemory>(context_, 0, budget_bytes, size_t{1} << 30, ParkChoice::kOff,
                                       LearnChoice::kOff);
    if (experiments) job_->learning().AllowRepeats();
    job_->recording().BeginRecording();
    input_ = Allocated();
    Set(input_, 5);
  }

  CUdeviceptr Allocated(size_t bytes = kBytes) { return AllocatedBytes(bytes); }
  void Free(CUdeviceptr address) { ASSERT_TRUE(job_->allocations().Free(address)); }

  // Returns the token by which plans know the launch.
  std::uint64_t Launch(const char* name, std::vector<CUdeviceptr> words,
                       const CUlaunchConfig* config = nullptr) {
    const CUfunction function = Function(name);
    ++asked_;
    LaunchDimensions dimensions{1, 1, 1, 1, 1, 1, 0};
    std::vector<void*> parameters;
    for (CUdeviceptr& word : words) parameters.push_back(&word);
    const std::vector<std::uint32_t> sizes(words.size(), 8);
    const LaunchDimensions repeated = {1, 1, 1, 1, 1, 1, repeated_shared_bytes_};
    const LaunchCall launch{.function = function,
                            .dimensions = repeated,
                            .parameters = parameters.data(),
                            .parameter_bytes = sizes,
                            .config = config};
    TouchSet set;
    set.shape.kernel = ShapeOfName(name);
    set.shape.launched = &dimensions;
    set.launch = is_whole_ ? &launch : nullptr;
    Addresses addresses = ManagedAmong(words);
    EXPECT_EQ(job_->calls().Begin(&addresses, {stream_, false}, Effect::kLaunches, &set),
              CUDA_SUCCESS);
    EXPECT_EQ(
        Driver().cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream_, parameters.data(), nullptr),
        CUDA_SUCCESS);
    job_->calls().End(&set, Effect::kLaunches);
    keeps_experiment_ = set.experiment != nullptr;
    const CallRecorder::Operation recorded(set, Effect::kLaunches);
    recorded_.assign(recorded.touches().begin(), recorded.touches().end());
    return scheduler::TokenOf(scheduler::JobEvent::Operation(recorded.shape(), {}));
  }
  // Over `times` new outputs, freed again: each is an experiment, while any is wanted.
  std::uint64_t Repeat(const char* name, int times, CUdeviceptr number = kNone) {
    std::uint64_t token = 0;
    for (int i = 0; i < times; ++i) {
      const CUdeviceptr y = Allocated();
      std::vector<CUdeviceptr> words{y, input_};
      if (number != kNone) words.push_back(number);
      token = Launch(name, words);
      Settle();
      Free(y);
    }
    return token;
  }
  void Settle() {
    Driver().cuStreamSynchronize(stream_);
    if (!settling_) settling_ = Allocated(kSmallBytes);
    Launch("sum", {settling_, input_});
    Driver().cuStreamSynchronize(stream_);
  }

  void Set(CUdeviceptr at, unsigned int word, size_t bytes = kBytes) {
    SetWords(at, word, bytes / sizeof(int), stream_);
  }
  std::vector<int> Read(CUdeviceptr at, size_t bytes = kBytes) {
    return ReadWords(at, bytes / sizeof(int), stream_);
  }
  static bool AllAre(const std::vector<int>& values, int value) {
    return std::all_of(values.begin(), values.end(), [=](int each) { return each == value; });
  }

  // One letter for each range: r(eads), o(verwrites), u(pdates, or unknown).
  std::string RolesOf(std::uint64_t token) {
    std::string letters;
    for (const scheduler::TouchRole& role : job_->learning().RolesOf(token))
      letters += !role.writes ? 'r' : !role.reads ? 'o' : 'u';
    return letters;
  }
  bool IsProved(std::uint64_t token) { return job_->proofs().MayReplay(token); }

  static constexpr CUdeviceptr kNone = ~CUdeviceptr{0};
  CUdeviceptr input_ = 0, settling_ = 0;
  int asked_ = 0;  // launches of the program
  std::vector<RecordedTouch> recorded_;
  bool is_whole_ = true;                    // the hook knows the whole launch
  bool keeps_experiment_ = false;           // after the last launch
  unsigned int repeated_shared_bytes_ = 0;  // too many are refused
};

}  // namespace
}  // namespace spillway::interposer
