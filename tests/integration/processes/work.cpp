#include "tests/integration/processes/work.h"

namespace spillway::processes {
namespace {

template <typename Field>
Field Argument(void* const* arguments, int index) {
  return *static_cast<const Field*>(arguments[index]);
}

void Add(const simulator::LaunchShape&, void* const* arguments) {
  auto* const words = reinterpret_cast<std::uint32_t*>(Argument<std::uint64_t>(arguments, 0));
  const auto count = Argument<std::uint64_t>(arguments, 1);
  for (std::uint64_t i = 0; i < count; i += 1024) words[i] += Argument<std::uint32_t>(arguments, 2);
}

constexpr simulator::KernelParameter kParameters[] = {{0, 8}, {8, 8}, {16, 4}};
constexpr simulator::KernelEntry kKernels[] = {{kAddKernel, Add, nullptr, 3, kParameters}};
constexpr simulator::Image kImage = {
    {'S', 'P', 'I', 'L', 'L', 'S', 'I', 'M'}, simulator::kImageVersion, 1, kKernels, 0, nullptr};

}  // namespace

const simulator::Image& AddImage() { return kImage; }

Work::Work(int count, CUstream stream) : stream_(stream) {
  MUST(cuModuleLoadData(&module_, &kImage));
  MUST(cuModuleGetFunction(&add_, module_, kAddKernel));
  for (int i = 0; i < count; ++i) {
    CUdeviceptr buffer = 0;
    MUST(cuMemAlloc(&buffer, kBytes));
    MUST(cuMemsetD32Async(buffer, static_cast<unsigned>(i), kBytes / 4, stream_));
    buffers_.push_back(buffer);
  }
}

Work::~Work() {
  for (CUdeviceptr buffer : buffers_) cuMemFree(buffer);
  cuModuleUnload(module_);
}

void Work::Enqueue(int rounds) {
  for (int round = 0; round < rounds; ++round) {
    unsigned blocks = 0;  // distinguishes the launches of a round
    for (CUdeviceptr buffer : buffers_) {
      std::uint64_t words = kBytes / 4;
      std::uint32_t one = 1;
      void* parameters[] = {&buffer, &words, &one};
      MUST(cuLaunchKernel(add_, ++blocks, 1, 1, 1, 1, 1, 0, stream_, parameters, nullptr));
    }
  }
  rounds_ += static_cast<std::uint32_t>(rounds);
}

void Work::Check() const {
  MUST(cuStreamSynchronize(stream_));
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    for (const std::size_t offset : {std::size_t{0}, std::size_t{4}, kBytes - 4096, kBytes - 4}) {
      std::uint32_t word = 0;
      MUST(cuMemcpyDtoH(&word, buffers_[i] + offset, sizeof word));
      const std::uint32_t expected =
          static_cast<std::uint32_t>(i) + (offset % 4096 == 0 ? rounds_ : 0);
      if (word == expected) continue;
      std::printf("buffer %zu at %zu: %u instead of %u\n", i, offset, word, expected);
      std::fflush(stdout);
      std::_Exit(91);
    }
  }
}

}  // namespace spillway::processes
