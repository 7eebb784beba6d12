#include <algorithm>
#include <cstdio>
#include <cstring>

#include "base/file.h"
#include "simulator/driver/calls/call.h"
#include "simulator/driver/calls/jit_report.h"
#include "simulator/driver/machine/compute_mode.h"
#include "simulator/driver/modules/read_module.h"

namespace spillway::simulator {
namespace {

Module& CheckedModule(Call& call, const void* handle) {
  const auto found = call.sim.modules.find(static_cast<Module*>(const_cast<void*>(handle)));
  Require(found != call.sim.modules.end(), CUDA_ERROR_INVALID_HANDLE);
  return *found->second;
}

Kernel& CheckedKernel(Call& call, const void* handle) {
  const auto found = call.sim.kernels.find(static_cast<Kernel*>(const_cast<void*>(handle)));
  Require(found != call.sim.kernels.end(), CUDA_ERROR_INVALID_HANDLE);
  return **found;
}

void RegisterGlobal(Simulator& sim, const GlobalEntry& global) {
  const auto base = reinterpret_cast<std::uintptr_t>(global.address);
  if (sim.allocations.FindBase(base) != nullptr) return;
  sim.allocations.Add({.base = base,
                       .size_bytes = global.size_bytes,
                       .kind = AllocationKind::kGlobal,
                       .context = nullptr});
}

void RegisterGlobals(Simulator& sim, const Image& image) {
  for (std::uint32_t i = 0; i < image.global_count; ++i) RegisterGlobal(sim, image.globals[i]);
}

void RegisterGlobals(Simulator& sim, const ListedImage& image) {
  for (const GlobalEntry& variable : image.variables()) RegisterGlobal(sim, variable);
}

template <class Handle>
void Add(Call& call, Handle* handle, std::unique_ptr<Module> module) {
  for (const Image* image : module->images) RegisterGlobals(call.sim, *image);
  if (module->listed != nullptr) RegisterGlobals(call.sim, *module->listed);
  *handle = reinterpret_cast<Handle>(module.get());
  call.sim.modules.emplace(module.get(), std::move(module));
}

std::unique_ptr<Module> Compiled(Call& call, base::ByteView bytes) {
  const Profile& profile = call.sim.profile;
  auto list = ReadModule(bytes, profile.compute_major * 10 + profile.compute_minor);
  Require(list.has_value(), CUDA_ERROR_INVALID_IMAGE);
  auto module = std::make_unique<Module>();
  module->images = call.sim.plugins.ImagesFor(*list);
  if (TheComputeMode() == ComputeMode::kTags)
    module->listed =
        call.sim.listed_images.emplace_back(std::make_unique<ListedImage>(*std::move(list))).get();
  return module;
}

std::unique_ptr<Module> Of(const Image* image) {
  auto module = std::make_unique<Module>();
  module->images = {image};
  return module;
}

template <class Handle>
void Load(Call& call, Handle* handle, base::ByteView bytes) {
  const Image* const image = ImageIn(bytes);
  Add(call, handle, image != nullptr ? Of(image) : Compiled(call, bytes));
}

template <class Handle>
void Load(Call& call, Handle* handle, const void* data) {
  Require(handle != nullptr && data != nullptr);
  const Image* const image = ImageAt(data);
  if (image != nullptr) return Add(call, handle, Of(image));
  Load(call, handle, ImageBytes(data));
}

struct JitOptions {
  unsigned count = 0;
  const CUjit_option* options = nullptr;
  void** values = nullptr;
};

template <class Action>
void Reported(const JitOptions& jit, Action action) {
  JitReport report(jit.count, jit.options, jit.values);
  try {
    action();
  } catch (const Failure& failure) {
    if (failure.code == CUDA_ERROR_INVALID_IMAGE)
      report.AddError(
          "error   : the image is no module: neither PTX, nor code object or fat binary\n");
    throw;
  }
}

template <class Handle>
CUresult LoadData(Handle* handle, const void* data, const JitOptions& jit = {}) {
  return WithContext([&](Call& call) { Reported(jit, [&] { Load(call, handle, data); }); });
}

template <class Handle>
CUresult LoadFile(Handle* handle, const char* path, const JitOptions& jit = {}) {
  return WithContext([&](Call& call) {
    Require(handle != nullptr && path != nullptr);
    const base::Result<std::string> bytes = base::ReadFile(path);
    Require(bytes.ok(), CUDA_ERROR_FILE_NOT_FOUND);
    Reported(jit, [&] { Load(call, handle, base::ByteView(bytes->data(), bytes->size())); });
  });
}

CUresult Unload(const void* handle) {
  return WithContext([&](Call& call) {
    Module& module = CheckedModule(call, handle);
    call.WaitForContext(*call.context);
    for (const auto& [name, kernel] : module.kernels) call.sim.kernels.erase(kernel.get());
    call.sim.modules.erase(&module);
  });
}

void SayThatKernelIsMissing(Call& call, const char* name) {
  static bool said = false;
  if (said) return;
  said = true;
  std::fprintf(stderr,
               "simulated GPU: no kernel '%s' in its plug-ins (searched: %s). tools/simkernels "
               "makes one from the source; without the source, set SPILLWAY_SIM_COMPUTE=tags\n",
               name, call.sim.plugins.searched().c_str());
}

template <class Handle>
CUresult GetKernel(Handle* handle, const void* module, const char* name) {
  return WithContext([&](Call& call) {
    Require(handle != nullptr && name != nullptr);
    Module& owner = CheckedModule(call, module);
    Kernel* const kernel = owner.GetKernel(name);
    if (kernel == nullptr && owner.listed == nullptr) SayThatKernelIsMissing(call, name);
    Require(kernel != nullptr, CUDA_ERROR_NOT_FOUND);
    call.sim.kernels.insert(kernel);
    *handle = reinterpret_cast<Handle>(kernel);
  });
}

CUresult GetGlobal(CUdeviceptr* address, std::size_t* bytes, const void* module, const char* name) {
  return WithContext([&](Call& call) {
    Require(name != nullptr && (address != nullptr || bytes != nullptr));
    const GlobalEntry* const global = CheckedModule(call, module).GetGlobal(name);
    Require(global != nullptr, CUDA_ERROR_NOT_FOUND);
    if (address != nullptr) *address = reinterpret_cast<CUdeviceptr>(global->address);
    if (bytes != nullptr) *bytes = global->size_bytes;
  });
}

CUresult CountKernels(unsigned* count, const void* module) {
  return WithContext([&](Call& call) {
    Require(count != nullptr);
    *count = static_cast<unsigned>(CheckedModule(call, module).AllKernels().size());
  });
}

template <class Handle>
CUresult Enumerate(Handle* handles, unsigned room, const void* module) {
  return WithContext([&](Call& call) {
    Require(handles != nullptr || room == 0);
    unsigned next = 0;
    for (Kernel* kernel : CheckedModule(call, module).AllKernels()) {
      if (next == room) break;
      call.sim.kernels.insert(kernel);
      handles[next++] = reinterpret_cast<Handle>(kernel);
    }
  });
}

CUresult ParamInfo(const void* handle, std::size_t index, std::size_t* offset, std::size_t* size) {
  return WithContext([&](Call& call) {
    const KernelEntry& entry = *CheckedKernel(call, handle).entry;
    Require(offset != nullptr && index < entry.parameter_count);
    *offset = entry.parameters[index].offset_bytes;
    if (size != nullptr) *size = entry.parameters[index].size_bytes;
  });
}

CUresult Name(const char** name, const void* handle) {
  return WithContext([&](Call& call) {
    Require(name != nullptr);
    *name = CheckedKernel(call, handle).entry->name;
  });
}

CUresult GetAttribute(int* value, CUfunction_attribute attribute, const void* handle) {
  return WithContext([&](Call& call) {
    const Kernel& kernel = CheckedKernel(call, handle);
    Require(value != nullptr && attribute >= 0 && attribute < CU_FUNC_ATTRIBUTE_MAX);
    const int architecture = call.sim.profile.compute_major * 10 + call.sim.profile.compute_minor;
    switch (attribute) {
      case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *value = 1024;
        break;
      case CU_FUNC_ATTRIBUTE_NUM_REGS:
        *value = 32;
        break;
      case CU_FUNC_ATTRIBUTE_PTX_VERSION:
      case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
        *value = architecture;
        break;
      case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *value = static_cast<int>(kernel.max_dynamic_shared_bytes);
        break;
      default: {
        const auto set = kernel.set_attributes.find(attribute);
        *value = set == kernel.set_attributes.end() ? 0 : set->second;
      }
    }
  });
}

CUresult SetAttribute(CUfunction_attribute attribute, int value, const void* handle) {
  return WithContext([&](Call& call) {
    Kernel& kernel = CheckedKernel(call, handle);
    if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
      Require(value >= 0 && value <= call.sim.profile.shared_per_block_optin_bytes);
      kernel.max_dynamic_shared_bytes = static_cast<std::size_t>(value);
      return;
    }
    Require(attribute >= CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT &&
            attribute < CU_FUNC_ATTRIBUTE_MAX);
    kernel.set_attributes[attribute] = value;
  });
}

CUresult CheckOnly(const void* kernel) {
  return WithContext([&](Call& call) { CheckedKernel(call, kernel); });
}

CUresult Occupancy(int* blocks, const void* kernel, int block_size, std::size_t shared_bytes) {
  return WithContext([&](Call& call) {
    CheckedKernel(call, kernel);
    Require(blocks != nullptr && block_size > 0);
    *blocks = block_size > 1024 ? 0 : ResidentBlocks(call.sim.profile, block_size, shared_bytes);
  });
}

CUresult BestBlockSize(int* min_grid, int* best, const void* kernel, CUoccupancyB2DSize shared_of,
                       std::size_t shared_bytes, int limit) {
  return WithContext([&](Call& call) {
    CheckedKernel(call, kernel);
    Require(min_grid != nullptr && best != nullptr && limit >= 0);
    const int top = limit == 0 ? 1024 : std::min(limit, 1024);
    int best_threads = 0;
    *best = *min_grid = 0;
    for (int size = top; size >= 1; size -= size % 32 == 0 ? 32 : size % 32) {
      const int blocks = ResidentBlocks(call.sim.profile, size,
                                        shared_of != nullptr ? shared_of(size) : shared_bytes);
      if (blocks * size <= best_threads) continue;
      best_threads = blocks * size;
      *best = size;
      *min_grid = blocks * call.sim.profile.multiprocessors;
    }
  });
}

}  // namespace
}  // namespace spillway::simulator

using namespace spillway::simulator;

SIM_API(cuModuleLoad)(CUmodule* module, const char* path) { return LoadFile(module, path); }
SIM_API(cuModuleLoadData)(CUmodule* module, const void* image) { return LoadData(module, image); }
SIM_API(cuModuleLoadDataEx)
(CUmodule* module, const void* image, unsigned int count, CUjit_option* options, void** values) {
  return LoadData(module, image, {count, options, values});
}
SIM_API(cuModuleLoadFatBinary)(CUmodule* module, const void* image) {
  return LoadData(module, image);
}
SIM_API(cuModuleUnload)(CUmodule module) { return Unload(module); }
SIM_API(cuModuleGetFunction)(CUfunction* function, CUmodule module, const char* name) {
  return GetKernel(function, module, name);
}
SIM_API(cuModuleGetFunctionCount)(unsigned int* count, CUmodule module) {
  return CountKernels(count, module);
}
SIM_API(cuModuleEnumerateFunctions)(CUfunction* functions, unsigned int room, CUmodule module) {
  return Enumerate(functions, room, module);
}
SIM_API(cuModuleGetGlobal_v2)
(CUdeviceptr* address, size_t* bytes, CUmodule module, const char* name) {
  return GetGlobal(address, bytes, module, name);
}
SIM_API(cuModuleGetLoadingMode)(CUmoduleLoadingMode* mode) {
  return WithDriver([&](Call&) {
    Require(mode != nullptr);
    *mode = CU_MODULE_LAZY_LOADING;
  });
}

SIM_API(cuLibraryLoadData)
(CUlibrary* library, const void* code, CUjit_option* jit_options, void** jit_values,
 unsigned int jit_count, CUlibraryOption* options, void** values, unsigned int count) {
  (void)options;
  (void)values;
  (void)count;
  return WithDriver([&](Call& call) {
    Reported({jit_count, jit_options, jit_values}, [&] { Load(call, library, code); });
  });
}
SIM_API(cuLibraryLoadFromFile)
(CUlibrary* library, const char* path, CUjit_option* jit_options, void** jit_values,
 unsigned int jit_count, CUlibraryOption* options, void** values, unsigned int count) {
  (void)options;
  (void)values;
  (void)count;
  return LoadFile(library, path, {jit_count, jit_options, jit_values});
}
SIM_API(cuLibraryUnload)(CUlibrary library) { return Unload(library); }
SIM_API(cuLibraryGetKernel)(CUkernel* kernel, CUlibrary library, const char* name) {
  return GetKernel(kernel, library, name);
}
SIM_API(cuLibraryGetKernelCount)(unsigned int* count, CUlibrary library) {
  return CountKernels(count, library);
}
SIM_API(cuLibraryEnumerateKernels)(CUkernel* kernels, unsigned int room, CUlibrary library) {
  return Enumerate(kernels, room, library);
}
SIM_API(cuLibraryGetModule)(CUmodule* module, CUlibrary library) {
  return WithContext([&](Call& call) {
    Require(module != nullptr);
    *module = reinterpret_cast<CUmodule>(&CheckedModule(call, library));
  });
}
SIM_API(cuLibraryGetGlobal)
(CUdeviceptr* address, size_t* bytes, CUlibrary library, const char* name) {
  return GetGlobal(address, bytes, library, name);
}
SIM_API(cuLibraryGetManaged)
(CUdeviceptr* address, size_t* bytes, CUlibrary library, const char* name) {
  return GetGlobal(address, bytes, library, name);
}

SIM_API(cuKernelGetFunction)(CUfunction* function, CUkernel kernel) {
  return WithContext([&](Call& call) {
    Require(function != nullptr);
    *function = reinterpret_cast<CUfunction>(&CheckedKernel(call, kernel));
  });
}
SIM_API(cuKernelGetLibrary)(CUlibrary* library, CUkernel kernel) {
  return WithContext([&](Call& call) {
    Require(library != nullptr);
    *library = reinterpret_cast<CUlibrary>(CheckedKernel(call, kernel).module);
  });
}
SIM_API(cuFuncGetModule)(CUmodule* module, CUfunction function) {
  return WithContext([&](Call& call) {
    Require(module != nullptr);
    *module = reinterpret_cast<CUmodule>(CheckedKernel(call, function).module);
  });
}
SIM_API(cuKernelGetName)(const char** name, CUkernel kernel) { return Name(name, kernel); }
SIM_API(cuFuncGetName)(const char** name, CUfunction function) { return Name(name, function); }
SIM_API(cuKernelGetParamInfo)(CUkernel kernel, size_t index, size_t* offset, size_t* size) {
  return ParamInfo(kernel, index, offset, size);
}
SIM_API(cuFuncGetParamInfo)(CUfunction function, size_t index, size_t* offset, size_t* size) {
  return ParamInfo(function, index, offset, size);
}
SIM_API(cuKernelGetAttribute)
(int* value, CUfunction_attribute attribute, CUkernel kernel, CUdevice device) {
  return device != 0 ? CUDA_ERROR_INVALID_DEVICE : GetAttribute(value, attribute, kernel);
}
SIM_API(cuFuncGetAttribute)(int* value, CUfunction_attribute attribute, CUfunction function) {
  return GetAttribute(value, attribute, function);
}
SIM_API(cuKernelSetAttribute)
(CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice device) {
  return device != 0 ? CUDA_ERROR_INVALID_DEVICE : SetAttribute(attribute, value, kernel);
}
SIM_API(cuFuncSetAttribute)(CUfunction function, CUfunction_attribute attribute, int value) {
  return SetAttribute(attribute, value, function);
}
SIM_API(cuKernelSetCacheConfig)(CUkernel kernel, CUfunc_cache config, CUdevice device) {
  (void)config;
  return device != 0 ? CUDA_ERROR_INVALID_DEVICE : CheckOnly(kernel);
}
SIM_API(cuFuncSetCacheConfig)(CUfunction function, CUfunc_cache config) {
  (void)config;
  return CheckOnly(function);
}
SIM_API(cuFuncSetSharedMemConfig)(CUfunction function, CUsharedconfig config) {
  (void)config;
  return CheckOnly(function);
}
SIM_API(cuFuncLoad)(CUfunction function) { return CheckOnly(function); }
SIM_API(cuFuncIsLoaded)(CUfunctionLoadingState* state, CUfunction function) {
  return WithContext([&](Call& call) {
    Require(state != nullptr);
    CheckedKernel(call, function);
    *state = CU_FUNCTION_LOADING_STATE_LOADED;
  });
}

SIM_API(cuOccupancyMaxActiveBlocksPerMultiprocessor)
(int* blocks, CUfunction function, int block_size, size_t shared_bytes) {
  return Occupancy(blocks, function, block_size, shared_bytes);
}
SIM_API(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags)
(int* blocks, CUfunction function, int block_size, size_t shared_bytes, unsigned int flags) {
  (void)flags;
  return Occupancy(blocks, function, block_size, shared_bytes);
}
SIM_API(cuOccupancyMaxPotentialBlockSize)
(int* min_grid, int* block_size, CUfunction function, CUoccupancyB2DSize shared_of,
 size_t shared_bytes, int limit) {
  return BestBlockSize(min_grid, block_size, function, shared_of, shared_bytes, limit);
}
SIM_API(cuOccupancyMaxPotentialBlockSizeWithFlags)
(int* min_grid, int* block_size, CUfunction function, CUoccupancyB2DSize shared_of,
 size_t shared_bytes, int limit, unsigned int flags) {
  (void)flags;
  return BestBlockSize(min_grid, block_size, function, shared_of, shared_bytes, limit);
}
SIM_API(cuOccupancyAvailableDynamicSMemPerBlock)
(size_t* bytes, CUfunction function, int blocks, int block_size) {
  return WithContext([&](Call& call) {
    CheckedKernel(call, function);
    Require(bytes != nullptr && blocks > 0 && block_size > 0);
    const int share = call.sim.profile.shared_per_multiprocessor_bytes / blocks - 1024;
    *bytes = static_cast<std::size_t>(
        std::clamp(share, 0, call.sim.profile.shared_per_block_optin_bytes));
  });
}
