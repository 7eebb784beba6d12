#include "simulator/driver/calls/program_view.h"

#include <dlfcn.h>

#include "simulator/driver/calls/launch.h"

namespace spillway::simulator {
namespace {

using Query = decltype(&cuPointerGetAttributes);

const void* LibraryOf(const void* code) {
  Dl_info found;
  return dladdr(code, &found) == 0 ? nullptr : found.dli_fbase;
}

// The process's entry point if another library has it, else null.
Query ForeignQuery() {
  static const Query query = [] {
    void* const found = dlsym(RTLD_DEFAULT, "cuPointerGetAttributes");
    const bool is_foreign =
        found != nullptr && LibraryOf(found) != LibraryOf(reinterpret_cast<void*>(&LibraryOf));
    return is_foreign ? reinterpret_cast<Query>(found) : nullptr;
  }();
  return query;
}

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
  const Mapping* const mapping =
      sim.addresses.Contains(named.address) ? sim.addresses.Find(named.address) : nullptr;
  if (mapping == nullptr) return false;
  named.base = mapping->base;
  named.size_bytes = mapping->size_bytes;
  named.id = 0;
  return true;
}

}  // namespace

std::vector<NamedMemory> MemoryNamedBy(Call& call, const Arguments& arguments) {
  std::vector<NamedMemory> all;
  for (const auto& [offset_bytes, word] : arguments.AlignedWords()) {
    NamedMemory named{.offset_bytes = offset_bytes, .address = word};
    if (LookUp(call.sim, named)) all.push_back(named);
  }
  const Query query = ForeignQuery();
  if (query == nullptr || all.empty()) return all;
  call.lock.unlock();
  for (NamedMemory& named : all) {
    NamedMemory seen = named;
    if (Ask(query, seen)) named = seen;
  }
  call.lock.lock();
  return all;
}

}  // namespace spillway::simulator
