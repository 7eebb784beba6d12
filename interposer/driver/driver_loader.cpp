#include "interposer/driver/driver_loader.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include <atomic>

#include "base/environment.h"
#include "base/file.h"
#include "interposer/driver/driver_search.h"
#include "interposer/driver/real_dlsym.h"

namespace spillway::driver {
namespace {

constinit std::atomic<void*> opened_driver{nullptr};
constinit std::atomic<bool> driver_is_missing{false};
// Initial-exec: a preloaded library is in the static TLS block, so the access needs no call.
constinit thread_local bool opening __attribute__((tls_model("initial-exec"))) = false;

// A second copy of this library exports its own dlsym. NVIDIA's driver uses the C library's.
bool IsSpillway(void* library) {
  if (library == OwnLibrary()) return true;
  void* const its_dlsym = RealDlsym()(library, "dlsym");
  return its_dlsym != nullptr && LibraryOf(its_dlsym) == library;
}

void* TryToOpen(const char* path) {
  void* const library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) return nullptr;
  if (IsSpillway(library) || RealDlsym()(library, "cuInit") == nullptr) {
    dlclose(library);
    return nullptr;
  }
  return library;
}

void* OpenAskedFor(const char* path) {
  if (IsStubLibrary(path)) {
    fprintf(stderr, "spillway: %s=%s is the toolkit's stub library, not a driver\n",
            environment::kDriver, path);
    return nullptr;
  }
  void* const library = TryToOpen(path);
  if (library == nullptr) {
    const char* const reason = dlerror();
    fprintf(stderr, "spillway: %s=%s cannot be used: %s\n", environment::kDriver, path,
            reason == nullptr ? "it is no CUDA driver" : reason);
  }
  return library;
}

void* OpenFirstFound() {
  const std::string cache = base::ReadFile("/etc/ld.so.cache").value_or("");
  for (const std::string& path : DriverCandidates(getenv("LD_LIBRARY_PATH"), cache)) {
    if (void* const library = TryToOpen(path.c_str())) return library;
  }
  return nullptr;
}

}  // namespace

void* OpenDriver() {
  if (void* const open = opened_driver.load(std::memory_order_acquire)) return open;
  if (opening || driver_is_missing.load(std::memory_order_acquire)) return nullptr;

  opening = true;
  const char* const asked_for = getenv(environment::kDriver);
  void* const found =
      asked_for != nullptr && asked_for[0] != '\0' ? OpenAskedFor(asked_for) : OpenFirstFound();
  opening = false;

  if (found == nullptr) {
    driver_is_missing.store(true, std::memory_order_release);
    return nullptr;
  }
  void* first = nullptr;
  return opened_driver.compare_exchange_strong(first, found) ? found : first;
}

void* OpenedDriver() { return opened_driver.load(std::memory_order_acquire); }

bool DriverIsBeingOpened() { return opening; }

void* FindInDriver(void* driver, const char* name) { return RealDlsym()(driver, name); }

}  // namespace spillway::driver
