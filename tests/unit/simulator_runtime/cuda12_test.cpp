// libcudart.so.12: the forms of CUDA 12's headers, under CUDA 12's symbol version. The forms are
// written out here, because the toolkit's headers have CUDA 13's.
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace {

class Cuda12Test : public testing::Test {
 protected:
  void SetUp() override {
    library_ = dlopen("libcudart.so.12", RTLD_NOW);
    ASSERT_NE(library_, nullptr) << dlerror();
  }

  template <typename... Parameters, typename... Arguments>
  cudaError_t Call(const char* name, Arguments... arguments) {
    void* const function = dlvsym(library_, name, "libcudart.so.12");
    EXPECT_NE(function, nullptr) << name;
    if (function == nullptr) return cudaErrorSymbolNotFound;
    return reinterpret_cast<cudaError_t (*)(Parameters...)>(function)(arguments...);
  }

  void* library_ = nullptr;
};

TEST_F(Cuda12Test, ReportsItsOwnVersion) {
  int version = 0;
  EXPECT_EQ((Call<int*>("cudaRuntimeGetVersion", &version)), cudaSuccess);
  EXPECT_EQ(version / 1000, 12);
}

TEST_F(Cuda12Test, AnswersPropertiesInTheLayoutOfCuda12) {
  // Offsets from CUDA 12.9's driver_types.h, as a compiler lays the structure out.
  constexpr std::size_t kSize = 1032, kMultiProcessorCount = 388, kMajor = 360,
                        kMemoryBusWidth = 612;
  std::vector<char> bytes(kSize + 16, 0x5a);
  ASSERT_EQ((Call<void*, int>("cudaGetDeviceProperties_v2", bytes.data(), 0)), cudaSuccess);
  const auto number = [&](std::size_t offset) {
    int value = 0;
    std::memcpy(&value, bytes.data() + offset, sizeof value);
    return value;
  };
  EXPECT_EQ(number(kMajor), 9);
  EXPECT_EQ(number(kMultiProcessorCount), 132);
  EXPECT_GT(number(kMemoryBusWidth), 0);
  EXPECT_EQ(number(kSize - 4), 0);
  EXPECT_EQ(bytes[kSize], 0x5a);
}

TEST_F(Cuda12Test, PrefetchesAndAdvisesByDeviceNumber) {
  void* pointer = nullptr;
  ASSERT_EQ((Call<void**, std::size_t, unsigned>("cudaMallocManaged", &pointer, 1 << 20, 1u)),
            cudaSuccess);
  EXPECT_EQ((Call<const void*, std::size_t, int, int>("cudaMemAdvise", pointer, 1 << 20,
                                                      cudaMemAdviseSetPreferredLocation, 0)),
            cudaSuccess);
  EXPECT_EQ((Call<const void*, std::size_t, int, cudaStream_t>("cudaMemPrefetchAsync", pointer,
                                                               1 << 20, 0, nullptr)),
            cudaSuccess);
  EXPECT_EQ((Call<const void*, std::size_t, int, cudaStream_t>("cudaMemPrefetchAsync", pointer,
                                                               1 << 20, cudaCpuDeviceId, nullptr)),
            cudaSuccess);
  EXPECT_EQ((Call<void*>("cudaFree", pointer)), cudaSuccess);
}

TEST_F(Cuda12Test, WritesNoMoreThanCuda12sPointerAttributes) {
  struct {
    cudaMemoryType type;
    int device;
    void* device_pointer;
    void* host_pointer;
    unsigned char guard[64];
  } attributes;
  std::memset(&attributes, 0x5a, sizeof attributes);
  void* pointer = nullptr;
  ASSERT_EQ((Call<void**, std::size_t>("cudaMalloc", &pointer, 4096)), cudaSuccess);

  ASSERT_EQ((Call<void*, const void*>("cudaPointerGetAttributes", &attributes, pointer)),
            cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeDevice);
  EXPECT_EQ(attributes.device_pointer, pointer);
  for (const unsigned char byte : attributes.guard) EXPECT_EQ(byte, 0x5a);
  EXPECT_EQ((Call<void*>("cudaFree", pointer)), cudaSuccess);
}

TEST_F(Cuda12Test, AddsDependenciesWithoutEdgeData) {
  cudaGraph_t graph = nullptr;
  cudaGraphNode_t first = nullptr;
  cudaGraphNode_t second = nullptr;
  ASSERT_EQ((Call<cudaGraph_t*, unsigned>("cudaGraphCreate", &graph, 0u)), cudaSuccess);
  using Nodes = const cudaGraphNode_t*;
  const auto empty = [&](cudaGraphNode_t* node) {
    return Call<cudaGraphNode_t*, cudaGraph_t, Nodes, std::size_t>("cudaGraphAddEmptyNode", node,
                                                                   graph, nullptr, 0);
  };
  ASSERT_EQ(empty(&first), cudaSuccess);
  ASSERT_EQ(empty(&second), cudaSuccess);

  EXPECT_EQ((Call<cudaGraph_t, Nodes, Nodes, std::size_t>("cudaGraphAddDependencies", graph, &first,
                                                          &second, 1)),
            cudaSuccess);
  std::size_t count = 0;
  EXPECT_EQ((Call<cudaGraphNode_t, cudaGraphNode_t*, std::size_t*>("cudaGraphNodeGetDependencies",
                                                                   second, nullptr, &count)),
            cudaSuccess);
  EXPECT_EQ(count, 1u);
  EXPECT_EQ((Call<cudaGraph_t>("cudaGraphDestroy", graph)), cudaSuccess);
}

TEST_F(Cuda12Test, ReportsACaptureInBothOldForms) {
  cudaStream_t stream = nullptr;
  ASSERT_EQ((Call<cudaStream_t*>("cudaStreamCreate", &stream)), cudaSuccess);
  ASSERT_EQ(
      (Call<cudaStream_t, int>("cudaStreamBeginCapture", stream, cudaStreamCaptureModeRelaxed)),
      cudaSuccess);
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  unsigned long long id = 0;
  EXPECT_EQ((Call<cudaStream_t, cudaStreamCaptureStatus*, unsigned long long*>(
                "cudaStreamGetCaptureInfo", stream, &status, &id)),
            cudaSuccess);
  EXPECT_EQ(status, cudaStreamCaptureStatusActive);

  cudaGraph_t graph = nullptr;
  const cudaGraphNode_t* dependencies = nullptr;
  std::size_t count = 7;
  unsigned long long same_id = 0;
  EXPECT_EQ(
      (Call<cudaStream_t, cudaStreamCaptureStatus*, unsigned long long*, cudaGraph_t*,
            const cudaGraphNode_t**, std::size_t*>("cudaStreamGetCaptureInfo_v2", stream, &status,
                                                   &same_id, &graph, &dependencies, &count)),
      cudaSuccess);
  EXPECT_EQ(same_id, id);
  EXPECT_NE(graph, nullptr);
  EXPECT_EQ(count, 0u);
  EXPECT_EQ((Call<cudaStream_t, cudaGraph_t*>("cudaStreamEndCapture", stream, &graph)),
            cudaSuccess);
  EXPECT_EQ((Call<cudaGraph_t>("cudaGraphDestroy", graph)), cudaSuccess);
  EXPECT_EQ((Call<cudaStream_t>("cudaStreamDestroy", stream)), cudaSuccess);
}

TEST_F(Cuda12Test, ExportsWhatItDoesNotSimulate) {
  EXPECT_EQ((Call<void*, const void*>("cudaImportExternalMemory", nullptr, nullptr)),
            cudaErrorNotSupported);
}

}  // namespace
