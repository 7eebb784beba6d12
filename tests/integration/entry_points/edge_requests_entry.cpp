// Makes unusual cuGetProcAddress requests in both binary interfaces, and prints the answers.
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>

#include "tests/integration/entry_points/whereabouts.h"

int main() {
  using First = int (*)(const char*, void**, int, uint64_t);
  using Second = int (*)(const char*, void**, int, uint64_t, int*);
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
  const auto first = reinterpret_cast<First>(dlsym(driver, "cuGetProcAddress"));
  const auto second = reinterpret_cast<Second>(dlsym(driver, "cuGetProcAddress_v2"));
  if (first == nullptr || second == nullptr) return 3;

  const char* const names[] = {
      "", nullptr, "cu", "cuMemAlloc", "cuMemAlloc_v2", "cuNoSuchFunction", "cublasCreate"};
  for (const char* name : names) {
    for (const uint64_t flags : {0, 1, 2, 3, 255}) {
      for (const int version : {0, 3020, 12000, 99999}) {
        void* one = nullptr;
        void* two = nullptr;
        void* three = nullptr;
        int status = -1;
        const int answers[] = {first(name, &one, version, flags),
                               second(name, &two, version, flags, &status),
                               second(name, &three, version, flags, nullptr)};
        using spillway::test::Whereabouts;
        std::printf("'%s' %d %d: %d %d %d status %d %s %s %s\n", name == nullptr ? "(null)" : name,
                    version, static_cast<int>(flags), answers[0], answers[1], answers[2], status,
                    Whereabouts(one).c_str(), Whereabouts(two).c_str(), Whereabouts(three).c_str());
      }
    }
  }
  std::printf("no place: %d %d\n", first("cuInit", nullptr, 12000, 0),
              second("cuInit", nullptr, 12000, 0, nullptr));
  return 0;
}
