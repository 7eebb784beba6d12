// Contexts: the primary one, created ones, and each thread's stack of current contexts.
#include <thread>

#include "tests/contract/device.h"

namespace spillway::contract {
namespace {

CUcontext Current() {
  CUcontext context = nullptr;
  ASSERT_OK(cuCtxGetCurrent(&context));
  return context;
}

CUcontext Create(CUdevice device) {
  CUcontext context = nullptr;
  ASSERT_OK(cuCtxCreate(&context, nullptr, 0, device));
  return context;
}

int PrimaryIsActive(CUdevice device) {
  unsigned flags = 0;
  int active = -1;
  ASSERT_OK(cuDevicePrimaryCtxGetState(device, &flags, &active));
  return active;
}

}  // namespace

CONTRACT(Context, CallsWithoutAContextReturnInvalidContext, "cuda.h:6446 cuCtxGetCurrent") {
  InitDevice();
  EXPECT_TRUE(Current() == nullptr);
  CUdeviceptr address = 0;
  EXPECT_EQ(cuMemAlloc(&address, 256), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT);
  CUdevice device = -1;
  EXPECT_EQ(cuCtxGetDevice(&device), CUDA_ERROR_INVALID_CONTEXT);
}

CONTRACT(Context, RetainingThePrimaryDoesNotMakeItCurrent, "cuda.h:5896 cuDevicePrimaryCtxRetain") {
  const CUdevice device = InitDevice();
  CUcontext context = nullptr;
  ASSERT_OK(cuDevicePrimaryCtxRetain(&context, device));
  EXPECT_TRUE(context != nullptr);
  EXPECT_TRUE(Current() == nullptr);
}

CONTRACT_ALONE(Context, PrimaryIsOnePerDeviceAndCounted, "cuda.h:5937 cuDevicePrimaryCtxRelease") {
  const CUdevice device = InitDevice();
  EXPECT_EQ(PrimaryIsActive(device), 0);
  CUcontext first = nullptr, second = nullptr;
  ASSERT_OK(cuDevicePrimaryCtxRetain(&first, device));
  ASSERT_OK(cuDevicePrimaryCtxRetain(&second, device));
  EXPECT_TRUE(first == second);
  EXPECT_EQ(PrimaryIsActive(device), 1);
  EXPECT_OK(cuDevicePrimaryCtxRelease(device));
  EXPECT_EQ(PrimaryIsActive(device), 1);
  EXPECT_OK(cuDevicePrimaryCtxRelease(device));
  EXPECT_EQ(PrimaryIsActive(device), 0);
  OBSERVE("release_without_retain", cuDevicePrimaryCtxRelease(device));
}

CONTRACT(Context, ActivePrimaryRefusesNewFlags, "cuda.h:6033 cuDevicePrimaryCtxSetFlags") {
  const CUdevice device = UseDevice();
  OBSERVE("set_flags_while_active", cuDevicePrimaryCtxSetFlags(device, CU_CTX_SCHED_BLOCKING_SYNC));
  unsigned flags = 0;
  int active = 0;
  EXPECT_OK(cuDevicePrimaryCtxGetState(device, &flags, &active));
  EXPECT_EQ(active, 1);
}

CONTRACT(Context, CreateMakesItCurrent, "cuda.h:6275 cuCtxCreate") {
  const CUdevice device = InitDevice();
  const CUcontext context = Create(device);
  EXPECT_TRUE(Current() == context);
  CUdevice current_device = -1;
  EXPECT_OK(cuCtxGetDevice(&current_device));
  EXPECT_EQ(current_device, device);
}

CONTRACT(Context, CurrentContextsFormAStack, "cuda.h:6359 cuCtxPushCurrent") {
  const CUdevice device = InitDevice();
  const CUcontext first = Create(device);
  const CUcontext second = Create(device);
  CUcontext popped = nullptr;
  ASSERT_OK(cuCtxPopCurrent(&popped));
  EXPECT_TRUE(popped == second);
  EXPECT_TRUE(Current() == first);
  ASSERT_OK(cuCtxPushCurrent(second));
  EXPECT_TRUE(Current() == second);
  ASSERT_OK(cuCtxPopCurrent(nullptr));
  ASSERT_OK(cuCtxPopCurrent(nullptr));
  EXPECT_TRUE(Current() == nullptr);
  EXPECT_EQ(cuCtxPopCurrent(&popped), CUDA_ERROR_INVALID_CONTEXT);
}

CONTRACT(Context, SetCurrentReplacesTheTop, "cuda.h:6423 cuCtxSetCurrent") {
  const CUdevice device = InitDevice();
  const CUcontext first = Create(device);
  const CUcontext second = Create(device);
  ASSERT_OK(cuCtxSetCurrent(first));
  EXPECT_TRUE(Current() == first);
  ASSERT_OK(cuCtxPopCurrent(nullptr));
  EXPECT_TRUE(Current() == first);  // the context below `second`
  ASSERT_OK(cuCtxSetCurrent(second));
  ASSERT_OK(cuCtxSetCurrent(nullptr));
  EXPECT_TRUE(Current() == nullptr);
}

CONTRACT(Context, EachThreadHasItsOwnStack, "cuda.h:6423 cuCtxSetCurrent") {
  UseDevice();
  CUcontext seen = reinterpret_cast<CUcontext>(1);
  std::thread([&seen] { seen = Current(); }).join();
  EXPECT_TRUE(seen == nullptr);
  EXPECT_TRUE(Current() != nullptr);
}

CONTRACT(Context, DestroyingTheCurrentContextPopsIt, "cuda.h:6325 cuCtxDestroy") {
  const CUdevice device = InitDevice();
  const CUcontext first = Create(device);
  const CUcontext second = Create(device);
  ASSERT_OK(cuCtxDestroy(second));
  EXPECT_TRUE(Current() == first);
  CUdeviceptr address = 0;
  EXPECT_OK(cuMemAlloc(&address, 256));
}

CONTRACT_ALONE(Context, DestroyingFreesItsMemory, "cuda.h:6325 cuCtxDestroy") {
  const CUdevice device = UseDevice();
  std::size_t free_before = 0, free_after = 0, total = 0;
  ASSERT_OK(cuMemGetInfo(&free_before, &total));
  const CUcontext context = Create(device);
  Allocate(256 * kMiB);
  ASSERT_OK(cuCtxDestroy(context));
  ASSERT_OK(cuMemGetInfo(&free_after, &total));
  EXPECT_TRUE(free_after + 128 * kMiB > free_before);
}

CONTRACT(Context, IdsDistinguishContexts, "cuda.h:6589 cuCtxGetId") {
  const CUdevice device = InitDevice();
  unsigned long long first = 0, second = 0, current = 0;
  ASSERT_OK(cuCtxGetId(Create(device), &first));
  ASSERT_OK(cuCtxGetId(Create(device), &second));
  EXPECT_TRUE(first != second);
  EXPECT_OK(cuCtxGetId(nullptr, &current));
  EXPECT_EQ(current, second);
}

CONTRACT(Context, StreamPrioritiesRunFromLeastToGreatest,
         "cuda.h:6968 cuCtxGetStreamPriorityRange") {
  UseDevice();
  int least = 1, greatest = 1;
  ASSERT_OK(cuCtxGetStreamPriorityRange(&least, &greatest));
  EXPECT_TRUE(greatest <= least);
  EXPECT_EQ(least, 0);
  EXPECT_OK(cuCtxGetStreamPriorityRange(nullptr, nullptr));
}

CONTRACT(Context, LimitsCanBeRead, "cuda.h:6794 cuCtxGetLimit") {
  UseDevice();
  std::size_t value = 0;
  EXPECT_OK(cuCtxGetLimit(&value, CU_LIMIT_MALLOC_HEAP_SIZE));
  OBSERVE("malloc_heap_bytes", value);
  EXPECT_OK(cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE));
  OBSERVE("stack_bytes", value);
}

CONTRACT(Context, PrimaryResetDropsAllocations, "cuda.h:6100 cuDevicePrimaryCtxReset") {
  const CUdevice device = UseDevice();
  const CUdeviceptr address = Allocate(64 * kMiB);
  ASSERT_OK(cuDevicePrimaryCtxReset(device));
  OBSERVE("active_after_reset", PrimaryIsActive(device));
  OBSERVE("free_after_reset", cuMemFree(address));
}

}  // namespace spillway::contract
