// Makes every cuGetProcAddress request of FILE ("NAME ver=V flags=F" a line) and prints the
// locations.
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>

#include "tests/integration/entry_points/whereabouts.h"

int main(int count, char** arguments) {
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (count < 2 || driver == nullptr) return 2;
  using GetProcAddress = int (*)(const char*, void**, int, uint64_t, int*);
  const auto get = reinterpret_cast<GetProcAddress>(dlsym(driver, "cuGetProcAddress_v2"));
  if (get == nullptr) return 3;

  const auto report = [&](const std::string& name, int version, unsigned flags) {
    void* function = nullptr;
    int status = -1;
    const int answer = get(name.c_str(), &function, version, flags, &status);
    std::printf("%s %d %u answer=%d status=%d %s\n", name.c_str(), version, flags, answer, status,
                spillway::test::Whereabouts(function).c_str());
  };
  report("", 0, 0);
  std::ifstream requests(arguments[1]);
  for (std::string line; std::getline(requests, line);) {
    char name[128];
    int version = 0;
    unsigned flags = 0;
    if (std::sscanf(line.c_str(), "%127s ver=%d flags=%u", name, &version, &flags) == 3)
      report(name, version, flags);
  }
  return 0;
}
