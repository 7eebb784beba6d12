// Modules, libraries and kernels: the targets of CUmodule, CUlibrary, CUfunction and CUkernel.
//
// One Module serves as CUmodule and as CUlibrary, one Kernel as CUkernel and as CUfunction.
// Threads: under the engine's mutex. Ownership: Simulator owns modules, a module its kernels;
// images live as long as the process (kernels/image.h).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "simulator/kernels/image.h"

namespace spillway::simulator {

struct Module;
struct Profile;

struct Kernel {
  Module* module = nullptr;
  const KernelEntry* entry = nullptr;
  KernelUses uses = nullptr;  // null: not described by the image
  std::size_t max_dynamic_shared_bytes = 49152;
  std::map<int, int> set_attributes;
};

struct PluginPaths {
  std::string beside_program;  // empty: unknown
  std::vector<std::string> listed;
};
PluginPaths FindPluginPaths();

// This process's plug-ins, loaded at the first use of a module that is not an Image.
class PluginRegistry {
 public:
  const std::vector<const Image*>& images();
  std::string searched() const { return searched_; }

 private:
  void LoadAll();
  void Load(const std::string& path, bool required);

  bool loaded_ = false;
  std::string searched_;
  std::vector<const Image*> images_;
};

struct Module {
  std::vector<const Image*> images;
  std::map<std::string, std::unique_ptr<Kernel>> kernels;

  // Null when the module has no such kernel.
  Kernel* GetKernel(const std::string& name);
  const GlobalEntry* GetGlobal(const std::string& name) const;
  std::vector<Kernel*> AllKernels();
};

int ResidentBlocks(const Profile& profile, int block_threads, std::size_t shared_bytes);

// The data itself as an image, or the image in an ELF file of module_elf.h; null for other data.
const Image* ImageIn(const void* data);

}  // namespace spillway::simulator
