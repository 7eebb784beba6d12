#include "simulator/driver/device/module.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "base/environment.h"
#include "simulator/driver/machine/profile.h"
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
         (image->version == kImageVersion || image->version == kImageVersionWithUses);
}

// Null for a file of a compiler of NVIDIA's.
const Image* ImageInElf(const char* file) {
  Elf64_Ehdr header;
  std::memcpy(&header, file, sizeof header);
  if (header.e_machine != kCudaMachine || header.e_shentsize != sizeof(Elf64_Shdr)) return nullptr;
  const auto* const sections = reinterpret_cast<const Elf64_Shdr*>(file + header.e_shoff);
  const char* const names = file + sections[header.e_shstrndx].sh_offset;
  for (int i = 0; i < header.e_shnum; ++i) {
    if (std::strcmp(names + sections[i].sh_name, kImageSection) != 0) continue;
    const Image* image = nullptr;
    std::memcpy(&image, file + sections[i].sh_offset, sizeof image);
    return image;
  }
  return nullptr;
}

}  // namespace

PluginPaths FindPluginPaths() {
  PluginPaths paths;
  if (const std::string program = ExecutablePath(); !program.empty())
    paths.beside_program = program + ".kernels.so";
  const char* listed = std::getenv(environment::kSimKernels);
  std::stringstream each(listed == nullptr ? "" : listed);
  for (std::string path; std::getline(each, path, ':');) {
    if (!path.empty()) paths.listed.push_back(path);
  }
  return paths;
}

const Image* ImageIn(const void* data) {
  if (std::memcmp(data, ELFMAG, SELFMAG) == 0) return ImageInElf(static_cast<const char*>(data));
  return IsImage(data) ? static_cast<const Image*>(data) : nullptr;
}

const std::vector<const Image*>& PluginRegistry::images() {
  if (!loaded_) LoadAll();
  loaded_ = true;
  return images_;
}

void PluginRegistry::LoadAll() {
  const PluginPaths paths = FindPluginPaths();
  if (!paths.beside_program.empty()) Load(paths.beside_program, false);
  for (const std::string& path : paths.listed) Load(path, true);
}

void PluginRegistry::Load(const std::string& path, bool required) {
  searched_ += (searched_.empty() ? "" : ", ") + path;
  if (!required && access(path.c_str(), R_OK) != 0) return;
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* const getter = library == nullptr ? nullptr : dlsym(library, kImageGetterName);
  const Image* image = getter == nullptr ? nullptr : reinterpret_cast<ImageGetter>(getter)();
  if (image == nullptr || !IsImage(image)) {
    const char* reason = getter == nullptr ? dlerror() : "its image has another version";
    std::fprintf(stderr, "simulated GPU: cannot use the kernel plug-in %s: %s\n", path.c_str(),
                 reason);
    return;
  }
  images_.push_back(image);
}

int ResidentBlocks(const Profile& profile, int block_threads, std::size_t shared_bytes) {
  constexpr int kReservedSharedBytes = 1024;
  constexpr int kMostBlocks = 32;
  const int by_threads = profile.threads_per_multiprocessor / block_threads;
  const int per_block_bytes = static_cast<int>(shared_bytes) + kReservedSharedBytes;
  return std::clamp(std::min(by_threads, profile.shared_per_multiprocessor_bytes / per_block_bytes),
                    0, kMostBlocks);
}

Kernel* Module::GetKernel(const std::string& name) {
  if (const auto known = kernels.find(name); known != kernels.end()) return known->second.get();
  for (const Image* image : images) {
    for (std::uint32_t i = 0; i < image->kernel_count; ++i) {
      if (name != image->kernels[i].name) continue;
      const bool says_uses =
          image->version >= kImageVersionWithUses && image->kernel_uses != nullptr;
      auto kernel = std::make_unique<Kernel>();
      kernel->module = this;
      kernel->entry = &image->kernels[i];
      kernel->uses = says_uses ? image->kernel_uses[i] : nullptr;
      return kernels.emplace(name, std::move(kernel)).first->second.get();
    }
  }
  return nullptr;
}

const GlobalEntry* Module::GetGlobal(const std::string& name) const {
  for (const Image* image : images) {
    for (std::uint32_t i = 0; i < image->global_count; ++i) {
      if (name == image->globals[i].name) return &image->globals[i];
    }
  }
  return nullptr;
}

std::vector<Kernel*> Module::AllKernels() {
  std::vector<Kernel*> all;
  for (const Image* image : images) {
    for (std::uint32_t i = 0; i < image->kernel_count; ++i)
      all.push_back(GetKernel(image->kernels[i].name));
  }
  return all;
}

}  // namespace spillway::simulator
