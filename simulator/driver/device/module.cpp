#include "simulator/driver/device/module.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <span>
#include <sstream>

#include "base/code_object.h"
#include "base/environment.h"
#include "simulator/driver/machine/profile.h"
#include "simulator/driver/memory/sparse_bytes.h"
#include "simulator/kernels/module_elf.h"

namespace spillway::simulator {
namespace {

std::string ExecutablePath() {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  return length <= 0 ? "" : std::string(path, static_cast<std::size_t>(length));
}

bool IsImage(const void* data) {
  const Image* image = static_cast<const Image*>(data);
  return std::memcmp(image->magic, kImageMagic, sizeof kImageMagic) == 0 &&
         image->version >= kImageVersion && image->version <= kImageVersionWithServices;
}

bool UsesServices(const Image& image) {
  return image.version >= kImageVersionWithServices && image.use_services != nullptr;
}

// Null for what is no plug-in; that is said.
const Image* OpenPlugin(const std::string& path) {
  static constexpr DriverServices kServices = {ForWritten};
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* const getter = library == nullptr ? nullptr : dlsym(library, kImageGetterName);
  const Image* image = getter == nullptr ? nullptr : reinterpret_cast<ImageGetter>(getter)();
  if (image == nullptr || !IsImage(image)) {
    const char* reason = getter == nullptr ? dlerror() : "its image has another version";
    std::fprintf(stderr, "simulated GPU: cannot use the kernel plug-in %s: %s\n", path.c_str(),
                 reason);
    return nullptr;
  }
  if (UsesServices(*image)) image->use_services(kServices);
  return image;
}

bool HasKernelOf(const Image& image, const ModuleList& list) {
  const std::span kernels(image.kernels, image.kernel_count);
  return std::any_of(kernels.begin(), kernels.end(), [&](const KernelEntry& kernel) {
    return std::any_of(list.kernels.begin(), list.kernels.end(),
                       [&](const ListedKernel& listed) { return listed.name == kernel.name; });
  });
}

}  // namespace

PluginPaths FindPluginPaths() {
  PluginPaths paths;
  if (const std::string program = ExecutablePath(); !program.empty())
    paths.beside_program = program + std::string(kPluginEnding);
  const char* listed = std::getenv(environment::kSimKernels);
  std::stringstream each(listed == nullptr ? "" : listed);
  for (std::string path; std::getline(each, path, ':');) {
    if (!path.empty()) paths.listed.push_back(path);
  }
  return paths;
}

const Image* ImageAt(const void* data) {
  return IsImage(data) ? static_cast<const Image*>(data) : nullptr;
}

const Image* ImageIn(base::ByteView file) {
  const base::CodeObject object(file);
  for (std::size_t i = 0; i < object.section_count(); ++i) {
    const base::CodeSection section = object.Section(i);
    if (section.name == kImageSection) return section.bytes.Read<const Image*>(0);
  }
  return nullptr;
}

std::vector<const Image*> OpenPluginsIn(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code none;
  for (const auto& file : std::filesystem::directory_iterator(folder, none)) {
    if (file.path().native().ends_with(kPluginEnding)) paths.push_back(file.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<const Image*> images;
  for (const std::string& path : paths) {
    if (const Image* const image = OpenPlugin(path); image != nullptr) images.push_back(image);
  }
  return images;
}

std::vector<const Image*> PluginRegistry::ImagesFor(const ModuleList& list) {
  if (!loaded_) LoadAll();
  loaded_ = true;
  std::vector<const Image*> images = images_;
  std::copy_if(of_driver_.begin(), of_driver_.end(), std::back_inserter(images),
               [&](const Image* image) { return HasKernelOf(*image, list); });
  return images;
}

void PluginRegistry::LoadAll() {
  const PluginPaths paths = FindPluginPaths();
  if (!paths.beside_program.empty()) Load(paths.beside_program, false);
  for (const std::string& path : paths.listed) Load(path, true);
}

void PluginRegistry::Load(const std::string& path, bool required) {
  searched_ += (searched_.empty() ? "" : ", ") + path;
  if (!required && access(path.c_str(), R_OK) != 0) return;
  if (const Image* const image = OpenPlugin(path); image != nullptr) images_.push_back(image);
}

int ResidentBlocks(const Profile& profile, int block_threads, std::size_t shared_bytes) {
  constexpr int kReservedSharedBytes = 1024;
  constexpr int kMostBlocks = 32;
  const int by_threads = profile.threads_per_multiprocessor / block_threads;
  const int per_block_bytes = static_cast<int>(shared_bytes) + kReservedSharedBytes;
  return std::clamp(std::min(by_threads, profile.shared_per_multiprocessor_bytes / per_block_bytes),
                    0, kMostBlocks);
}

Kernel* Module::Add(const KernelEntry& entry) {
  auto kernel = std::make_unique<Kernel>();
  kernel->module = this;
  kernel->entry = &entry;
  return kernels.emplace(entry.name, std::move(kernel)).first->second.get();
}

Kernel* Module::GetKernel(const std::string& name) {
  if (const auto known = kernels.find(name); known != kernels.end()) return known->second.get();
  for (const Image* image : images) {
    for (std::uint32_t i = 0; i < image->kernel_count; ++i) {
      if (name != image->kernels[i].name) continue;
      const bool says_uses =
          image->version >= kImageVersionWithUses && image->kernel_uses != nullptr;
      Kernel* const kernel = Add(image->kernels[i]);
      kernel->uses = says_uses ? image->kernel_uses[i] : nullptr;
      kernel->always_runs = UsesServices(*image);
      return kernel;
    }
  }
  const KernelEntry* const entry = listed == nullptr ? nullptr : listed->FindKernel(name);
  if (entry == nullptr) return nullptr;
  Kernel* const kernel = Add(*entry);
  kernel->is_listed = true;
  return kernel;
}

const GlobalEntry* Module::GetGlobal(const std::string& name) const {
  for (const Image* image : images) {
    for (std::uint32_t i = 0; i < image->global_count; ++i) {
      if (name == image->globals[i].name) return &image->globals[i];
    }
  }
  return listed == nullptr ? nullptr : listed->FindVariable(name);
}

std::vector<Kernel*> Module::AllKernels() {
  std::vector<Kernel*> all;
  for (const Image* image : images) {
    for (std::uint32_t i = 0; i < image->kernel_count; ++i)
      all.push_back(GetKernel(image->kernels[i].name));
  }
  if (listed == nullptr) return all;
  for (const KernelEntry& entry : listed->kernels()) {
    Kernel* const kernel = GetKernel(entry.name);
    if (kernel->is_listed) all.push_back(kernel);
  }
  return all;
}

}  // namespace spillway::simulator
