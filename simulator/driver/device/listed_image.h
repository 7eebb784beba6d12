// A loaded module's own kernels and variables, as its metadata lists them (modules/read_module.h).
//
// Its kernels have no body: they only serve the compute mode `tags`. Its variables are at first
// zero: initial values are not read. It lives as long as the process, as every image must
// (kernels/image.h).
#pragma once

#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "simulator/driver/modules/module_list.h"
#include "simulator/kernels/image.h"

namespace spillway::simulator {

class ListedImage {
 public:
  explicit ListedImage(ModuleList list);
  ListedImage(const ListedImage&) = delete;
  ListedImage& operator=(const ListedImage&) = delete;

  const std::vector<KernelEntry>& kernels() const { return kernels_; }
  const std::vector<GlobalEntry>& variables() const { return variables_; }
  const KernelEntry* FindKernel(std::string_view name) const;
  const GlobalEntry* FindVariable(std::string_view name) const;

 private:
  const ModuleList list_;
  std::vector<KernelEntry> kernels_;
  std::vector<GlobalEntry> variables_;
  std::vector<std::unique_ptr<char[]>> storage_;
  std::unordered_map<std::string_view, const KernelEntry*> kernel_of_;
  std::unordered_map<std::string_view, const GlobalEntry*> variable_of_;
};

}  // namespace spillway::simulator
