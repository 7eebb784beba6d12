#include "simulator/driver/machine/kernel_names.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>

namespace spillway::simulator {

std::string Demangled(const char* name) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> demangled(
      abi::__cxa_demangle(name, nullptr, nullptr, &status), std::free);
  return status == 0 ? demangled.get() : name;
}

}  // namespace spillway::simulator
