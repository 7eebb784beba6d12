// Calls every function of the driver with zeros, and prints those that returned another's number: a
// hook that calls another form would.
#include <dlfcn.h>

#include <cstdio>

#include "tests/integration/entry_points/tags.h"

int main() {
  // As many words as the longest signature needs, including structs by value.
  using AnyFunction =
      int (*)(long, long, long, long, long, long, long, long, long, long, long, long, long, long);
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
  int answered = 0;
  for (const auto& symbol : spillway::test::kTaggedSymbols) {
    const auto function = reinterpret_cast<AnyFunction>(dlsym(driver, symbol.name));
    const int answer = function == nullptr ? 0 : function(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    answered += answer == symbol.tag;
    if (answer != symbol.tag)
      std::printf("%s answered %d, not %d\n", symbol.name, answer, symbol.tag);
  }
  std::printf("%d answered\n", answered);
  return 0;
}
