// A kernel reaches a tensor through 128 opaque bytes: by value, in a struct, and in device memory.
#include <cstring>

#include "simulator/kernels/device/tensor_maps.h"
#include "tests/regressions/job.h"

namespace spillway::regressions {
namespace {

constexpr size_t kTensorBytes = 16 * kMiB;

struct Scaled {
  float factor;
  CUtensorMap map;
};

void StoreFirst(const void* map, void* const* arguments, float factor) {
  float tile[32 * 4];
  spillway_tensor_load(tile, map, 0, 0);
  **static_cast<float**>(arguments[0]) = factor * tile[0];
}
void LoadByValue(const simulator::LaunchShape&, void* const* arguments) {
  StoreFirst(arguments[1], arguments, 1.0f);
}
void LoadByStruct(const simulator::LaunchShape&, void* const* arguments) {
  const auto* scaled = static_cast<const Scaled*>(arguments[1]);
  StoreFirst(&scaled->map, arguments, scaled->factor);
}
// The second of a group of maps in device memory.
void LoadByPointer(const simulator::LaunchShape&, void* const* arguments) {
  StoreFirst(*static_cast<const CUtensorMap**>(arguments[1]) + 1, arguments, 1.0f);
}
void LoadColumn(const simulator::LaunchShape&, void* const* arguments) {
  float tile[8 * 32];
  spillway_tensor_load_im2col(tile, arguments[1], {0, 0, 0, 0, 0}, {0, 0, 0});
  **static_cast<float**>(arguments[0]) = tile[255];
}
constexpr simulator::KernelParameter kByValue[] = {{0, 8}, {128, 128}};
constexpr simulator::KernelParameter kByPointer[] = {{0, 8}, {8, 8}};
constexpr simulator::KernelParameter kByStruct[] = {{0, 8}, {128, sizeof(Scaled)}};
SPILLWAY_ONE_KERNEL(kLoadByValue, "load_by_value", LoadByValue, nullptr, 2, kByValue);
SPILLWAY_ONE_KERNEL(kLoadColumn, "load_column", LoadColumn, nullptr, 2, kByValue);
SPILLWAY_ONE_KERNEL(kLoadByPointer, "load_by_pointer", LoadByPointer, nullptr, 2, kByPointer);
SPILLWAY_ONE_KERNEL(kLoadByStruct, "load_by_struct", LoadByStruct, nullptr, 2, kByStruct);

// All but the last of the tensors are evicted.
class TensorMapsTest : public JobTest {
 protected:
  void SetUp() override {
    JobTest::SetUp();
    setenv("SPILLWAY_SIM_PROFILE", "h200", 1);
  }

  static CUtensorMap MapOf(CUdeviceptr tensor) {
    CUtensorMap map;
    const cuuint64_t sizes[] = {1024, 4096}, strides[] = {4096};
    const cuuint32_t box[] = {32, 4}, steps[] = {1, 1};
    EXPECT_EQ(cuTensorMapEncodeTiled(
                  &map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, reinterpret_cast<void*>(tensor), sizes,
                  strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
                  CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
              CUDA_SUCCESS);
    return map;
  }

  void MakeTensors() {
    Start();
    for (float value : {1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f}) {
      std::uint32_t bits;
      std::memcpy(&bits, &value, sizeof bits);
      tensors_.push_back(Filled(kTensorBytes, bits));
    }
    out_ = Allocated(4);
  }

  float Run(const simulator::Image* image, const char* name, void* argument) {
    void* parameters[] = {&out_, argument};
    EXPECT_EQ(Launch(Kernel(image, name), nullptr, parameters), CUDA_SUCCESS);
    float value = -1;
    EXPECT_EQ(cuMemcpyDtoH(&value, out_, sizeof value), CUDA_SUCCESS);
    return value;
  }

  std::vector<CUdeviceptr> tensors_;
  CUdeviceptr out_ = 0;
};

TEST_F(TensorMapsTest, MapByValueRestoresItsTensor) {
  MakeTensors();
  for (int round = 0; round < 2; ++round) {
    for (size_t i = 0; i < tensors_.size(); ++i) {
      CUtensorMap map = MapOf(tensors_[i]);
      EXPECT_EQ(Run(&kLoadByValue, "load_by_value", &map), static_cast<float>(i + 1));
    }
  }
  EXPECT_LE(Statistics("device_bytes_peak"), 64 * kMiB);
}

TEST_F(TensorMapsTest, MapInAStructIsFound) {
  MakeTensors();
  for (size_t i = 0; i < tensors_.size(); ++i) {
    Scaled scaled{10.0f, MapOf(tensors_[i])};
    EXPECT_EQ(Run(&kLoadByStruct, "load_by_struct", &scaled), 10.0f * static_cast<float>(i + 1));
  }
}

TEST_F(TensorMapsTest, MapWithAReplacedAddressNamesTheNewTensor) {
  MakeTensors();
  CUtensorMap map = MapOf(tensors_[5]);
  for (size_t i = 0; i < tensors_.size(); ++i) {
    ASSERT_EQ(cuTensorMapReplaceAddress(&map, reinterpret_cast<void*>(tensors_[i])), CUDA_SUCCESS);
    EXPECT_EQ(Run(&kLoadByValue, "load_by_value", &map), static_cast<float>(i + 1));
  }
}

TEST_F(TensorMapsTest, Im2colMapsAreFoundToo) {
  MakeTensors();
  CUtensorMap map;
  const cuuint64_t sizes[] = {32, 64, 64, 1}, strides[] = {128, 8192, 524288};
  const cuuint32_t steps[] = {1, 1, 1, 1};
  const int corner[] = {0, 0};
  ASSERT_EQ(cuTensorMapEncodeIm2col(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 4,
                                    reinterpret_cast<void*>(tensors_[0]), sizes, strides, corner,
                                    corner, 32, 8, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                                    CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                                    CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
            CUDA_SUCCESS);
  EXPECT_EQ(Run(&kLoadColumn, "load_column", &map), 1.0f);
}

// Parked memory would hide a map that is not followed.
TEST_F(TensorMapsTest, MapsInDeviceMemoryAreFollowed) {
  setenv("SPILLWAY_PARK", "off", 1);
  MakeTensors();
  CUdeviceptr group = Allocated(2 * sizeof(CUtensorMap));
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const CUtensorMap maps[] = {MapOf(tensors_[(i + 1) % 6]), MapOf(tensors_[i])};
    ASSERT_EQ(cuMemcpyHtoD(group, maps, sizeof maps), CUDA_SUCCESS);
    EXPECT_EQ(Run(&kLoadByPointer, "load_by_pointer", &group), static_cast<float>(i + 1));
  }
}

}  // namespace
}  // namespace spillway::regressions
