// Modules, libraries and kernels: what CUmodule/CUlibrary and CUfunction/CUkernel point to.
//
// One Module serves as CUmodule and as CUlibrary, one Kernel as CUkernel and as CUfunction. Under
// the engine's mutex. Ownership: Simulator owns modules, a module its kernels; images live for the
// process (kernels/image.h).
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
  KernelUses uses = nullptr;  // null: the image does not say
  std::size_t max_dynamic_shared_bytes = 49152;
  std::map<int, int> set_attributes;
};

// Where plug-ins may lie: beside the program, and where SPILLWAY_SIM_KERNELS says.
struct PluginPaths {
  std::string beside_program;  // empty: unknown
  std::vector<std::string> listed;
};
PluginPaths FindPluginPaths();

// The plug-ins of this process, loaded at the first use of a module that is not an Image.
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

// How many blocks of this shape one multiprocessor holds at a time.
int ResidentBlocks(const Profile& profile, int block_threads, std::size_t shared_bytes);

// The image that the data is, or that the ELF file of module_elf.h holds; null: the data is
// something else.
const Image* ImageIn(const void* data);

}  // namespace spillway::simulator
