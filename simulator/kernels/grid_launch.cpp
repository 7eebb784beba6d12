#include "simulator/kernels/grid_launch.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

namespace spillway::simulator::executor {
namespace {

constexpr std::size_t kParameterAlignment = 128;
constexpr std::uintptr_t kTailLaunchStream = 3;  // cudaStreamTailLaunch

struct Child {
  const KernelDescription* kernel;
  GridConfiguration configuration;
  std::vector<char> parameters;
};

// A launch's arguments may contain launches: the latest configuration belongs to the next call.
thread_local std::vector<GridConfiguration> the_configurations;
// Of the grid that runs now. One grid runs at a time per process.
std::vector<Child> the_children;
bool the_next_grid_is_a_child = false;
HostLaunch the_host_launch = nullptr;

std::size_t ParameterBytes(const KernelDescription& kernel) {
  if (kernel.parameter_count == 0) return 0;
  const KernelParameter& last = kernel.parameters[kernel.parameter_count - 1];
  return last.offset_bytes + last.size_bytes;
}

char* Aligned(std::vector<char>& bytes) {
  const auto address = reinterpret_cast<std::uintptr_t>(bytes.data());
  return reinterpret_cast<char*>((address + kParameterAlignment - 1) / kParameterAlignment *
                                 kParameterAlignment);
}

void Enqueue(const KernelDescription& kernel, const GridConfiguration& configuration,
             void** arguments) {
  Child child{&kernel, configuration,
              std::vector<char>(ParameterBytes(kernel) + kParameterAlignment)};
  char* const to = Aligned(child.parameters);
  for (std::uint64_t i = 0; i < kernel.parameter_count; ++i) {
    const KernelParameter& parameter = kernel.parameters[i];
    std::memcpy(to + parameter.offset_bytes, arguments[i], parameter.size_bytes);
  }
  the_children.push_back(std::move(child));
}

void Run(Child& child) {
  const GridConfiguration& from = child.configuration;
  const LaunchShape shape{{from.grid[0], from.grid[1], from.grid[2]},
                          {from.block[0], from.block[1], from.block[2]},
                          static_cast<std::uint32_t>(from.shared_bytes)};
  std::vector<void*> arguments;
  for (std::uint64_t i = 0; i < child.kernel->parameter_count; ++i)
    arguments.push_back(Aligned(child.parameters) + child.kernel->parameters[i].offset_bytes);
  the_next_grid_is_a_child = true;
  child.kernel->body(shape, arguments.data());
}

bool IsTail(const Child& child) {
  return reinterpret_cast<std::uintptr_t>(child.configuration.stream) == kTailLaunchStream;
}

}  // namespace

void Configure(const GridConfiguration& configuration) {
  the_configurations.push_back(configuration);
}

void LaunchConfigured(const KernelDescription& kernel, void** arguments) {
  if (the_configurations.empty()) {
    std::fprintf(stderr, "spillway simulator: a kernel was called like a function\n");
    std::abort();
  }
  const GridConfiguration configuration = the_configurations.back();
  the_configurations.pop_back();
  if (configuration.launched_by == LaunchedBy::kKernel) {
    Enqueue(kernel, configuration, arguments);
  } else if (the_host_launch != nullptr) {
    the_host_launch(kernel, configuration, arguments);
  }
}

void SetHostLaunch(HostLaunch launch) { the_host_launch = launch; }

void RunChildGrids() {
  if (the_children.empty()) return;
  std::vector<Child> children;
  children.swap(the_children);
  for (Child& child : children)
    if (!IsTail(child)) Run(child);
  for (Child& child : children)
    if (IsTail(child)) Run(child);
}

void ForgetChildGrids() {
  if (!the_next_grid_is_a_child) the_children.clear();
  the_next_grid_is_a_child = false;
}

}  // namespace spillway::simulator::executor
