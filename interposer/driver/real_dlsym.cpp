#include "interposer/driver/real_dlsym.h"

#include <dlfcn.h>
#include <link.h>

#include <atomic>

namespace spillway::driver {
namespace {

void* NoSymbol(void*, const char*) { return nullptr; }

std::atomic<Dlsym> real_dlsym{nullptr};

// In libc since GLIBC_2.34; before, dlsym has its architecture's first version.
Dlsym FindRealDlsym() {
  for (const char* version : {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"}) {
    if (void* const found = dlvsym(RTLD_NEXT, "dlsym", version))
      return reinterpret_cast<Dlsym>(found);
  }
  return &NoSymbol;
}

}  // namespace

Dlsym RealDlsym() {
  Dlsym found = real_dlsym.load(std::memory_order_acquire);
  if (found == nullptr) {
    found = FindRealDlsym();
    real_dlsym.store(found, std::memory_order_release);
  }
  return found;
}

// glibc's library handle is the link map, which dladdr1 finds for an address.
void* LibraryOf(const void* address) {
  Dl_info info;
  void* map = nullptr;
  if (dladdr1(const_cast<void*>(address), &info, &map, RTLD_DL_LINKMAP) == 0) return nullptr;
  return map;
}

// dladdr1 searches all symbols, and every dlsym of the process needs the answer.
void* OwnLibrary() {
  static constinit std::atomic<void*> own{nullptr};
  void* library = own.load(std::memory_order_relaxed);
  if (library == nullptr) {
    library = LibraryOf(reinterpret_cast<const void*>(&OwnLibrary));
    own.store(library, std::memory_order_relaxed);
  }
  return library;
}

}  // namespace spillway::driver
