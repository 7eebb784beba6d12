// What most cases need first: a current context, the kernels, buffers and copies.
//
// Called by: cases, on their thread. A refused call that is not the case's subject abandons the
// case. A case frees nothing: its process ends with it.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <vector>

#include "tests/contract/contract.h"

namespace spillway::contract {

inline constexpr std::size_t kMiB = std::size_t{1} << 20;

CUdevice InitDevice();

// InitDevice, and its primary context becomes current on this thread.
CUdevice UseDevice();

int Attribute(CUdevice device, CUdevice_attribute attribute);

CUdeviceptr Allocate(std::size_t size_bytes);
CUstream MakeStream(unsigned flags = CU_STREAM_NON_BLOCKING);
CUevent MakeEvent(unsigned flags = CU_EVENT_DEFAULT);

// The file of contract_kernels.cu in the driver's format; `LoadModule` loads it anew, `Kernel`
// once.
const std::vector<char>& KernelImage();
CUmodule LoadModule();
CUfunction Kernel(const char* name);

// Launches `blocks` x `threads`; the kernel's parameters must have exactly the types of
// `arguments`.
CUresult LaunchRaw(CUfunction kernel, unsigned blocks, unsigned threads, CUstream stream,
                   void** arguments);
template <typename... Arguments>
void Launch(const char* name, unsigned blocks, unsigned threads, CUstream stream,
            Arguments... arguments) {
  void* pointers[] = {&arguments...};
  ASSERT_OK(LaunchRaw(Kernel(name), blocks, threads, stream, pointers));
}

void Fill(CUdeviceptr words, std::uint32_t value, std::size_t count, CUstream stream = nullptr);
// Keeps the stream busy for about `milliseconds`, then writes `value` to `word` unless that is
// null.
void Spin(double milliseconds, CUstream stream, CUdeviceptr word = 0, std::uint32_t value = 0);

std::vector<std::uint32_t> ReadWords(CUdeviceptr source, std::size_t count);
std::uint32_t ReadWord(CUdeviceptr source);
void WriteWords(CUdeviceptr target, const std::vector<std::uint32_t>& words);

bool AllWordsAre(CUdeviceptr source, std::size_t count, std::uint32_t value);

}  // namespace spillway::contract
