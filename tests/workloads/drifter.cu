// A long job whose iterations change: one kind for `period` iterations, then another of a few;
// every fourth period has a new kind. Layers blend and are rectified, gradients pass back and
// update parameters, in buffers that each iteration allocates and frees. Every seventh iteration
// also reads a result back, like logging.
//
// Prints a checksum twenty times; beside each, on standard error, what the process holds: resident
// KiB, the most mappings since the last time, open files.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "common/arguments.h"
#include "common/check.cuh"
#include "common/random.h"

namespace workloads {

struct DrifterOptions {
  int iterations = 2000;
  int period = 100;
  int layers = 8;
  std::size_t layer_bytes = std::size_t{8} << 20;
  std::uint64_t seed = 1;
};

constexpr int kThreads = 256;
constexpr int kBlocks = 8;
constexpr int kReports = 20;
// Their number is several times higher for some iterations after a change of the budget.
constexpr int kMappingCounts = 1000;
constexpr int kRecurring =
    3;  // recurring kinds of iterations; each fourth period has a kind of its own

__global__ void blend(const std::uint32_t* first, const std::uint32_t* second, int words,
                      std::uint32_t* out) {
  for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < words;
       i += static_cast<int>(gridDim.x * blockDim.x)) {
    out[i] = first[i] * 2654435761u + (second[i] ^ (second[i] >> 15));
  }
}

__global__ void accumulate(std::uint32_t* sum, const std::uint32_t* more, int words) {
  for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < words;
       i += static_cast<int>(gridDim.x * blockDim.x)) {
    sum[i] = sum[i] * 31u + more[i];
  }
}

// cuDNN's rectifier, over any number of words. Its output can be recomputed.
class Rectifier {
 public:
  Rectifier() {
    CHECK(cudnnCreate(&handle_));
    CHECK(cudnnCreateActivationDescriptor(&rectify_));
    CHECK(cudnnSetActivationDescriptor(rectify_, CUDNN_ACTIVATION_RELU, CUDNN_NOT_PROPAGATE_NAN,
                                       0.0));
    CHECK(cudnnCreateTensorDescriptor(&shape_));
  }
  Rectifier(const Rectifier&) = delete;
  ~Rectifier() {
    CHECK(cudnnDestroyTensorDescriptor(shape_));
    CHECK(cudnnDestroyActivationDescriptor(rectify_));
    CHECK(cudnnDestroy(handle_));
  }

  void forward(int words, const void* in, void* out) const {
    reshape(words);
    CHECK(cudnnActivationForward(handle_, rectify_, &kOne, shape_, in, &kZero, shape_, out));
  }
  void backward(int words, const void* in, const void* out, const void* out_gradient,
                void* in_gradient) const {
    reshape(words);
    CHECK(cudnnActivationBackward(handle_, rectify_, &kOne, shape_, out, shape_, out_gradient,
                                  shape_, in, &kZero, shape_, in_gradient));
  }

 private:
  void reshape(int words) const {
    CHECK(cudnnSetTensor4dDescriptor(shape_, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 1, 1, words));
  }

  static constexpr float kOne = 1.0f, kZero = 0.0f;
  cudnnHandle_t handle_ = nullptr;
  cudnnActivationDescriptor_t rectify_ = nullptr;
  cudnnTensorDescriptor_t shape_ = nullptr;
};

class Buffer {
 public:
  explicit Buffer(std::size_t size_bytes)
      : words_(static_cast<int>(size_bytes / sizeof(std::uint32_t))) {
    CHECK(cudaMalloc(&address_, size_bytes));
  }
  Buffer(Buffer&& other) noexcept : address_(other.address_), words_(other.words_) {
    other.address_ = nullptr;
  }
  Buffer(const Buffer&) = delete;
  ~Buffer() { CHECK(cudaFree(address_)); }

  std::uint32_t* data() const { return address_; }
  int words() const { return words_; }
  void clear() const {
    CHECK(cudaMemset(address_, 0, sizeof(std::uint32_t) * static_cast<std::size_t>(words_)));
  }
  std::uint32_t first_word() const {
    std::uint32_t word = 0;
    CHECK(cudaMemcpy(&word, address_, sizeof(word), cudaMemcpyDeviceToHost));
    return word;
  }

 private:
  std::uint32_t* address_ = nullptr;
  int words_;
};

// The buffers of one kind of iteration; its number alone decides its layers' sizes.
class Model {
 public:
  Model(const DrifterOptions& options, int number, const std::vector<Buffer>& parameters,
        const Rectifier& rectify)
      : parameters_(parameters),
        rectify_(rectify),
        most_words_(static_cast<int>(options.layer_bytes / sizeof(std::uint32_t))),
        reversed_(number % 2 == 1) {
    for (int i = 0; i < options.layers; ++i) {
      const std::uint64_t bits =
          mix_bits(options.seed + static_cast<std::uint64_t>(number * 1000 + i));
      const std::size_t size_bytes = options.layer_bytes / 4 * (1 + bits % 4);
      activations_.emplace_back(size_bytes);
      activations_.back().clear();
    }
  }

  void iterate() const {
    std::vector<Buffer> rectified = forward();
    const std::size_t most_bytes = sizeof(std::uint32_t) * static_cast<std::size_t>(most_words_);
    const Buffer gradients[] = {Buffer(most_bytes), Buffer(most_bytes)};
    for (const Buffer& gradient : gradients) gradient.clear();
    for (const Buffer& layer : rectified)
      rectify_.forward(layer.words(), layer.data(), gradients[0].data());
    for (int i = static_cast<int>(rectified.size()) - 1, turn = 0; i > 0; --i, turn ^= 1) {
      const Buffer& made = gradients[turn ^ 1];
      const int words = rectified.back().words();
      rectify_.backward(words, activations_[i].data(), rectified.back().data(),
                        gradients[turn].data(), made.data());
      accumulate<<<kBlocks, kThreads>>>(parameter(i).data(), made.data(),
                                        std::min(parameter(i).words(), words));
      CHECK_LAUNCH("accumulate");
      rectified.pop_back();
    }
  }

 private:
  // A kernel of the program itself may write everything that it names, so each layer is rectified
  // when no later kernel names it.
  std::vector<Buffer> forward() const {
    const int layers = static_cast<int>(activations_.size());
    for (int i = 1; i < layers; ++i) join(parameter(i), activations_[i - 1], activations_[i]);
    std::vector<Buffer> rectified;
    for (const Buffer& activation : activations_) {
      rectified.emplace_back(sizeof(std::uint32_t) * static_cast<std::size_t>(activation.words()));
      rectify_.forward(activation.words(), activation.data(), rectified.back().data());
    }
    return rectified;
  }
  const Buffer& parameter(int layer) const {
    const auto i = static_cast<std::size_t>(layer);
    return parameters_[reversed_ ? parameters_.size() - 1 - i : i];
  }
  static void join(const Buffer& first, const Buffer& second, const Buffer& out) {
    const int words = std::min({first.words(), second.words(), out.words()});
    blend<<<kBlocks, kThreads>>>(first.data(), second.data(), words, out.data());
    CHECK_LAUNCH("blend");
  }

  const std::vector<Buffer>& parameters_;
  const Rectifier& rectify_;
  const int most_words_;
  const bool reversed_;
  std::vector<Buffer> activations_;
};

// Excludes device addresses: memory there, pinned memory too, belongs to the simulated GPU and
// grows with reads.
long resident_kib(const void* device_memory) {
  constexpr int kArenaBits = 44;
  const auto arena_of = [](std::uint64_t address) { return address >> kArenaBits; };
  std::ifstream mappings("/proc/self/smaps");
  bool counts = false;
  long sum = 0;
  for (std::string line; std::getline(mappings, line);) {
    unsigned long begin = 0, end = 0;
    long kib = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2)
      counts = arena_of(begin) != arena_of(reinterpret_cast<std::uint64_t>(device_memory));
    else if (counts && std::sscanf(line.c_str(), "Rss: %ld", &kib) == 1)
      sum += kib;
  }
  return sum;
}

long mappings() {
  std::ifstream maps("/proc/self/maps");
  long lines = 0;
  for (std::string line; std::getline(maps, line);) ++lines;
  return lines;
}

long open_files() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                       std::filesystem::directory_iterator());
}

void report(int iteration, const std::vector<Buffer>& parameters, long most_mappings) {
  std::uint64_t sum = 0;
  for (const Buffer& parameter : parameters) sum = mix_bits(sum ^ parameter.first_word());
  std::printf("iteration %d checksum %016llx\n", iteration, static_cast<unsigned long long>(sum));
  std::fflush(stdout);
  std::fprintf(stderr, "iteration %d resident_kib %ld mappings %ld files %ld\n", iteration,
               resident_kib(parameters.front().data()), most_mappings, open_files());
}

void drift(const DrifterOptions& options) {
  const Rectifier rectify;
  std::vector<Buffer> parameters;
  for (int i = 0; i < options.layers; ++i) {
    parameters.emplace_back(options.layer_bytes);
    parameters.back().clear();
  }
  const int between_counts = std::max(options.iterations / kMappingCounts, 1);
  long most_mappings = 0;
  for (int begin = 0; begin < options.iterations; begin += options.period) {
    const int period = begin / options.period, kind = period % (kRecurring + 1);
    const Model model(options, kind < kRecurring ? kind : period, parameters, rectify);
    for (int i = begin; i < begin + options.period && i < options.iterations; ++i) {
      model.iterate();
      if (i % 7 == 0) parameters.front().first_word();
      if (i % between_counts == 0) most_mappings = std::max(most_mappings, mappings());
      if ((i + 1) % (options.iterations / kReports) == 0)
        report(i + 1, parameters, std::exchange(most_mappings, 0));
    }
  }
}

}  // namespace workloads

int main(int argc, char** argv) {
  workloads::DrifterOptions options;
  workloads::Arguments arguments("A long job whose iterations change again and again.");
  arguments.integer("iterations", &options.iterations, workloads::kReports, 100000000,
                    "iterations in all");
  arguments.integer("period", &options.period, 1, 100000000, "iterations until they change");
  arguments.integer("layers", &options.layers, 2, 1000, "layers, each with a parameter of its own");
  arguments.size("layer-size", &options.layer_bytes,
                 "a parameter's size; activations are of a quarter of it to all of it");
  arguments.seed("seed", &options.seed, "decides the activations' sizes");
  arguments.parse(argc, argv);
  workloads::drift(options);
}
