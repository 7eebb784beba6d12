// A program whose kernels the simulator knows only from the module that it loads: buffers with and
// without data, memory freed and reused, structs that hold pointers, a graph, device variables.
// usage: no_source_program MODULE BUFFERS MEBIBYTES [SEED-OF-UNUSED-BYTES]
//
// Prints a hash of every buffer's bytes.
#include <cuda.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace {

void Must(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  const char* name = nullptr;
  cuGetErrorName(result, &name);
  std::fprintf(stderr, "%s: %s\n", what, name);
  std::exit(1);
}
#define MUST(call) Must(call, #call)

std::vector<char> Bytes(const char* path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Pair {  // as in the module's source
  int count;
  CUdeviceptr data;
  char tail;
};

class Program {
 public:
  explicit Program(const char* module) {
    CUcontext context = nullptr;
    MUST(cuInit(0));
    MUST(cuDevicePrimaryCtxRetain(&context, 0));
    MUST(cuCtxSetCurrent(context));
    const std::vector<char> image = Bytes(module);
    MUST(cuModuleLoadData(&module_, image.data()));
    MUST(cuModuleGetFunction(&scale_, module_, "_ZN7fixture5scaleIfEEvPT_PKS1_iS1_"));
    MUST(cuModuleGetFunction(&take_pair_, module_, "take_pair"));
    MUST(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
  }

  // Every third buffer gets data: all of it, or a part.
  void Allocate(int count, std::size_t bytes) {
    for (int i = 0; i < count; ++i) {
      sizes_.push_back(i % 5 == 4 ? 40'000 + 1000 * static_cast<std::size_t>(i)
                                  : bytes + 4096 * static_cast<std::size_t>(i));
      buffers_.push_back(Make(sizes_.back(), i));
    }
  }
  void Run(int rounds) {
    for (int round = 0; round < rounds; ++round) {
      for (std::size_t i = 0; i + 1 < buffers_.size(); ++i) {
        if (i % 7 == 3)
          TakePair(i, round);
        else
          Scale(i + 1, i, 0.5f + static_cast<float>(round));
      }
      // Nobody may read it before the kernels of the next round.
      if (round + 1 < rounds) Replace(static_cast<std::size_t>(round) % buffers_.size());
    }
    RunGraph();
  }
  // Regression: an address of freed memory in unused bytes named the pool's memory around it, which
  // was cleared.
  void KeepNeighboursOfFreedMemory() {
    constexpr std::size_t kBytes = 4096;
    CUdeviceptr freed = 0, kept = 0;
    MUST(cuMemAllocAsync(&freed, kBytes, stream_));
    MUST(cuMemAllocAsync(&kept, kBytes, stream_));
    buffers_.push_back(kept);
    sizes_.push_back(kBytes);
    Scale(buffers_.size() - 1, 0, 1);
    const unsigned long long before = HashOf(kept, kBytes);
    MUST(cuMemFreeAsync(freed, stream_));
    TakePair(0, 1, freed);
    if (HashOf(kept, kBytes) != before) Must(CUDA_ERROR_UNKNOWN, "a neighbour was cleared");
    MUST(cuMemFreeAsync(kept, stream_));
    buffers_.pop_back();
    sizes_.pop_back();
  }
  // Regression: host memory that unused bytes led to was cleared. Without a rule the kernel counts
  // as writing all that its bytes lead to.
  void KeepHostMemoryBesideARule() {
    if (std::getenv("SPILLWAY_SIM_RULES") == nullptr) return;
    constexpr std::size_t kBytes = 4096;
    void* copy = nullptr;
    MUST(cuMemAllocHost(&copy, kBytes));
    MUST(cuMemcpyDtoHAsync(copy, buffers_[0], kBytes, stream_));
    const unsigned long long before = HashOf(buffers_[0], kBytes);
    TakePair(1, 1, reinterpret_cast<CUdeviceptr>(copy));
    MUST(cuStreamSynchronize(stream_));
    const auto* const bytes = static_cast<const unsigned char*>(copy);
    if (Hash({bytes, bytes + kBytes}) != before)
      Must(CUDA_ERROR_UNKNOWN, "host memory was cleared");
    MUST(cuMemFreeHost(copy));
  }
  void Print() {
    MUST(cuCtxSynchronize());
    for (std::size_t i = 0; i < buffers_.size(); ++i)
      std::printf("buffer %zu: %016llx\n", i, HashOf(buffers_[i], sizes_[i]));
    CUdeviceptr weights = 0;
    std::size_t bytes = 0;
    MUST(cuModuleGetGlobal(&weights, &bytes, module_, "weights"));
    std::printf("weights: %zu bytes\n", bytes);
  }

 private:
  static unsigned long long Hash(const std::vector<unsigned char>& bytes) {
    std::uint64_t hash = 0xcbf29ce484222325;
    for (const unsigned char byte : bytes) hash = (hash ^ byte) * 0x100000001b3;
    return hash;
  }
  unsigned long long HashOf(CUdeviceptr buffer, std::size_t size_bytes) {
    std::vector<unsigned char> bytes(size_bytes);
    MUST(cuStreamSynchronize(stream_));
    MUST(cuMemcpyDtoH(bytes.data(), buffer, bytes.size()));
    return Hash(bytes);
  }
  static CUdeviceptr Make(std::size_t bytes, int number) {
    CUdeviceptr buffer = 0;
    MUST(cuMemAlloc(&buffer, bytes));
    if (number % 3 != 0) return buffer;
    std::vector<unsigned char> data(number % 2 ? bytes / 3 : bytes);
    for (std::size_t i = 0; i < data.size(); ++i)
      data[i] = static_cast<unsigned char>(i * 7 + static_cast<std::size_t>(number));
    MUST(cuMemcpyHtoD(buffer, data.data(), data.size()));
    return buffer;
  }
  void Replace(std::size_t i) {
    MUST(cuMemFree(buffers_[i]));
    buffers_[i] = Make(sizes_[i], 1);
  }
  void Scale(std::size_t out, std::size_t in, float factor) {
    int count = static_cast<int>(sizes_[out] / 4);
    void* parameters[] = {&buffers_[out], &buffers_[in], &count, &factor};
    MUST(cuLaunchKernel(scale_, 64, 1, 1, 256, 1, 1, 0, stream_, parameters, nullptr));
  }
  // The bytes behind the struct's members hold anything, as on a program's stack.
  void TakePair(std::size_t i, int round, CUdeviceptr unused = 0) {
    Pair pair;
    std::memset(static_cast<void*>(&pair), std::rand(), sizeof pair);
    if (unused != 0) std::memcpy(&pair.tail, &unused, sizeof unused);
    pair.count = round;
    pair.data = buffers_[i];
    pair.tail = 0;
    short s = 3;
    double d = round;
    float v[4] = {1, 2, 3, 4};
    void* parameters[] = {&pair, &s, &d, v};
    MUST(cuLaunchKernel(take_pair_, 1, 1, 1, 1, 1, 1, 0, stream_, parameters, nullptr));
  }
  void RunGraph() {
    CUgraph graph = nullptr;
    CUgraphExec executable = nullptr;
    MUST(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_RELAXED));
    Scale(0, 1, 2);
    Scale(2, 0, 3);
    MUST(cuStreamEndCapture(stream_, &graph));
    MUST(cuGraphInstantiate(&executable, graph, 0));
    for (int i = 0; i < 3; ++i) MUST(cuGraphLaunch(executable, stream_));
    MUST(cuStreamSynchronize(stream_));
    MUST(cuGraphExecDestroy(executable));
    MUST(cuGraphDestroy(graph));
  }

  CUmodule module_ = nullptr;
  CUfunction scale_ = nullptr, take_pair_ = nullptr;
  CUstream stream_ = nullptr;
  std::vector<CUdeviceptr> buffers_;
  std::vector<std::size_t> sizes_;
};

}  // namespace

int main(int, char** argv) {
  std::srand(static_cast<unsigned>(std::atoi(argv[4] ? argv[4] : "1")));
  Program program(argv[1]);
  program.Allocate(std::atoi(argv[2]), static_cast<std::size_t>(std::atoi(argv[3])) << 20);
  program.Run(6);
  program.KeepNeighboursOfFreedMemory();
  program.KeepHostMemoryBesideARule();
  program.Print();
}
