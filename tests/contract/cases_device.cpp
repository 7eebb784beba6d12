// Initialisation, devices, versions and error names.
#include <cstring>
#include <string>

#include "tests/contract/device.h"

namespace spillway::contract {

CONTRACT(Init, CallsBeforeInitReturnNotInitialized, "cuda.h:5207 cuInit") {
  int count = -1;
  EXPECT_EQ(cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
  CUdeviceptr address = 0;
  EXPECT_EQ(cuMemAlloc(&address, 256), CUDA_ERROR_NOT_INITIALIZED);
}

CONTRACT(Init, FlagsMustBeZero, "cuda.h:5207 cuInit") {
  EXPECT_EQ(cuInit(1), CUDA_ERROR_INVALID_VALUE);
}

CONTRACT(Init, MayBeRepeated, "cuda.h:5207 cuInit") {
  EXPECT_OK(cuInit(0));
  EXPECT_OK(cuInit(0));
}

CONTRACT(Init, DriverVersionNeedsNoInit, "cuda.h:5245 cuDriverGetVersion") {
  int version = 0;
  EXPECT_OK(cuDriverGetVersion(&version));
  EXPECT_TRUE(version >= 12000);
  OBSERVE("driver_version", version);
  EXPECT_EQ(cuDriverGetVersion(nullptr), CUDA_ERROR_INVALID_VALUE);
}

CONTRACT(Init, ErrorNamesNeedNoInit, "cuda.h:5170 cuGetErrorName") {
  const char* text = nullptr;
  EXPECT_OK(cuGetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, &text));
  EXPECT_EQ(std::string(text ? text : ""), std::string("CUDA_ERROR_ILLEGAL_ADDRESS"));
  EXPECT_OK(cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &text));
  EXPECT_EQ(std::string(text ? text : ""), std::string("out of memory"));
}

CONTRACT(Init, UnknownErrorHasNoName, "cuda.h:5170 cuGetErrorName") {
  const char* text = "untouched";
  EXPECT_EQ(cuGetErrorName(static_cast<CUresult>(77777), &text), CUDA_ERROR_INVALID_VALUE);
  EXPECT_TRUE(text == nullptr);
}

CONTRACT(Device, OrdinalsRunFromZeroToCount, "cuda.h:5288 cuDeviceGet") {
  InitDevice();
  int count = 0;
  ASSERT_OK(cuDeviceGetCount(&count));
  EXPECT_TRUE(count >= 1);
  CUdevice device = -1;
  EXPECT_OK(cuDeviceGet(&device, count - 1));
  EXPECT_EQ(cuDeviceGet(&device, count), CUDA_ERROR_INVALID_DEVICE);
  EXPECT_EQ(cuDeviceGet(&device, -1), CUDA_ERROR_INVALID_DEVICE);
}

CONTRACT(Device, NameIsTerminatedText, "cuda.h:5349 cuDeviceGetName") {
  const CUdevice device = InitDevice();
  char name[128];
  std::memset(name, 'x', sizeof name);
  ASSERT_OK(cuDeviceGetName(name, sizeof name, device));
  EXPECT_TRUE(std::memchr(name, 0, sizeof name) != nullptr);
  OBSERVE("name", std::string(name));
}

CONTRACT(Device, UuidIsStable, "cuda.h:5378 cuDeviceGetUuid") {
  const CUdevice device = InitDevice();
  CUuuid first, second;
  ASSERT_OK(cuDeviceGetUuid(&first, device));
  ASSERT_OK(cuDeviceGetUuid(&second, device));
  EXPECT_TRUE(std::memcmp(&first, &second, sizeof first) == 0);
}

CONTRACT(Device, TotalMemoryNeedsNoContext, "cuda.h:5436 cuDeviceTotalMem") {
  const CUdevice device = InitDevice();
  std::size_t total_bytes = 0;
  ASSERT_OK(cuDeviceTotalMem(&total_bytes, device));
  EXPECT_TRUE(total_bytes > 256 * kMiB);
}

CONTRACT(Device, AttributesEveryProgramReliesOn, "cuda.h:5498 cuDeviceGetAttribute") {
  const CUdevice device = InitDevice();
  EXPECT_EQ(Attribute(device, CU_DEVICE_ATTRIBUTE_WARP_SIZE), 32);
  EXPECT_EQ(Attribute(device, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING), 1);
  EXPECT_EQ(Attribute(device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK), 1024);
  EXPECT_TRUE(Attribute(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) > 0);
  EXPECT_TRUE(Attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) >= 3);
  EXPECT_TRUE(Attribute(device, CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT) >= 1);
  EXPECT_TRUE(Attribute(device, CU_DEVICE_ATTRIBUTE_CLOCK_RATE) > 0);
}

CONTRACT(Device, AttributesSpillwayReliesOn,
         "docs/architecture.md; cuda.h:5498 cuDeviceGetAttribute") {
  const CUdevice device = InitDevice();
  OBSERVE("vmm", Attribute(device, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED));
  OBSERVE("posix_fd_handles",
          Attribute(device, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED));
  OBSERVE("host_numa_vmm",
          Attribute(device, CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED));
  OBSERVE("host_numa_id", Attribute(device, CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID));
  OBSERVE("memory_pools", Attribute(device, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED));
  OBSERVE("copy_engines", Attribute(device, CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT));
  OBSERVE("cooperative_launch", Attribute(device, CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH));
  OBSERVE("clock_khz", Attribute(device, CU_DEVICE_ATTRIBUTE_CLOCK_RATE));
}

CONTRACT(Device, BadAttributeArgumentsAreInvalid, "cuda.h:5498 cuDeviceGetAttribute") {
  const CUdevice device = InitDevice();
  int value = 0;
  EXPECT_EQ(cuDeviceGetAttribute(nullptr, CU_DEVICE_ATTRIBUTE_WARP_SIZE, device),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(100000), device),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 99),
            CUDA_ERROR_INVALID_DEVICE);
}

}  // namespace spillway::contract
