// The targets of CUmodule, CUlibrary, CUfunction and CUkernel.
//
// One Module serves as CUmodule and as CUlibrary, one Kernel as CUkernel and as CUfunction.
// Simulator owns modules, a module its kernels; images live as long as the process
// (kernels/image.h).
//
// Plug-ins have a kernel's body, so they come first. For the compute mode `tags` the module itself
// lists what they lack (listed_image.h).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/byte_view.h"
#include "simulator/driver/device/listed_image.h"
#include "simulator/kernels/image.h"

namespace spillway::simulator {

struct Module;
struct Profile;

struct Kernel {
  Module* module = nullptr;
  const KernelEntry* entry = nullptr;
  KernelUses uses = nullptr;
  bool is_listed = false;    // known by name and parameters only
  bool always_runs = false;  // in the compute mode `tags`, too
  std::size_t max_dynamic_shared_bytes = 49152;
  std::map<int, int> set_attributes;
};

inline constexpr std::string_view kPluginEnding = ".kernels.so";

struct PluginPaths {
  std::string beside_program;
  std::vector<std::string> listed;
};
PluginPaths FindPluginPaths();

// Called without the engine's mutex: it takes the loader's lock.
std::vector<const Image*> OpenPluginsIn(const std::string& folder);

// Loads the program's plug-ins at the first use of a module that is not an Image.
class PluginRegistry {
 public:
  // Those beside the driver serve only modules that list one of their kernels.
  void AddOfDriver(std::vector<const Image*> images) { of_driver_ = std::move(images); }
  std::vector<const Image*> ImagesFor(const ModuleList& list);
  std::string searched() const { return searched_; }

 private:
  void LoadAll();
  void Load(const std::string& path, bool required);

  bool loaded_ = false;
  std::string searched_;
  std::vector<const Image*> images_;
  std::vector<const Image*> of_driver_;
};

struct Module {
  std::vector<const Image*> images;
  const ListedImage* listed = nullptr;  // null: not wanted, because kernels compute
  std::map<std::string, std::unique_ptr<Kernel>> kernels;

  Kernel* GetKernel(const std::string& name);
  const GlobalEntry* GetGlobal(const std::string& name) const;
  std::vector<Kernel*> AllKernels();

 private:
  Kernel* Add(const KernelEntry& entry);
};

int ResidentBlocks(const Profile& profile, int block_threads, std::size_t shared_bytes);

const Image* ImageAt(const void* data);
const Image* ImageIn(base::ByteView file);

}  // namespace spillway::simulator
