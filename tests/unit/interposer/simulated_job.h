// A job over the simulated driver with kernels of the test's own, called as the hooks call it.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <span>
#include <vector>

#include "interposer/driver/driver_api.h"
#include "interposer/execute/job_memory.h"
#include "simulator/kernels/image.h"

namespace spillway::interposer {

// A driver function that the interposer itself does not call.
template <class F>
F* OfDriver(const char* name) {
  void* const driver = dlopen(getenv("SPILLWAY_DRIVER"), RTLD_NOW | RTLD_NOLOAD);
  return reinterpret_cast<F*>(dlsym(driver, name));
}

class SimulatedJobTest : public testing::Test {
 protected:
  void SetUpDevice(const simulator::Image* image) {
    ASSERT_EQ(driver::Driver().cuInit(0), CUDA_SUCCESS)
        << "SPILLWAY_DRIVER names the simulated driver";
    ASSERT_EQ(driver::Driver().cuDevicePrimaryCtxRetain(&context_, 0), CUDA_SUCCESS);
    ASSERT_EQ(driver::Driver().cuCtxSetCurrent(context_), CUDA_SUCCESS);
    ASSERT_EQ(driver::Driver().cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    ASSERT_EQ(OfDriver<decltype(cuModuleLoadData)>("cuModuleLoadData")(&module_, image),
              CUDA_SUCCESS);
  }
  void TearDown() override {
    driver::Driver().cuCtxSynchronize();
    job_->ReleaseAll();
    driver::Driver().cuModuleUnload(module_);
    driver::Driver().cuStreamDestroy_v2(stream_);
    driver::Driver().cuDevicePrimaryCtxRelease_v2(0);
  }

  CUfunction Function(const char* name) {
    CUfunction function = nullptr;
    EXPECT_EQ(
        OfDriver<decltype(cuModuleGetFunction)>("cuModuleGetFunction")(&function, module_, name),
        CUDA_SUCCESS);
    return function;
  }
  CUdeviceptr AllocatedBytes(size_t bytes) {
    CUdeviceptr address = 0;
    EXPECT_EQ(job_->allocations().Allocate(bytes, &address), CUDA_SUCCESS);
    return address;
  }
  Addresses ManagedAmong(std::span<const CUdeviceptr> words) const {
    Addresses addresses;
    for (const CUdeviceptr word : words) {
      if (job_->Bounds().Contain(word)) addresses.push_back(word);
    }
    return addresses;
  }

  // A call that may write the memory, and fills it.
  void SetWords(CUdeviceptr at, unsigned int word, size_t words, CUstream stream) {
    Addresses addresses;
    addresses.push_back(at);
    TouchSet set;
    ASSERT_EQ(job_->calls().Begin(&addresses, {stream, false}, Effect::kMayWrite, &set),
              CUDA_SUCCESS);
    driver::Driver().cuMemsetD32Async(at, word, words, stream);
    job_->calls().End(&set, Effect::kMayWrite);
  }
  std::vector<int> ReadWords(CUdeviceptr at, size_t words, CUstream stream) {
    std::vector<int> values(words);
    Addresses addresses;
    addresses.push_back(at);
    TouchSet set;
    EXPECT_EQ(job_->calls().Begin(&addresses, {stream, false}, Effect::kReads, &set), CUDA_SUCCESS);
    driver::Driver().cuMemcpyDtoHAsync_v2(values.data(), at, words * sizeof(int), stream);
    job_->calls().End(&set, Effect::kReads);
    driver::Driver().cuStreamSynchronize(stream);
    return values;
  }
  Counters Count() { return job_->view().Read().counters; }

  CUcontext context_ = nullptr;
  CUmodule module_ = nullptr;
  CUstream stream_ = nullptr;
  std::unique_ptr<JobMemory> job_;
};

}  // namespace spillway::interposer
