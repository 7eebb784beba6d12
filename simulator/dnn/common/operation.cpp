#include "simulator/dnn/common/operation.h"

#include <omp.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>

namespace spillway::simulator::dnn {
namespace {

void TouchByte(volatile char* byte, Access access) {
  const char value = *byte;
  if (access != Access::kRead) *byte = value;
}

}  // namespace

void TouchRange(void* pointer, std::uint64_t size_bytes, Access access) {
  constexpr std::uint64_t kChunkBytes = 2u << 20;  // mapping granularity
  if (size_bytes == 0) return;
  auto* bytes = static_cast<volatile char*>(pointer);
  for (std::uint64_t offset = 0; offset < size_bytes; offset += kChunkBytes)
    TouchByte(bytes + offset, access);
  TouchByte(bytes + size_bytes - 1, access);
}

UseKind UseKindOf(Access access) {
  switch (access) {
    case Access::kRead:
      return UseKind::kRead;
    case Access::kWrite:
      return UseKind::kWrite;
    case Access::kClobbers:
      return UseKind::kClobbers;
    case Access::kUpdate:
      break;
  }
  return UseKind::kUpdate;
}

std::uint64_t HashOf(const void* bytes, std::size_t size_bytes) {
  std::uint64_t hash = 0xcbf29ce484222325;
  const auto* const each = static_cast<const unsigned char*>(bytes);
  for (std::size_t i = 0; i < size_bytes; ++i) hash = (hash ^ each[i]) * 0x100000001b3;
  return hash;
}

OneThreadScope::OneThreadScope() : threads_before_(omp_get_max_threads()) {
  omp_set_num_threads(1);
}

OneThreadScope::~OneThreadScope() { omp_set_num_threads(threads_before_); }

void FailOperation(const char* operation_name, const char* reason) {
  std::fprintf(stderr, "spillway simulator: %s cannot be computed: %s\n", operation_name, reason);
  std::signal(SIGABRT, SIG_DFL);  // the driver makes a kernel's abort() an error of the context
  std::abort();
}

CUkernel LoadKernel(const Image& image) {
  const DriverTable* driver = Driver();
  if (driver == nullptr) return nullptr;
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  if (driver->LibraryLoadData(&library, &image, nullptr, nullptr, 0, nullptr, nullptr, 0) !=
      CUDA_SUCCESS) {
    return nullptr;
  }
  return driver->LibraryGetKernel(&kernel, library, image.kernels[0].name) == CUDA_SUCCESS
             ? kernel
             : nullptr;
}

}  // namespace spillway::simulator::dnn
