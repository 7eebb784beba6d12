// A driver-API program that looks its functions up by name. The first argument says how:
//
//   dlsym LIBRARY [deepbind|noload|other-namespace]   dlopen(LIBRARY), dlsym
//   proc-address LIBRARY          dlopen(LIBRARY), cuGetProcAddress in both binary interfaces
//   default | next                dlsym(RTLD_DEFAULT), dlsym(RTLD_NEXT)
//   plugin LIBRARY [deepbind]     opens a plug-in that is linked with -lcuda, which reports
//   late-plugin LIBRARY           the same, after CUDA has been used
//   names LIBRARY FILE            looks every name in FILE up with dlsym
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

#include "tests/integration/entry_points/whereabouts.h"

namespace {

using spillway::test::Whereabouts;

constexpr const char* kProbes[] = {"cuMemAlloc_v2", "cuLaunchKernel_ptsz", "cuDeviceGetCount",
                                   "cuNoSuchFunction", "cuFromTheFuture"};

void* OpenOrDie(const char* library, const char* how) {
  const bool deep = how != nullptr && std::strcmp(how, "deepbind") == 0;
  const bool other = how != nullptr && std::strcmp(how, "other-namespace") == 0;
  void* const handle = other ? dlmopen(LM_ID_NEWLM, library, RTLD_NOW)
                             : dlopen(library, RTLD_NOW | RTLD_LOCAL | (deep ? RTLD_DEEPBIND : 0));
  if (handle == nullptr) std::printf("dlopen failed: %s\n", dlerror());
  return handle;
}

int ReportNames(void* handle) {
  for (const char* name : kProbes)
    std::printf("%s %s\n", name, Whereabouts(dlsym(handle, name)).c_str());
  using Init = int (*)(unsigned);
  using Count = int (*)(int*);
  const auto init = reinterpret_cast<Init>(dlsym(handle, "cuInit"));
  const auto get_count = reinterpret_cast<Count>(dlsym(handle, "cuDeviceGetCount"));
  if (init == nullptr || get_count == nullptr) return 3;
  int count = -1;
  const int initialised = init(0);
  const int counted = get_count(&count);
  std::printf("cuInit=%d cuDeviceGetCount=%d devices=%d\n", initialised, counted, count);
  return 0;
}

void UseCuda() {
  const auto init =
      reinterpret_cast<int (*)(unsigned)>(dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuInit"));
  if (init == nullptr || init(0) != 0) std::printf("cuInit failed\n");
}

int ReportProcAddresses(void* handle) {
  using First = int (*)(const char*, void**, int, uint64_t);
  using Second = int (*)(const char*, void**, int, uint64_t, int*);
  const auto first = reinterpret_cast<First>(dlsym(handle, "cuGetProcAddress"));
  const auto second = reinterpret_cast<Second>(dlsym(handle, "cuGetProcAddress_v2"));
  if (first == nullptr || second == nullptr) return 3;
  for (const char* name :
       {"cuMemAlloc", "cuLaunchKernel", "cuDeviceGetCount", "cuNoSuchFunction"}) {
    void* old_way = nullptr;
    void* new_way = nullptr;
    int status = -1;
    first(name, &old_way, 12000, 0);
    second(name, &new_way, 12000, 0, &status);
    std::printf("%s %s %s\n", name, Whereabouts(old_way).c_str(), Whereabouts(new_way).c_str());
  }
  void* through_itself = nullptr;
  second("cuGetProcAddress", &through_itself, 12000, 0, nullptr);
  std::printf("cuGetProcAddress %s\n", Whereabouts(through_itself).c_str());
  return 0;
}

int ReportPlugin(void* plugin) {
  using Report = int (*)();
  const auto report = reinterpret_cast<Report>(dlsym(plugin, "report_linked_entry"));
  return report == nullptr ? 3 : report();
}

int ReportNamesOf(void* handle, const char* file) {
  std::ifstream names(file);
  for (std::string name; names >> name;) {
    std::printf("%s %s\n", name.c_str(), Whereabouts(dlsym(handle, name.c_str())).c_str());
  }
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  const std::string mode = count > 1 ? arguments[1] : "";
  if (mode == "default") return ReportNames(RTLD_DEFAULT);
  if (mode == "next") return ReportNames(RTLD_NEXT);
  if (count < 3) return 2;
  if (mode == "late-plugin") UseCuda();
  void* const handle = OpenOrDie(arguments[2], count > 3 ? arguments[3] : nullptr);
  if (handle == nullptr) return 4;
  if (mode == "dlsym") return ReportNames(handle);
  if (mode == "proc-address") return ReportProcAddresses(handle);
  if (mode == "plugin" || mode == "late-plugin") return ReportPlugin(handle);
  if (mode == "names" && count > 3) return ReportNamesOf(handle, arguments[3]);
  return 2;
}
