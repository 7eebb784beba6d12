// Kernels that reach their data through pointers in memory, with every way in which such pointers
// get there. Prints a checksum of each scene after every step, and of all data at the end.
//
// A scene owns `count` buffers that its kernels reach only indirectly, once its structure is built.
// Between the scenes' steps other buffers are used, so under a budget the scenes' own buffers are
// the least recently used.
#include <cuda_runtime.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "common/arguments.h"
#include "common/check.cuh"
#include "pointers_kernels.cuh"

namespace workloads {

struct PointersOptions {
  std::string scenes = "all";
  int steps = 4;
  int count = 6;
  int ballast = 16;
  std::size_t buffer_bytes = std::size_t{2} << 20;
};

constexpr int kThreads = 256;
constexpr int kBlocks = 8;

class DeviceBytes {
 public:
  explicit DeviceBytes(std::size_t size_bytes) : size_bytes_(size_bytes) {
    CHECK(cudaMalloc(&address_, size_bytes));
  }
  DeviceBytes(DeviceBytes&& other) noexcept
      : address_(other.address_), size_bytes_(other.size_bytes_) {
    other.address_ = nullptr;
  }
  DeviceBytes(const DeviceBytes&) = delete;
  ~DeviceBytes() { CHECK(cudaFree(address_)); }

  template <typename Type>
  Type* as() const {
    return static_cast<Type*>(address_);
  }
  std::uint64_t checksum(std::size_t first_byte) const {
    std::vector<std::uint32_t> words((size_bytes_ - first_byte) / sizeof(std::uint32_t));
    CHECK(cudaMemcpy(words.data(), as<char>() + first_byte, words.size() * sizeof(std::uint32_t),
                     cudaMemcpyDeviceToHost));
    std::uint64_t sum = 0;
    for (const std::uint32_t word : words) sum = mix_bits(sum ^ word);
    return sum;
  }

 private:
  void* address_ = nullptr;
  std::size_t size_bytes_;
};

class Scene {
 public:
  virtual ~Scene() = default;
  virtual void step(int step) = 0;
  virtual std::uint64_t checksum() const = 0;
};

// A scene over nodes: makes and fills them.
class NodeScene : public Scene {
 public:
  NodeScene(const PointersOptions& options, std::uint64_t seed)
      : words_(static_cast<std::uint32_t>((options.buffer_bytes - sizeof(Node)) /
                                          sizeof(std::uint32_t))) {
    table_.count = options.count;
    for (int i = 0; i < options.count; ++i) {
      buffers_.emplace_back(options.buffer_bytes);
      table_.nodes[i] = buffers_.back().as<Node>();
      fill_node<<<kBlocks, kThreads>>>(table_.nodes[i], seed + static_cast<std::uint64_t>(i),
                                       words_);
      CHECK_LAUNCH("fill_node");
    }
  }
  std::uint64_t checksum() const override {
    std::uint64_t sum = 0;
    for (const DeviceBytes& buffer : buffers_)
      sum = mix_bits(sum ^ buffer.checksum(offsetof(Node, data)));
    return sum;
  }

 protected:
  Work work(int step) const { return {words_, static_cast<std::uint32_t>(step)}; }
  const NodeTable& table() const { return table_; }
  int count() const { return table_.count; }
  std::size_t table_bytes() const { return sizeof(Node*) * static_cast<std::size_t>(count()); }
  void mix(Node* const* device_table, int step, cudaStream_t stream = nullptr) const {
    mix_table<<<kBlocks, kThreads, 0, stream>>>(device_table, count(), work(step));
    CHECK_LAUNCH("mix_table");
  }

 private:
  const std::uint32_t words_;
  std::vector<DeviceBytes> buffers_;
  NodeTable table_{};
};

// A table that the host uploaded once.
class UploadedTable : public NodeScene {
 public:
  UploadedTable(const PointersOptions& options, std::uint64_t seed)
      : NodeScene(options, seed), device_table_(table_bytes()) {
    CHECK(
        cudaMemcpy(device_table_.as<void>(), table().nodes, table_bytes(), cudaMemcpyHostToDevice));
  }
  void step(int step) override { mix(device_table_.as<Node*>(), step); }

 private:
  const DeviceBytes device_table_;
};

// A table that is copied to its place through another one, which is wiped before use.
class CopiedTable : public NodeScene {
 public:
  CopiedTable(const PointersOptions& options, std::uint64_t seed)
      : NodeScene(options, seed), first_(table_bytes()), second_(options.buffer_bytes) {
    CHECK(cudaMemcpy(first_.as<void>(), table().nodes, table_bytes(), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(place(), first_.as<void>(), table_bytes(), cudaMemcpyDeviceToDevice));
    CHECK(cudaMemset(first_.as<void>(), 0, table_bytes()));
  }
  void step(int step) override { mix(place(), step); }

 private:
  Node** place() const { return second_.as<Node*>() + 1000; }
  const DeviceBytes first_, second_;
};

// A table that only a kernel writes.
class WrittenTable : public NodeScene {
 public:
  WrittenTable(const PointersOptions& options, std::uint64_t seed)
      : NodeScene(options, seed), device_table_(table_bytes()) {
    write_table<<<1, 1>>>(device_table_.as<Node*>(), table());
    CHECK_LAUNCH("write_table");
  }
  void step(int step) override { mix(device_table_.as<Node*>(), step); }

 private:
  const DeviceBytes device_table_;
};

// A pinned source that a host function fills after the copy was enqueued; each step starts with
// other nodes.
class RewrittenSource : public NodeScene {
 public:
  RewrittenSource(const PointersOptions& options, std::uint64_t seed)
      : NodeScene(options, seed), device_table_(table_bytes()) {
    CHECK(cudaMallocHost(&source_, table_bytes()));
    CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    for (int i = 0; i < count(); ++i) source_[i] = nullptr;
    CHECK(cudaDeviceSynchronize());
  }
  ~RewrittenSource() override {
    CHECK(cudaStreamDestroy(stream_));
    CHECK(cudaFreeHost(source_));
  }
  void step(int step) override {
    turn_ = step;
    CHECK(cudaLaunchHostFunc(
        stream_, [](void* scene) { static_cast<RewrittenSource*>(scene)->rewrite(); }, this));
    CHECK(cudaMemcpyAsync(device_table_.as<void>(), source_, table_bytes(), cudaMemcpyHostToDevice,
                          stream_));
    mix(device_table_.as<Node*>(), step, stream_);
    CHECK(cudaStreamSynchronize(stream_));
  }

 private:
  void rewrite() {
    for (int i = 0; i < count(); ++i) source_[i] = table().nodes[(i + turn_) % count()];
  }
  const DeviceBytes device_table_;
  Node** source_ = nullptr;
  cudaStream_t stream_ = nullptr;
  int turn_ = 0;
};

// Pointers in host memory that kernels read in place.
class HostTable : public NodeScene {
 public:
  HostTable(const PointersOptions& options, std::uint64_t seed) : NodeScene(options, seed) {
    CHECK(cudaMallocHost(&host_table_, table_bytes()));
    for (int i = 0; i < count(); ++i) host_table_[i] = table().nodes[i];
  }
  ~HostTable() override { CHECK(cudaFreeHost(host_table_)); }
  void step(int step) override { mix(host_table_, step); }

 private:
  Node** host_table_ = nullptr;
};

class GlobalTable : public NodeScene {
 public:
  GlobalTable(const PointersOptions& options, std::uint64_t seed) : NodeScene(options, seed) {
    CHECK(cudaMemcpyToSymbol(global_nodes, table().nodes, table_bytes()));
  }
  void step(int step) override {
    mix_global<<<kBlocks, kThreads>>>(count(), work(step));
    CHECK_LAUNCH("mix_global");
  }
};

class ConstantTable : public NodeScene {
 public:
  ConstantTable(const PointersOptions& options, std::uint64_t seed) : NodeScene(options, seed) {
    CHECK(cudaMemcpyToSymbol(constant_nodes, &table(), sizeof(NodeTable)));
  }
  void step(int step) override {
    mix_constant<<<kBlocks, kThreads>>>(work(step));
    CHECK_LAUNCH("mix_constant");
  }
};

// A list that kernels build, one node a launch, and walk from a head in device memory.
class List : public NodeScene {
 public:
  List(const PointersOptions& options, std::uint64_t seed)
      : NodeScene(options, seed), head_(sizeof(Node*)) {
    CHECK(cudaMemset(head_.as<void>(), 0, sizeof(Node*)));
    for (int i = 0; i < count(); ++i) {
      push_front<<<1, 1>>>(head_.as<Node*>(), table().nodes[i]);
      CHECK_LAUNCH("push_front");
    }
    CHECK(cudaMemcpy(&first_, head_.as<void>(), sizeof(Node*), cudaMemcpyDeviceToHost));
  }
  void step(int step) override {
    mix_list<<<kBlocks, kThreads>>>(first_, work(step));
    CHECK_LAUNCH("mix_list");
  }

 private:
  const DeviceBytes head_;
  Node* first_ = nullptr;
};

// The same behind a device variable that the host never reads.
class GlobalList : public NodeScene {
 public:
  GlobalList(const PointersOptions& options, std::uint64_t seed) : NodeScene(options, seed) {
    for (int i = 0; i < count(); ++i) {
      push_front_global<<<1, 1>>>(table().nodes[i]);
      CHECK_LAUNCH("push_front_global");
    }
  }
  void step(int step) override {
    mix_global_list<<<kBlocks, kThreads>>>(work(step));
    CHECK_LAUNCH("mix_global_list");
  }
};

// A list that kernels start to build late, long after the other kernels ran.
class LateList : public NodeScene {
 public:
  LateList(const PointersOptions& options, std::uint64_t seed)
      : NodeScene(options, seed), head_(sizeof(Node*)), begin_(options.steps / 2) {
    CHECK(cudaMemset(head_.as<void>(), 0, sizeof(Node*)));
  }
  void step(int step) override {
    if (step == begin_) build();
    if (step >= begin_) {
      mix_list<<<kBlocks, kThreads>>>(first_, work(step));
      CHECK_LAUNCH("mix_list");
    }
  }

 private:
  void build() {
    for (int i = 0; i < count(); ++i) {
      push_front<<<1, 1>>>(head_.as<Node*>(), table().nodes[i]);
      CHECK_LAUNCH("push_front");
    }
    CHECK(cudaMemcpy(&first_, head_.as<void>(), sizeof(Node*), cudaMemcpyDeviceToHost));
  }
  const DeviceBytes head_;
  const int begin_;
  Node* first_ = nullptr;
};

class Tree : public NodeScene {
 public:
  Tree(const PointersOptions& options, std::uint64_t seed)
      : NodeScene(options, seed), root_(sizeof(Node*)) {
    CHECK(cudaMemset(root_.as<void>(), 0, sizeof(Node*)));
    for (int i = 0; i < count(); ++i) {
      insert<<<1, 1>>>(root_.as<Node*>(), table().nodes[i]);
      CHECK_LAUNCH("insert");
    }
    CHECK(cudaMemcpy(&top_, root_.as<void>(), sizeof(Node*), cudaMemcpyDeviceToHost));
  }
  void step(int step) override {
    mix_tree<<<kBlocks, kThreads>>>(top_, work(step));
    CHECK_LAUNCH("mix_tree");
  }

 private:
  const DeviceBytes root_;
  Node* top_ = nullptr;
};

// Matrices by tables of pointers, as in batched gemm.
class Batched : public Scene {
 public:
  Batched(const PointersOptions& options, std::uint64_t seed)
      : batch_(options.count),
        depth_(static_cast<int>(options.buffer_bytes / sizeof(float)) / kTile),
        tables_(3 * sizeof(float*) * static_cast<std::size_t>(options.count)) {
    const auto elements = static_cast<std::uint32_t>(kTile * depth_);
    for (int i = 0; i < 3 * batch_; ++i) {
      matrices_.emplace_back(options.buffer_bytes);
      fill_floats<<<kBlocks, kThreads>>>(matrices_.back().as<float>(),
                                         seed + static_cast<std::uint64_t>(i), elements);
      CHECK_LAUNCH("fill_floats");
    }
    std::vector<float*> addresses;
    for (const DeviceBytes& matrix : matrices_) addresses.push_back(matrix.as<float>());
    CHECK(cudaMemcpy(tables_.as<void>(), addresses.data(), addresses.size() * sizeof(float*),
                     cudaMemcpyHostToDevice));
  }
  void step(int) override {
    float** const table = tables_.as<float*>();
    gemm_batched<<<batch_, dim3(kTile, kTile)>>>(table, table + batch_, table + 2 * batch_,
                                                 depth_ / 8);
    CHECK_LAUNCH("gemm_batched");
  }
  std::uint64_t checksum() const override {
    std::uint64_t sum = 0;
    for (const DeviceBytes& matrix : matrices_) sum = mix_bits(sum ^ matrix.checksum(0));
    return sum;
  }

 private:
  const int batch_;
  const int depth_;
  const DeviceBytes tables_;
  std::vector<DeviceBytes> matrices_;
};

using MakeScene = std::unique_ptr<Scene> (*)(const PointersOptions&, std::uint64_t);

template <class Kind>
std::unique_ptr<Scene> make(const PointersOptions& options, std::uint64_t seed) {
  return std::make_unique<Kind>(options, seed);
}

constexpr std::pair<const char*, MakeScene> kScenes[] = {
    {"uploaded", make<UploadedTable>}, {"copied", make<CopiedTable>},
    {"written", make<WrittenTable>},   {"rewritten", make<RewrittenSource>},
    {"host", make<HostTable>},         {"global", make<GlobalTable>},
    {"constant", make<ConstantTable>}, {"list", make<List>},
    {"globallist", make<GlobalList>},  {"tree", make<Tree>},
    {"late", make<LateList>},          {"batched", make<Batched>},
};

bool is_wanted(const std::string& list, const std::string& name) {
  return list == "all" || ("," + list + ",").find("," + name + ",") != std::string::npos;
}

PointersOptions parse_pointers_options(int argc, char** argv) {
  PointersOptions options;
  Arguments arguments("Reaches device memory through pointers that lie in device memory.");
  arguments.text("scenes", &options.scenes, "scenes to play, by commas");
  arguments.integer("steps", &options.steps, 1, 100000, "steps of each scene");
  arguments.integer("count", &options.count, 1, kMostTargets,
                    "buffers that a scene reaches indirectly");
  arguments.integer("ballast", &options.ballast, 0, 4096, "buffers used between the scenes' steps");
  arguments.size("size", &options.buffer_bytes, "bytes of a buffer");
  arguments.parse(argc, argv);
  return options;
}

void play(const PointersOptions& options) {
  std::vector<std::pair<std::string, std::unique_ptr<Scene>>> scenes;
  for (const auto& [name, make_scene] : kScenes) {
    if (is_wanted(options.scenes, name))
      scenes.emplace_back(name, make_scene(options, scenes.size() * 1000));
  }
  if (scenes.empty()) fail(2, "no scene is called %s", options.scenes.c_str());
  std::vector<DeviceBytes> ballast;
  for (int i = 0; i < options.ballast; ++i) ballast.emplace_back(options.buffer_bytes);
  const auto words =
      static_cast<std::uint32_t>((options.buffer_bytes - sizeof(Node)) / sizeof(std::uint32_t));
  for (const DeviceBytes& buffer : ballast)
    CHECK(cudaMemset(buffer.as<void>(), 0, options.buffer_bytes));
  for (int step = 0; step < options.steps; ++step) {
    for (const auto& [name, scene] : scenes) {
      for (const DeviceBytes& buffer : ballast) {
        mix_one<<<kBlocks, kThreads>>>(buffer.as<Node>(),
                                       Work{words / 64, static_cast<std::uint32_t>(step)});
        CHECK_LAUNCH("mix_one");
      }
      scene->step(step);
    }
  }
  std::uint64_t sum = 0;
  for (const auto& [name, scene] : scenes) {
    const std::uint64_t checksum = scene->checksum();
    std::printf("%s %016llx\n", name.c_str(), static_cast<unsigned long long>(checksum));
    sum = mix_bits(sum ^ checksum);
  }
  for (const DeviceBytes& buffer : ballast)
    sum = mix_bits(sum ^ buffer.checksum(offsetof(Node, data)));
  std::printf("checksum %016llx\n", static_cast<unsigned long long>(sum));
}

}  // namespace workloads

int main(int argc, char** argv) {
  workloads::play(workloads::parse_pointers_options(argc, argv));
  return 0;
}
