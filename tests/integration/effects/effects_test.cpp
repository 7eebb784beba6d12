// A program with undocumented kernels under the preload library. Some lie: they do something else
// when they run once more. The program never receives a wrong byte.
#include <cuda.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "simulator/kernels/module_elf.h"
#include "tests/support/paths.h"

namespace {

using spillway::simulator::GlobalEntry;
using spillway::simulator::GlobalsAre;
using spillway::simulator::Image;
using spillway::simulator::KernelEntry;
using spillway::simulator::KernelParameter;
using spillway::simulator::LaunchShape;

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kBytes = 4 * kMiB;
constexpr size_t kWords = kBytes / sizeof(int);

// What kernels could keep where nobody looks.
int runs = 0;
bool lies = false;
int* kept = nullptr;  // a device variable
int constant = 0;

int* Memory(void* const* arguments, size_t i) { return *static_cast<int* const*>(arguments[i]); }

// copy(y, x): y = x; when it lies, it reads its old output in places.
void CopyBody(const LaunchShape&, void* const* arguments) {
  int *const y = Memory(arguments, 0), *const x = Memory(arguments, 1);
  ++runs;
  for (size_t i = 0; i < kWords; ++i) y[i] = lies && i % 100 == 0 ? y[i] + 1 : x[i];
}
// add(y, x): y = x + constant.
void AddBody(const LaunchShape&, void* const* arguments) {
  int *const y = Memory(arguments, 0), *const x = Memory(arguments, 1);
  ++runs;
  for (size_t i = 0; i < kWords; ++i) y[i] = x[i] + constant;
}
// keep(p): remembers a pointer.
void KeepBody(const LaunchShape&, void* const* arguments) { kept = Memory(arguments, 0); }
// count_at_kept(y, x): y = x; counts where the pointer leads.
void CountBody(const LaunchShape&, void* const* arguments) {
  std::copy_n(Memory(arguments, 1), kWords, Memory(arguments, 0));
  ++runs;
  ++kept[5];
}

constexpr KernelParameter kPointers[] = {{0, 8}, {8, 8}};
constexpr KernelEntry kKernels[] = {{"copy", CopyBody, nullptr, 2, kPointers},
                                    {"add", AddBody, nullptr, 2, kPointers},
                                    {"keep", KeepBody, nullptr, 1, kPointers},
                                    {"count_at_kept", CountBody, nullptr, 2, kPointers}};
const GlobalEntry kVariables[] = {{"kept", &kept, sizeof kept}};
const Image kPlain = {
    {'S', 'P', 'I', 'L', 'L', 'S', 'I', 'M'}, 1, std::size(kKernels), kKernels, 0, nullptr};
const Image kWithVariable = {{'S', 'P', 'I', 'L', 'L', 'S', 'I', 'M'},
                             1,
                             std::size(kKernels),
                             kKernels,
                             std::size(kVariables),
                             kVariables};
const GlobalEntry kConstants[] = {{"constant", &constant, sizeof constant}};
const Image kWithConstant = {{'S', 'P', 'I', 'L', 'L', 'S', 'I', 'M'},
                             1,
                             std::size(kKernels),
                             kKernels,
                             std::size(kConstants),
                             kConstants};

class EffectsProgramTest : public testing::Test {
 protected:
  void SetUp() override {
    setenv("SPILLWAY_EXPERIMENTS", "1", 0);
    setenv("SPILLWAY_DRIVER", spillway::test::SimulatedDriver().c_str(), 1);
    setenv("SPILLWAY_SIM_PROFILE", "a100", 1);
    setenv("SPILLWAY_BUDGET", std::to_string(64 * kMiB).c_str(), 1);
    setenv("SPILLWAY_LEARN", "always", 1);
    setenv("SPILLWAY_RECOMPUTE", "eager", 1);
  }
  void Begin(const Image& image = kPlain, GlobalsAre globals = GlobalsAre::kVariables) {
    CUcontext context = nullptr;
    ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
    ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
    ASSERT_EQ(cuModuleLoadData(&module_, spillway::simulator::ModuleElfOf(image, globals)),
              CUDA_SUCCESS);
    x_ = Allocated();
    ASSERT_EQ(cuMemsetD32(x_, 5, kWords), CUDA_SUCCESS);
  }
  void BeginUnparked(const Image& image = kPlain, GlobalsAre globals = GlobalsAre::kVariables) {
    setenv("SPILLWAY_PARK", "off", 1);
    Begin(image, globals);
  }
  static CUdeviceptr Allocated() {
    CUdeviceptr address = 0;
    EXPECT_EQ(cuMemAlloc(&address, kBytes), CUDA_SUCCESS);
    return address;
  }
  void Launch(const char* name, CUdeviceptr y, CUdeviceptr x = 0) {
    CUfunction function = nullptr;
    void* parameters[] = {&y, &x};
    ASSERT_EQ(cuModuleGetFunction(&function, module_, name), CUDA_SUCCESS);
    ASSERT_EQ(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr),
              CUDA_SUCCESS);
  }
  void UseAndFree(const char* name) {
    const CUdeviceptr y = Allocated();
    Launch(name, y, x_);
    ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    ExpectAll(y, 5);
    ASSERT_EQ(cuMemFree(y), CUDA_SUCCESS);
  }
  // After enough uses to prove it.
  CUdeviceptr Dropped(const char* name) {
    for (int i = 0; i < 4; ++i) UseAndFree(name);
    const CUdeviceptr y = Allocated();
    Launch(name, y, x_);
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    return y;
  }
  // A lie that is being copied to the host, on a stream of its own.
  std::pair<CUstream, CUdeviceptr> LieOnItsWay() {
    CUstream stream = nullptr;
    void* pinned = nullptr;
    EXPECT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    const CUdeviceptr y = Dropped("copy");
    lies = true;
    EXPECT_EQ(cuMemHostAlloc(&pinned, kBytes, 0), CUDA_SUCCESS);
    cuMemcpyDtoHAsync(pinned, y, kBytes, stream);
    return {stream, y};
  }
  static void ExpectAll(CUdeviceptr at, int value) {
    std::vector<int> values(kWords);
    ASSERT_EQ(cuMemcpyDtoH(values.data(), at, kBytes), CUDA_SUCCESS);
    EXPECT_EQ(static_cast<size_t>(std::count(values.begin(), values.end(), value)), kWords)
        << "it begins with " << values[0];
  }

  CUmodule module_ = nullptr;
  CUdeviceptr x_ = 0;
};

TEST_F(EffectsProgramTest, ProvedOutputIsMadeAgain) {
  BeginUnparked();
  const CUdeviceptr y = Dropped("copy");
  const int before = runs;
  ExpectAll(y, 5);
  EXPECT_EQ(runs, before + 1);
}

TEST_F(EffectsProgramTest, ALiarStopsTheProgram) {
  BeginUnparked();
  CUstream stream = nullptr;
  CUevent event = nullptr;
  ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(cuEventCreate(&event, 0), CUDA_SUCCESS);
  const CUdeviceptr y = Dropped("copy");
  lies = true;
  std::vector<int> values(kWords);

  EXPECT_EQ(cuMemcpyDtoH(values.data(), y, kBytes), CUDA_ERROR_LAUNCH_FAILED);

  // Then nothing that the program asks for later is answered, right or not.
  lies = false;
  EXPECT_EQ(cuMemcpyDtoH(values.data(), x_, kBytes), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(cuStreamSynchronize(nullptr), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(cuStreamQuery(stream), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(cuEventRecord(event, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuEventSynchronize(event), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(cuEventQuery(event), CUDA_ERROR_LAUNCH_FAILED);
}

// The program does not wait within the copy.
TEST_F(EffectsProgramTest, ALiarStopsTheWaitForAnAsynchronousCopy) {
  BeginUnparked();
  const CUstream stream = LieOnItsWay().first;
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_ERROR_LAUNCH_FAILED);
}

// Its output goes into another kernel's, and only that is copied.
TEST_F(EffectsProgramTest, ALiarsBytesDoNotArriveByWayOfOthers) {
  BeginUnparked();
  const CUdeviceptr y = Dropped("copy"), z = Allocated();
  ASSERT_EQ(cuMemsetD32(z, 1, kWords), CUDA_SUCCESS);
  lies = true;
  ASSERT_EQ(cuMemcpyDtoD(z, y, kBytes), CUDA_SUCCESS);
  std::vector<int> values(kWords);
  EXPECT_EQ(cuMemcpyDtoH(values.data(), z, kBytes), CUDA_ERROR_LAUNCH_FAILED);
}

// It runs when the stream gets there, and no call tells the program what went wrong.
TEST_F(EffectsProgramTest, NoHostFunctionRunsBehindALiar) {
  BeginUnparked();
  Dropped("copy");
  lies = true;
  bool is_called = false;
  const auto call = [](void* called) { *static_cast<bool*>(called) = true; };
  EXPECT_EQ(cuLaunchHostFunc(nullptr, call, &is_called), CUDA_ERROR_LAUNCH_FAILED);
  lies = false;
  cuCtxSynchronize();
  EXPECT_FALSE(is_called);
}

// The replay's record has ended, its check not yet.
TEST_F(EffectsProgramTest, NoHostFunctionRunsBehindALiarWithoutARecord) {
  BeginUnparked();
  CUstream stream = nullptr;
  ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  const CUdeviceptr y = Dropped("copy"), z = Allocated();
  ASSERT_EQ(cuMemsetD32(z, 1, kWords), CUDA_SUCCESS);
  lies = true;
  ASSERT_EQ(cuMemcpyDtoDAsync(z, y, kBytes, stream), CUDA_SUCCESS);
  cuMemsetD32Async(x_, 6, kWords, stream);
  const auto nothing = [](void*) {};
  EXPECT_EQ(cuLaunchHostFunc(stream, nothing, nullptr), CUDA_ERROR_LAUNCH_FAILED);
}

TEST_F(EffectsProgramTest, AWordToAwaitIsNotEnqueuedBehindALiar) {
  BeginUnparked();
  const CUdeviceptr flag = Allocated();
  ASSERT_EQ(cuMemsetD32(flag, 1, kWords), CUDA_SUCCESS);
  Dropped("copy");
  lies = true;
  EXPECT_EQ(cuStreamWaitValue32(nullptr, flag, 1, CU_STREAM_WAIT_VALUE_EQ),
            CUDA_ERROR_LAUNCH_FAILED);
}

// A free may wait for the device, so the program may then read.
TEST_F(EffectsProgramTest, ALiarStopsTheFree) {
  BeginUnparked();
  const CUdeviceptr y = LieOnItsWay().second;
  EXPECT_EQ(cuMemFree(y), CUDA_ERROR_LAUNCH_FAILED);
}

// Kernels read arrays by a number.
TEST_F(EffectsProgramTest, WithATextureNothingIsLaunchedTwice) {
  BeginUnparked();
  CUtexObject texture = 0;
  CUDA_RESOURCE_DESC resource{};
  resource.resType = CU_RESOURCE_TYPE_LINEAR;
  resource.res.linear.devPtr = Allocated();
  resource.res.linear.format = CU_AD_FORMAT_FLOAT;
  resource.res.linear.numChannels = 1;
  resource.res.linear.sizeInBytes = kBytes;
  const CUDA_TEXTURE_DESC description{};
  ASSERT_EQ(cuTexObjectCreate(&texture, &resource, &description, nullptr), CUDA_SUCCESS);
  const CUdeviceptr y = Dropped("copy");
  ExpectAll(y, 5);
  EXPECT_EQ(runs, 5);
}

// Launches beside a replay would find the variable changed.
TEST_F(EffectsProgramTest, BesideAVariableNothingIsLaunchedTwice) {
  BeginUnparked(kWithVariable);
  const CUdeviceptr y = Dropped("copy");
  ExpectAll(y, 5);
  EXPECT_EQ(runs, 5);
}

class BesideAConstantTest : public EffectsProgramTest {
 protected:
  void SetUp() override {
    EffectsProgramTest::SetUp();
    BeginUnparked(kWithConstant, GlobalsAre::kConstants);
    size_t bytes = 0;
    ASSERT_EQ(cuModuleGetGlobal(&constant_, &bytes, module_, "constant"), CUDA_SUCCESS);
  }

  CUdeviceptr constant_ = 0;
};

// Regression: such a module's kernels were not made again, though one of them alone reads it.
TEST_F(BesideAConstantTest, ProvedOutputIsMadeAgain) {
  const CUdeviceptr y = Dropped("add");
  const int before = runs;
  ExpectAll(y, 5);
  EXPECT_EQ(runs, before + 1);
}

TEST_F(BesideAConstantTest, OutputIsMadeFromTheConstantsOldValue) {
  const CUdeviceptr y = Dropped("add"), z = Allocated();
  const int value = 2;
  ASSERT_EQ(cuMemcpyHtoD(constant_, &value, sizeof value), CUDA_SUCCESS);
  Launch("add", z, x_);
  ExpectAll(y, 5);
  ExpectAll(z, 7);
}

TEST_F(BesideAConstantTest, OutputIsMadeBeforeAGraphWritesTheConstant) {
  const CUdeviceptr y = Dropped("add");
  CUcontext context = nullptr;
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  CUgraphExec made = nullptr;
  CUDA_MEMSET_NODE_PARAMS set{};
  set.dst = constant_;
  set.value = 2;
  set.elementSize = sizeof constant;
  set.width = set.height = 1;
  ASSERT_EQ(cuCtxGetCurrent(&context), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphAddMemsetNode(&node, graph, nullptr, 0, &set, context), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphInstantiate(&made, graph, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphLaunch(made, nullptr), CUDA_SUCCESS);
  ExpectAll(y, 5);
}

TEST_F(EffectsProgramTest, WithoutExperimentsNothingIsLaunchedTwice) {
  setenv("SPILLWAY_PARK", "off", 1);
  setenv("SPILLWAY_EXPERIMENTS", "0", 1);
  Begin();
  const CUdeviceptr y = Dropped("copy");
  ExpectAll(y, 5);
  EXPECT_EQ(runs, 5);
}

// A pointer from an earlier launch, in a device variable.
TEST_F(EffectsProgramTest, AKernelThatReachesMemoryByAKeptPointerRunsAsOftenAsTheProgramSays) {
  Begin(kWithVariable);
  const CUdeviceptr counter = Allocated();
  ASSERT_EQ(cuMemsetD32(counter, 0, kWords), CUDA_SUCCESS);
  Launch("keep", counter);
  ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  const CUdeviceptr y = Dropped("count_at_kept");
  ExpectAll(y, 5);
  int count = 0;
  ASSERT_EQ(cuMemcpyDtoH(&count, counter + 5 * sizeof count, sizeof count), CUDA_SUCCESS);
  EXPECT_EQ(count, 5);
  EXPECT_EQ(runs, 5);
}

}  // namespace
