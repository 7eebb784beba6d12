// Operations run in order on the handle's stream, after the call. A fault becomes the driver's
// sticky error.
#include <cublas_v2.h>

#include <cstdlib>

#include "tests/unit/simulator_dnn/device.h"

namespace spillway::simulator::dnn {
namespace {

TEST_F(CudnnTest, DependentOperationsNeedOneSynchronization) {
  CUstream stream = nullptr;
  ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(cudnnSetStream(handle_, reinterpret_cast<cudaStream_t>(stream)), CUDNN_STATUS_SUCCESS);
  const TensorDesc desc({1, 1, 1, 1000});
  const DeviceFloats y(1000);
  const DeviceFloats sum(Floats(1000, 1.0f));

  // When three operations follow each other, and their scalars change right after each call.
  float value = 3;
  ASSERT_EQ(cudnnSetTensor(handle_, desc, y.get(), &value), CUDNN_STATUS_SUCCESS);
  value = 2;
  ASSERT_EQ(cudnnScaleTensor(handle_, desc, y.get(), &value), CUDNN_STATUS_SUCCESS);
  value = 10;
  ASSERT_EQ(cudnnAddTensor(handle_, &value, desc, y.get(), &kOne, desc, sum.get()),
            CUDNN_STATUS_SUCCESS);
  value = -1;
  ASSERT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);

  // Then each used the values at its own call.
  EXPECT_EQ(sum.Read(), Floats(1000, 61.0f));
  cudnnSetStream(handle_, nullptr);
  cuStreamDestroy(stream);
}

TEST_F(CudnnTest, OperationsTakeModelledTime) {
  const TensorDesc desc({64, 64, 32, 32});
  const DeviceFloats y(64 * 64 * 32 * 32);
  CUevent before = nullptr, after = nullptr;
  cuEventCreate(&before, CU_EVENT_DEFAULT);
  cuEventCreate(&after, CU_EVENT_DEFAULT);

  cuEventRecord(before, nullptr);
  ASSERT_EQ(cudnnScaleTensor(handle_, desc, y.get(), &kOne), CUDNN_STATUS_SUCCESS);
  cuEventRecord(after, nullptr);
  cuEventSynchronize(after);

  float milliseconds = 0;
  ASSERT_EQ(cuEventElapsedTime(&milliseconds, before, after), CUDA_SUCCESS);
  EXPECT_GT(milliseconds, 0.002f);  // 16 MiB at less than 8 TB/s
  EXPECT_LT(milliseconds, 1.0f);
  cuEventDestroy(before);
  cuEventDestroy(after);
}

// In a process of its own, because the error stays with the context.
int RunIntoUnmappedMemory() {
  CUcontext context = nullptr;
  cuInit(0);
  cuDevicePrimaryCtxRetain(&context, 0);
  cuCtxSetCurrent(context);
  cudnnHandle_t handle = nullptr;
  if (cudnnCreate(&handle) != CUDNN_STATUS_SUCCESS) return 1;
  cudnnTensorDescriptor_t desc = nullptr;
  cudnnCreateTensorDescriptor(&desc);
  cudnnSetTensor4dDescriptor(desc, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 1, 1024, 1024);
  CUdeviceptr range = 0;
  cuMemAddressReserve(&range, 8 << 20, 0, 0, 0);
  cudnnSetTensor(handle, desc, reinterpret_cast<void*>(range), &kOne);
  return cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS ? 0 : 2;
}

// The same with the first half of the tensor mapped. The simulated device's memory is readable even
// after the context is lost.
int RunIntoHalfMappedMemory() {
  constexpr std::size_t kHalfBytes = 2 << 20;
  CUcontext context = nullptr;
  cuInit(0);
  cuDevicePrimaryCtxRetain(&context, 0);
  cuCtxSetCurrent(context);
  cudnnHandle_t handle = nullptr;
  if (cudnnCreate(&handle) != CUDNN_STATUS_SUCCESS) return 1;
  cudnnTensorDescriptor_t desc = nullptr;
  cudnnCreateTensorDescriptor(&desc);
  cudnnSetTensor4dDescriptor(desc, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 1, 1024, 1024);
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = 0;
  const CUmemAccessDesc access = {properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUdeviceptr range = 0;
  CUmemGenericAllocationHandle memory = 0;
  cuMemAddressReserve(&range, 2 * kHalfBytes, 0, 0, 0);
  cuMemCreate(&memory, kHalfBytes, &properties, 0);
  cuMemMap(range, kHalfBytes, 0, memory, 0);
  if (cuMemSetAccess(range, kHalfBytes, &access, 1) != CUDA_SUCCESS) return 3;
  cuMemsetD32(range, 0, kHalfBytes / 4);
  cudnnSetTensor(handle, desc, reinterpret_cast<void*>(range), &kOne);
  if (cuCtxSynchronize() != CUDA_ERROR_ILLEGAL_ADDRESS) return 2;
  return *reinterpret_cast<const float*>(range) == 0.0f ? 0 : 4;
}

TEST(FaultTest, UnmappedOperandIsAnIllegalAddress) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(std::_Exit(RunIntoUnmappedMemory()), testing::ExitedWithCode(0), "");
}

TEST(FaultTest, FaultComesBeforeTheOperationStarts) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(std::_Exit(RunIntoHalfMappedMemory()), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace spillway::simulator::dnn
