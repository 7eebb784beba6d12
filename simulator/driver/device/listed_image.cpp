#include "simulator/driver/device/listed_image.h"

#include <utility>

namespace spillway::simulator {
namespace {

// A hostile size must not end the process.
constexpr std::uint64_t kMostVariableBytes = std::uint64_t{4} << 30;

template <class Map>
auto FindIn(const Map& map, std::string_view name) {
  const auto found = map.find(name);
  return found == map.end() ? nullptr : found->second;
}

}  // namespace

ListedImage::ListedImage(ModuleList list) : list_(std::move(list)) {
  for (const ListedKernel& kernel : list_.kernels) {
    kernels_.push_back({kernel.name.c_str(), nullptr, nullptr,
                        static_cast<std::uint32_t>(kernel.parameters.size()),
                        kernel.parameters.data()});
  }
  for (const ListedVariable& variable : list_.variables) {
    if (variable.size_bytes == 0 || variable.size_bytes > kMostVariableBytes) continue;
    storage_.push_back(std::make_unique<char[]>(variable.size_bytes));
    variables_.push_back({variable.name.c_str(), storage_.back().get(), variable.size_bytes});
  }
  for (const KernelEntry& kernel : kernels_) kernel_of_.emplace(kernel.name, &kernel);
  for (const GlobalEntry& variable : variables_) variable_of_.emplace(variable.name, &variable);
}

const KernelEntry* ListedImage::FindKernel(std::string_view name) const {
  return FindIn(kernel_of_, name);
}

const GlobalEntry* ListedImage::FindVariable(std::string_view name) const {
  return FindIn(variable_of_, name);
}

}  // namespace spillway::simulator
