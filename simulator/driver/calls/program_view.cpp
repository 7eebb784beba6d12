#include "simulator/driver/calls/program_view.h"

#include <dlfcn.h>

#include <atomic>

#include "simulator/driver/calls/launch.h"

namespace spillway::simulator {
namespace {

using Query = decltype(&cuPointerGetAttributes);

const void* LibraryOf(const void* code) {
  Dl_info found;
  return dladdr(code, &found) == 0 ? nullptr : found.dli_fbase;
}

std::atomic<Query> foreign_query{nullptr};  // null: this library answers itself

bool Ask(Query query, NamedMemory& named) {
  CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR,
                                      CU_POINTER_ATTRIBUTE_MAPPING_SIZE,
                                      CU_POINTER_ATTRIBUTE_BUFFER_ID};
  unsigned long long id = 0;
  void* answers[] = {&named.base, &named.size_bytes, &id};
  const UnchargedCalls uncharged;
  if (query(3, attributes, answers, named.address) != CUDA_SUCCESS) return false;
  named.id = id;
  return named.Holds(named.address);
}

bool LookUp(Simulator& sim, NamedMemory& named) {
  if (const Allocation* const found = sim.allocations.Find(named.address); found != nullptr) {
    named.base = found->base;
    named.size_bytes = found->size_bytes;
    named.id = found->id;
    return true;
  }
  // Freed memory of pools and heaps stays mapped. It is nobody's.
  CUmemAllocationProp properties;
  CUdeviceptr base = 0;
  if (!sim.vmm.FindMapping(named.address, properties, base, named.size_bytes)) return false;
  named.base = base;
  named.id = 0;
  return true;
}

}  // namespace

// The search begins at the program: this library may have been opened so that its own symbols come
// first.
void FindProgramView() {
  void* const found = dlsym(dlopen(nullptr, RTLD_LAZY), "cuPointerGetAttributes");
  const bool is_foreign =
      found != nullptr && LibraryOf(found) != LibraryOf(reinterpret_cast<void*>(&FindProgramView));
  foreign_query = is_foreign ? reinterpret_cast<Query>(found) : nullptr;
}

std::vector<NamedMemory> MemoryNamedBy(Call& call, const Arguments& arguments) {
  std::vector<NamedMemory> all;
  for (const auto& [offset_bytes, word] : arguments.AlignedWords()) {
    NamedMemory named{.offset_bytes = offset_bytes, .address = word};
    if (LookUp(call.sim, named)) all.push_back(named);
  }
  const Query query = foreign_query;
  if (query == nullptr || all.empty()) return all;
  call.lock.unlock();
  std::erase_if(all, [query](NamedMemory& named) { return !Ask(query, named); });
  call.lock.lock();
  return all;
}

}  // namespace spillway::simulator
