#include "simulator/runtime/registry.h"

#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "simulator/runtime/unique_names.h"

namespace spillway::simulator::runtime {
namespace {

struct Registry {
  std::mutex mutex;
  // guarded by mutex
  std::vector<std::unique_ptr<FatBinary>> binaries;
  std::vector<std::unique_ptr<Kernel>> kernels;
  std::vector<std::unique_ptr<Variable>> variables;
  std::unordered_map<const void*, Kernel*> kernel_of;
  std::unordered_map<const void*, Variable*> variable_of;
};

Registry& Registered() {
  static auto* const registry = new Registry;
  return *registry;
}

CUresult Load(FatBinary& binary) {
  if (binary.library) return CUDA_SUCCESS;
  return Driver().cuLibraryLoadData(&binary.library, binary.image, nullptr, nullptr, 0, nullptr,
                                    nullptr, 0);
}

// They differ only for internal names.
template <typename Ask>
CUresult ByEitherName(const std::string& name, Ask ask) {
  const std::string common = WithoutFileMarks(name);
  const CUresult result = ask(common.c_str());
  return result == CUDA_ERROR_NOT_FOUND && common != name ? ask(name.c_str()) : result;
}

CUresult Resolve(Kernel& kernel) {
  if (kernel.handle) return CUDA_SUCCESS;
  const CUresult loaded = Load(*kernel.binary);
  if (loaded != CUDA_SUCCESS) return loaded;
  return ByEitherName(kernel.name, [&](const char* name) {
    return Driver().cuLibraryGetKernel(&kernel.handle, kernel.binary->library, name);
  });
}

CUresult Resolve(Variable& variable) {
  if (variable.address) return CUDA_SUCCESS;
  const CUresult loaded = Load(*variable.binary);
  if (loaded != CUDA_SUCCESS) return loaded;
  return ByEitherName(variable.name, [&](const char* name) {
    if (variable.host_pointer &&
        Driver().cuLibraryGetManaged(&variable.address, &variable.size_bytes,
                                     variable.binary->library, name) == CUDA_SUCCESS) {
      return CUDA_SUCCESS;
    }
    return Driver().cuLibraryGetGlobal(&variable.address, &variable.size_bytes,
                                       variable.binary->library, name);
  });
}

void AddKey(Registry& registry, Kernel& kernel, const void* key) {
  registry.kernel_of[key] = &kernel;
  kernel.binary->kernel_keys.push_back(key);
}

// Another fat binary may have taken a key over.
template <class Map>
void Forget(Map& map, std::vector<const void*>& keys, const FatBinary& binary) {
  for (const void* key : std::exchange(keys, {})) {
    const auto found = map.find(key);
    if (found != map.end() && found->second->binary == &binary) map.erase(found);
  }
}

void AddVariable(FatBinary* binary, const void* key, void** host_pointer, const char* name) {
  Registry& registry = Registered();
  std::lock_guard lock(registry.mutex);
  registry.variables.push_back(std::make_unique<Variable>(Variable{binary, name, host_pointer}));
  registry.variable_of[key] = registry.variables.back().get();
  binary->variable_keys.push_back(key);
}

}  // namespace

FatBinary* RegisterBinary(const void* image) {
  Registry& registry = Registered();
  std::lock_guard lock(registry.mutex);
  registry.binaries.push_back(std::make_unique<FatBinary>(FatBinary{image}));
  return registry.binaries.back().get();
}

void RegisterKernel(FatBinary* binary, const void* host_function, const char* name) {
  Registry& registry = Registered();
  std::lock_guard lock(registry.mutex);
  registry.kernels.push_back(std::make_unique<Kernel>(Kernel{binary, name}));
  Kernel* const kernel = registry.kernels.back().get();
  AddKey(registry, *kernel, host_function);
  AddKey(registry, *kernel, kernel);
}

void RegisterVariable(FatBinary* binary, const void* host_variable, const char* name) {
  AddVariable(binary, host_variable, nullptr, name);
}

void RegisterManaged(FatBinary* binary, void** host_pointer, const char* name) {
  AddVariable(binary, host_pointer, host_pointer, name);
}

void ForgetBinary(FatBinary* binary) {
  Registry& registry = Registered();
  std::lock_guard lock(registry.mutex);
  Forget(registry.kernel_of, binary->kernel_keys, *binary);
  Forget(registry.variable_of, binary->variable_keys, *binary);
}

Kernel* FindKernel(const void* key) {
  Registry& registry = Registered();
  std::lock_guard lock(registry.mutex);
  const auto found = registry.kernel_of.find(key);
  return found == registry.kernel_of.end() ? nullptr : found->second;
}

cudaError_t ResolveKernel(const void* key, CUkernel* handle) {
  Registry& registry = Registered();
  std::lock_guard lock(registry.mutex);
  const auto found = registry.kernel_of.find(key);
  if (found == registry.kernel_of.end()) return cudaErrorInvalidDeviceFunction;
  Kernel& kernel = *found->second;
  const CUresult result = Resolve(kernel);
  if (result == CUDA_ERROR_NOT_FOUND) return cudaErrorInvalidDeviceFunction;
  if (result != CUDA_SUCCESS) return ToRuntime(result);
  if (!registry.kernel_of.contains(kernel.handle)) AddKey(registry, kernel, kernel.handle);
  *handle = kernel.handle;
  return cudaSuccess;
}

cudaError_t ResolveVariable(const void* symbol, CUdeviceptr* address, std::size_t* size_bytes) {
  Registry& registry = Registered();
  std::lock_guard lock(registry.mutex);
  const auto found = registry.variable_of.find(symbol);
  if (found == registry.variable_of.end()) return cudaErrorInvalidSymbol;
  const CUresult result = Resolve(*found->second);
  if (result == CUDA_ERROR_NOT_FOUND) return cudaErrorInvalidSymbol;
  *address = found->second->address;
  *size_bytes = found->second->size_bytes;
  return ToRuntime(result);
}

cudaError_t PublishManaged() {
  Registry& registry = Registered();
  std::lock_guard lock(registry.mutex);
  for (const auto& variable : registry.variables) {
    if (!variable->host_pointer) continue;
    const CUresult result = Resolve(*variable);
    if (result != CUDA_SUCCESS) return ToRuntime(result);
    *variable->host_pointer = reinterpret_cast<void*>(variable->address);
  }
  return cudaSuccess;
}

}  // namespace spillway::simulator::runtime
