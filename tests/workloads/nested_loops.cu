// Trainings whose iterations consist of loops that a learner may mistake for the iteration.
//
// `--program=trainer` is a plain convolutional network. For every layer and every image of the
// batch, it makes the image's columns and a matrix product; then the same backwards; then one
// update of all parameters. All passes of a layer touch the same allocations. `--program=random` is
// nested loops drawn from the seed, repeated `--steps` times: kernels over a few buffers each, with
// constant or changing trip counts. Kernels do cheap work instead of the arithmetic, whose duration
// is declared in nested_loops.uses.
//
// Prints a checksum of all memory at the end.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

#include "common/arguments.h"
#include "common/check.cuh"
#include "common/random.h"

namespace workloads {

enum class Program { kTrainer, kRandom };

struct NestedLoopsOptions {
  Program program = Program::kTrainer;
  int steps = 50;
  int batch = 16;
  int layers = 6;
  int channels = 64;
  int layers_per_arena = 1;
  std::uint64_t seed = 1;
};

constexpr int kThreads = 256;
constexpr int kBlocks = 4;
constexpr int kPixels = 32 * 32;
constexpr int kFilter = 9;
constexpr int kMostKernels = 300;  // of one step of random loops

__device__ int first_index() { return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); }
__device__ int stride() { return static_cast<int>(gridDim.x * blockDim.x); }

__global__ void im2col(const std::uint32_t* image, int image_words, int column_words,
                       std::uint32_t* columns) {
  for (int i = first_index(); i < column_words; i += stride()) columns[i] = image[i % image_words];
}

__global__ void multiply(const std::uint32_t* weights, int weight_words,
                         const std::uint32_t* columns, int column_words, int out_words,
                         std::uint32_t* out) {
  for (int i = first_index(); i < out_words; i += stride())
    out[i] = weights[i % weight_words] * 2654435761u + columns[i % column_words];
}

__global__ void multiply_add(const std::uint32_t* left, int left_words, const std::uint32_t* right,
                             int right_words, int sum_words, std::uint32_t* sum) {
  for (int i = first_index(); i < sum_words; i += stride())
    sum[i] = sum[i] * 31u + left[i % left_words] + (right[i % right_words] ^ 5u);
}

__global__ void update(std::uint32_t* parameters, std::uint32_t* gradients, int words) {
  for (int i = first_index(); i < words; i += stride()) {
    parameters[i] = parameters[i] * 31u + gradients[i];
    gradients[i] = 0;
  }
}

class Words {
 public:
  explicit Words(std::size_t words) : words_(static_cast<int>(words)) {
    CHECK(cudaMalloc(&address_, words * sizeof(std::uint32_t)));
    CHECK(cudaMemset(address_, 1, words * sizeof(std::uint32_t)));
  }
  Words(Words&& other) noexcept
      : address_(std::exchange(other.address_, nullptr)), words_(other.words_) {}
  Words(const Words&) = delete;
  ~Words() { CHECK(cudaFree(address_)); }

  std::uint32_t* at(std::size_t word) const { return address_ + word; }
  int words() const { return words_; }
  std::uint64_t checksum() const {
    std::vector<std::uint32_t> host(static_cast<std::size_t>(words_));
    CHECK(cudaMemcpy(host.data(), address_, host.size() * sizeof(host[0]), cudaMemcpyDeviceToHost));
    std::uint64_t sum = 0;
    for (const std::uint32_t word : host) sum = sum * 6364136223846793005u + word;
    return sum;
  }

 private:
  std::uint32_t* address_ = nullptr;
  int words_;
};

std::uint64_t checksum_of(const std::vector<Words>& all) {
  std::uint64_t sum = 0;
  for (const Words& words : all) sum = mix_bits(sum ^ words.checksum());
  return sum;
}

// Tensors lie one after another in arenas of a few layers each.
class Trainer {
 public:
  explicit Trainer(const NestedLoopsOptions& options)
      : layers_(options.layers),
        batch_(options.batch),
        image_words_(options.channels * kPixels),
        column_words_(options.channels * kPixels * kFilter),
        weight_words_(options.channels * options.channels * kFilter),
        layers_per_arena_(options.layers_per_arena) {
    const auto layers = static_cast<std::size_t>(layers_);
    const int arenas = layers_ / layers_per_arena_ + 1;
    for (int i = 0; i < 2 * arenas; ++i) memory_.emplace_back(tensor_words() * per_arena());
    gradients_ = arenas;
    parameters_ = static_cast<int>(memory_.size());
    for (int i = 0; i < 2; ++i)
      memory_.emplace_back(layers * static_cast<std::size_t>(weight_words_));
    columns_ = static_cast<int>(memory_.size());
    memory_.emplace_back(static_cast<std::size_t>(column_words_));
  }

  void step(int number) const {
    CHECK(cudaMemsetAsync(tensor(0, 0), number, tensor_words() * sizeof(std::uint32_t), nullptr));
    for (int layer = 0; layer < layers_; ++layer) forward(layer);
    for (int layer = layers_ - 1; layer >= 0; --layer) backward(layer);
    for (int layer = 0; layer < layers_; ++layer)
      update<<<kBlocks, kThreads>>>(weights(0, layer), weights(1, layer), weight_words_);
  }
  std::uint64_t checksum() const { return checksum_of(memory_); }

 private:
  std::size_t tensor_words() const {
    return static_cast<std::size_t>(batch_) * static_cast<std::size_t>(image_words_);
  }
  std::size_t per_arena() const { return static_cast<std::size_t>(layers_per_arena_); }
  // Layer `i`'s input, or its gradient.
  std::uint32_t* tensor(int arena, int i) const {
    return at(arena + i / layers_per_arena_)
        .at(static_cast<std::size_t>(i % layers_per_arena_) * tensor_words());
  }
  std::uint32_t* image(int arena, int layer, int i) const {
    return tensor(arena, layer) +
           static_cast<std::size_t>(i) * static_cast<std::size_t>(image_words_);
  }
  std::uint32_t* weights(int kind, int layer) const {
    return at(parameters_ + kind)
        .at(static_cast<std::size_t>(layer) * static_cast<std::size_t>(weight_words_));
  }
  const Words& at(int i) const { return memory_[static_cast<std::size_t>(i)]; }
  std::uint32_t* columns() const { return at(columns_).at(0); }

  void forward(int layer) const {
    for (int i = 0; i < batch_; ++i) {
      im2col<<<kBlocks, kThreads>>>(image(0, layer, i), image_words_, column_words_, columns());
      multiply<<<kBlocks, kThreads>>>(weights(0, layer), weight_words_, columns(), column_words_,
                                      image_words_, image(0, layer + 1, i));
    }
  }
  void backward(int layer) const {
    for (int i = 0; i < batch_; ++i) {
      std::uint32_t* const gradient = image(gradients_, layer + 1, i);
      im2col<<<kBlocks, kThreads>>>(image(0, layer, i), image_words_, column_words_, columns());
      multiply_add<<<kBlocks, kThreads>>>(gradient, image_words_, columns(), column_words_,
                                          weight_words_, weights(1, layer));
      multiply<<<kBlocks, kThreads>>>(weights(0, layer), weight_words_, gradient, image_words_,
                                      column_words_, columns());
      im2col<<<kBlocks, kThreads>>>(columns(), column_words_, image_words_,
                                    image(gradients_, layer, i));
    }
  }

  const int layers_, batch_, image_words_, column_words_, weight_words_, layers_per_arena_;
  std::vector<Words> memory_;
  int gradients_ = 0, parameters_ = 0, columns_ = 0;
};

struct Node {
  int buffers[3] = {};
  int kind = 0;
  int trips = 0;  // 0: a kernel
  bool varies = false;
  std::vector<Node> body;
};

class RandomLoops {
 public:
  explicit RandomLoops(std::uint64_t seed) : state_(seed) {
    const int buffers = 6 + below(14);
    for (int i = 0; i < buffers; ++i)
      memory_.emplace_back((std::size_t{1} << 18) * static_cast<std::size_t>(1 + below(8)));
    do {
      root_ = {{}, 0, 1, false, {}};
      for (int i = 0, count = 2 + below(6); i < count; ++i) root_.body.push_back(draw(2));
    } while (kernels_of(root_) > kMostKernels);
  }

  void step() { run(root_); }
  std::uint64_t checksum() const { return checksum_of(memory_); }

 private:
  int below(int end) {
    state_ = mix_bits(state_ + 0x9e3779b97f4a7c15u);
    return static_cast<int>(state_ % static_cast<std::uint64_t>(end));
  }
  int buffer() { return below(static_cast<int>(memory_.size())); }
  static int kernels_of(const Node& node) {
    if (node.trips == 0) return 1;
    int sum = 0;
    for (const Node& each : node.body) sum += kernels_of(each);
    return std::min(sum * node.trips, kMostKernels + 1);
  }
  Node draw(int depth) {
    Node node;
    if (depth == 0 || below(3) == 0) {
      node.kind = below(3);
      for (int& each : node.buffers) each = buffer();
      return node;
    }
    node.trips = below(4) == 0 ? 30 + below(50) : 2 + below(14);
    node.varies = below(8) == 0;
    for (int i = 0, count = 1 + below(5); i < count; ++i) node.body.push_back(draw(depth - 1));
    return node;
  }
  void run(const Node& node) {
    if (node.trips == 0) return launch(node);
    const int trips = node.varies ? 1 + below(node.trips) : node.trips;
    for (int i = 0; i < trips; ++i) {
      for (const Node& each : node.body) run(each);
    }
  }
  const Words& of(const Node& node, int i) const {
    return memory_[static_cast<std::size_t>(node.buffers[i])];
  }
  void launch(const Node& node) const {
    const Words &a = of(node, 0), &b = of(node, 1), &c = of(node, 2);
    if (node.kind == 0)
      im2col<<<kBlocks, kThreads>>>(a.at(0), a.words(), b.words(), b.at(0));
    else if (node.kind == 1)
      multiply<<<kBlocks, kThreads>>>(a.at(0), a.words(), b.at(0), b.words(), c.words(), c.at(0));
    else
      multiply_add<<<kBlocks, kThreads>>>(a.at(0), a.words(), b.at(0), b.words(), c.words(),
                                          c.at(0));
  }

  std::uint64_t state_;
  std::vector<Words> memory_;
  Node root_;
};

template <typename Step>
void repeat(int steps, Step step) {
  for (int i = 0; i < steps; ++i) {
    step(i);
    CHECK_LAUNCH("step");
    CHECK(cudaDeviceSynchronize());
  }
}

void report(std::uint64_t checksum) {
  std::printf("checksum %016llx\n", static_cast<unsigned long long>(checksum));
}

void run(const NestedLoopsOptions& options) {
  if (options.program == Program::kTrainer) {
    const Trainer trainer(options);
    repeat(options.steps, [&](int i) { trainer.step(i); });
    report(trainer.checksum());
  } else {
    RandomLoops loops(options.seed);
    repeat(options.steps, [&](int) { loops.step(); });
    report(loops.checksum());
  }
}

}  // namespace workloads

int main(int argc, char** argv) {
  workloads::NestedLoopsOptions options;
  workloads::Arguments arguments("Trainings whose iterations are made of loops.");
  arguments.choice(
      "program", &options.program,
      {{"trainer", workloads::Program::kTrainer}, {"random", workloads::Program::kRandom}},
      "what is run");
  arguments.integer("steps", &options.steps, 1, 1000000, "how often");
  arguments.integer("batch", &options.batch, 1, 4096,
                    "trainer: images, each of which has a pass of its own");
  arguments.integer("layers", &options.layers, 1, 1000, "trainer: layers");
  arguments.integer("channels", &options.channels, 1, 4096, "trainer: channels of each layer");
  arguments.integer("layers-per-arena", &options.layers_per_arena, 1, 1000,
                    "trainer: layers whose tensors are one allocation");
  arguments.seed("seed", &options.seed, "random: which loops, over which buffers");
  arguments.parse(argc, argv);
  workloads::run(options);
}
