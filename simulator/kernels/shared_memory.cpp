#include "simulator/kernels/shared_memory.h"

#include <cstring>

#include "simulator/kernels/block_executor.h"

using spillway::simulator::executor::SharedVariable;

// The linker defines these around the section. Weak: a file may have no shared variables.
extern "C" {
extern const SharedVariable __start_spillway_shared_variables[]
    __attribute__((weak, visibility("hidden")));
extern const SharedVariable __stop_spillway_shared_variables[]
    __attribute__((weak, visibility("hidden")));
}

namespace spillway::simulator::executor {
namespace {

template <typename Visit>
void ForEachVariable(Visit visit) {
  for (const SharedVariable* variable = __start_spillway_shared_variables;
       variable != __stop_spillway_shared_variables; ++variable)
    visit(static_cast<char*>(variable->address), variable->size_bytes);
  visit(reinterpret_cast<char*>(dynamic_shared), DynamicSharedBytes());
}

}  // namespace

void SaveSharedMemory(std::vector<char>& to) {
  to.clear();
  ForEachVariable(
      [&](const char* data, std::size_t bytes) { to.insert(to.end(), data, data + bytes); });
}

void RestoreSharedMemory(const std::vector<char>& from) {
  const char* next = from.data();
  ForEachVariable([&](char* data, std::size_t bytes) {
    std::memcpy(data, next, bytes);
    next += bytes;
  });
}

}  // namespace spillway::simulator::executor
