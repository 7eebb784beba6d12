// A model that answers, sleeps, and answers again, in the manner of an inference server with a
// sleep mode. Its weights lie in a pool: pieces of physical memory, mapped next to each other
// (cuMemCreate, cuMemMap). A CUDA graph that is captured once uses the pool, with kernels that are
// given one address and go on into the next piece. Or each piece is an ordinary allocation, and
// each kernel a launch of its own.
//
// Asleep it makes no call, and waits for a file. It frees nothing and saves nothing.
//
// Prints the tokens of every answer. On standard error: when it sleeps, and when it is awake.
#include <cuda.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "common/arguments.h"
#include "common/check.cuh"
#include "common/random.h"

namespace workloads {

struct SleeperOptions {
  std::string memory = "pool";
  std::string until;
  int pieces = 12;
  int piece_mib = 8;
  int answers = 3;
  int naps = 1 << 20;
  int tokens = 4;

  std::size_t piece_bytes() const { return static_cast<std::size_t>(piece_mib) << 20; }
  int piece_words() const { return static_cast<int>(piece_bytes() / sizeof(std::uint32_t)); }
};

constexpr int kThreads = 256;
constexpr int kBlocks = 8;
constexpr int kStateWords = 2048;

__global__ void fill_weights(std::uint32_t* weights, int words, std::uint32_t seed) {
  for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < words;
       i += static_cast<int>(gridDim.x * blockDim.x))
    weights[i] = (static_cast<std::uint32_t>(i) ^ seed) * 2654435761u;
}

// One layer: each word of the state takes up its part of the weights.
__global__ void apply_layer(const std::uint32_t* weights, int words, std::uint32_t* state) {
  for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < kStateWords;
       i += static_cast<int>(gridDim.x * blockDim.x)) {
    for (int at = i; at < words; at += kStateWords) state[i] = state[i] * 31u + weights[at];
  }
}

// Fine-tuning while it answers: the last layer's weights follow the state.
__global__ void adapt(std::uint32_t* weights, int words, const std::uint32_t* state) {
  for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < words;
       i += static_cast<int>(gridDim.x * blockDim.x))
    weights[i] += state[i % kStateWords];
}

void check_driver(CUresult result, const char* call) {
  if (result != CUDA_SUCCESS) fail(1, "%s failed: %d", call, static_cast<int>(result));
}
#define CHECK_DRIVER(call) check_driver((call), #call)

// The driver's functions, found as frameworks find them.
template <typename Function>
Function driver_function(const char* name, Function) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found;
  CHECK(cudaGetDriverEntryPointByVersion(name, &function, 12000, cudaEnableDefault, &found));
  if (!function) fail(1, "the driver has no %s", name);
  return reinterpret_cast<Function>(function);
}
#define DRIVER(name) driver_function(#name, static_cast<decltype(&name)>(nullptr))

// Its pieces, by address. They live as long as the program.
std::vector<std::uint32_t*> mapped_pieces(const SleeperOptions& options) {
  const std::size_t bytes = options.piece_bytes();
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemAccessDesc access = {};
  access.location = properties.location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  CUdeviceptr base = 0;
  CHECK_DRIVER(DRIVER(cuMemAddressReserve)(&base, options.pieces * bytes, 0, 0, 0));
  std::vector<std::uint32_t*> pieces;
  for (int i = 0; i < options.pieces; ++i) {
    const CUdeviceptr at = base + i * bytes;
    CUmemGenericAllocationHandle handle = 0;
    CHECK_DRIVER(DRIVER(cuMemCreate)(&handle, bytes, &properties, 0));
    CHECK_DRIVER(DRIVER(cuMemMap)(at, bytes, 0, handle, 0));
    CHECK_DRIVER(DRIVER(cuMemSetAccess)(at, bytes, &access, 1));
    pieces.push_back(reinterpret_cast<std::uint32_t*>(at));
  }
  return pieces;
}

std::vector<std::uint32_t*> allocated_pieces(const SleeperOptions& options) {
  std::vector<std::uint32_t*> pieces(options.pieces);
  for (std::uint32_t*& piece : pieces)
    CHECK(cudaMalloc(reinterpret_cast<void**>(&piece), options.piece_bytes()));
  return pieces;
}

class Model {
 public:
  explicit Model(const SleeperOptions& options) : options_(options) {
    CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    weights_ = options.memory == "pool" ? mapped_pieces(options) : allocated_pieces(options);
    for (std::size_t i = 0; i < weights_.size(); ++i)
      fill_weights<<<kBlocks, kThreads, 0, stream_>>>(weights_[i], options.piece_words(),
                                                      static_cast<std::uint32_t>(mix_bits(i)));
    CHECK(cudaMalloc(reinterpret_cast<void**>(&state_), kStateWords * sizeof(std::uint32_t)));
    CHECK(cudaMemsetAsync(state_, 0, kStateWords * sizeof(std::uint32_t), stream_));
    CHECK(cudaStreamSynchronize(stream_));
    if (options.memory == "pool") capture();
  }
  Model(const Model&) = delete;

  std::uint32_t next_token() const {
    if (program_)
      CHECK(cudaGraphLaunch(program_, stream_));
    else
      launch_all();
    std::uint32_t token = 0;
    CHECK(cudaMemcpyAsync(&token, state_, sizeof(token), cudaMemcpyDeviceToHost, stream_));
    CHECK(cudaStreamSynchronize(stream_));
    return token;
  }

 private:
  // In the pool a layer has two pieces, of which its kernel knows the first one's address.
  void launch_all() const {
    const int pieces = static_cast<int>(weights_.size());
    const int pieces_of_layer = options_.memory == "pool" ? 2 : 1;
    const int words = options_.piece_words();
    for (int i = 0; i < pieces; i += pieces_of_layer)
      apply_layer<<<kBlocks, kThreads, 0, stream_>>>(
          weights_[i], words * std::min(pieces_of_layer, pieces - i), state_);
    CHECK_LAUNCH("a layer");
    adapt<<<kBlocks, kThreads, 0, stream_>>>(weights_.back(), words, state_);
    CHECK_LAUNCH("adapt");
  }

  void capture() {
    CHECK(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal));
    launch_all();
    cudaGraph_t graph = nullptr;
    CHECK(cudaStreamEndCapture(stream_, &graph));
    CHECK(cudaGraphInstantiate(&program_, graph, 0));
  }

  const SleeperOptions options_;
  cudaStream_t stream_ = nullptr;
  cudaGraphExec_t program_ = nullptr;
  std::vector<std::uint32_t*> weights_;
  std::uint32_t* state_ = nullptr;
};

void sleep_until(const std::string& file, int nap) {
  if (file.empty()) return;
  std::fprintf(stderr, "asleep %d\n", nap);
  while (!std::filesystem::exists(file + "." + std::to_string(nap)))
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  std::fprintf(stderr, "awake %d\n", nap);
}

}  // namespace workloads

int main(int argc, char** argv) {
  using namespace workloads;
  SleeperOptions options;
  Arguments arguments("A model that answers, sleeps, and answers again; prints its tokens.");
  arguments.text("memory", &options.memory,
                 "pool: pieces mapped next to each other; plain: allocations");
  arguments.text("until", &options.until, "sleeps after answer N until the file THIS.N exists");
  arguments.integer("pieces", &options.pieces, 1, 1 << 16, "of the weights");
  arguments.integer("piece-mib", &options.piece_mib, 2, 512, "a piece's MiB");
  arguments.integer("naps", &options.naps, 0, 1 << 20, "after the first so many answers");
  arguments.integer("answers", &options.answers, 1, 1 << 20, "with a sleep between them");
  arguments.integer("tokens", &options.tokens, 1, 1 << 20, "of an answer");
  arguments.parse(argc, argv);
  const Model model(options);
  for (int answer = 1; answer <= options.answers; ++answer) {
    for (int i = 0; i < options.tokens; ++i)
      std::printf("answer %d token %08x\n", answer, static_cast<unsigned>(model.next_token()));
    std::fflush(stdout);
    if (answer < options.answers && answer <= options.naps) sleep_until(options.until, answer);
  }
  return 0;
}
