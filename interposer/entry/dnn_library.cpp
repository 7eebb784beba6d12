#include "interposer/entry/dnn_library.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "interposer/driver/real_dlsym.h"
#include "interposer/entry/dnn_abi.h"

namespace spillway::entry {
namespace {

using driver::LibraryOf;
using driver::RealDlsym;

// Cache of look-ups for pairs of addresses. An entry, once taken, never changes. A pair whose
// possible entries are all taken is looked up each time.
struct Known {
  std::atomic<std::uintptr_t> key{0};
  std::atomic<void*> value{nullptr};
};
constexpr std::size_t kPlaces = 4096, kProbes = 8;
constinit Known known[kPlaces];

std::uintptr_t KeyOf(const void* one, const void* other) {
  const std::uintptr_t mixed = reinterpret_cast<std::uintptr_t>(one) * 0x9e3779b97f4a7c15u ^
                               reinterpret_cast<std::uintptr_t>(other);
  return mixed | 1;
}

template <class Find>
void* Remembered(std::uintptr_t key, Find find) {
  Known* free = nullptr;
  for (std::size_t probe = 0; probe < kProbes && !free; ++probe) {
    Known& place = known[(key / 16 + probe) % kPlaces];
    const std::uintptr_t taken_by = place.key.load(std::memory_order_acquire);
    if (taken_by == key) {
      if (void* const value = place.value.load(std::memory_order_acquire)) return value;
      return find();
    }
    if (taken_by == 0) free = &place;
  }
  void* const found = find();
  std::uintptr_t nobody = 0;
  if (found && free && free->key.compare_exchange_strong(nobody, key))
    free->value.store(found, std::memory_order_release);
  return found;
}

const char* FileOf(const void* address) {
  Dl_info info;
  if (dladdr(const_cast<void*>(address), &info) == 0 || !info.dli_fname) return "";
  const char* const slash = strrchr(info.dli_fname, '/');
  return slash ? slash + 1 : info.dli_fname;
}

bool BeginsWith(const char* text, const char* beginning) {
  return strncmp(text, beginning, strlen(beginning)) == 0;
}

// The function that dlsym found for each hook; null: none yet.
std::atomic<void*>* OpenedFor(const void* hook) {
  static constinit std::atomic<void*> opened[] = {
#define SPILLWAY_DNN(symbol) nullptr,
#include "interposer/entry/dnn_table.inc"
#undef SPILLWAY_DNN
  };
  std::size_t row = 0;
#define SPILLWAY_DNN(symbol)                                                 \
  if (hook == reinterpret_cast<const void*>(&::symbol)) return &opened[row]; \
  ++row;
#include "interposer/entry/dnn_table.inc"
#undef SPILLWAY_DNN
  return nullptr;
}

// Only a handle from dlopen searches both.
void* FindInLibraryOf(const void* address, const char* name) {
  const auto* const map = static_cast<const link_map*>(LibraryOf(address));
  if (!map || !map->l_name || !map->l_name[0]) return nullptr;
  void* const library = dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD);
  if (!library) return nullptr;
  void* const found = RealDlsym()(library, name);
  dlclose(library);  // the library stays open: its code is in use
  return found;
}

void* Find(const char* name, const void* hook, const void* caller) {
  if (void* const next = RealDlsym()(RTLD_NEXT, name); next && next != hook) return next;
  if (void* const own = FindInLibraryOf(caller, name); own && own != hook) return own;
  const std::atomic<void*>* const opened = OpenedFor(hook);
  return opened ? opened->load(std::memory_order_acquire) : nullptr;
}

}  // namespace

void* RealDnnFunction(const char* name, const void* hook, const void* caller) {
  return Remembered(KeyOf(hook, caller), [&] { return Find(name, hook, caller); });
}

void* DnnSibling(const void* function, const char* name) {
  return Remembered(KeyOf(function, name), [&] { return FindInLibraryOf(function, name); });
}

void* DnnHookNamed(const char* name) {
  if (name[0] != 'c' || name[1] != 'u' || (name[2] != 'd' && name[2] != 'b')) return nullptr;
#define SPILLWAY_DNN(symbol) \
  if (strcmp(name, #symbol) == 0) return reinterpret_cast<void*>(&::symbol);
#include "interposer/entry/dnn_table.inc"
#undef SPILLWAY_DNN
  return nullptr;
}

void* DecideDnn(void* hook, const char* name, void* found, const void* caller) {
  if (!found || found == hook) return found;
  const char* const file = FileOf(found);
  if (!BeginsWith(file, "libcudnn.so") && !BeginsWith(file, "libcublas.so")) return nullptr;
  const char* const asker = FileOf(caller);
  if (BeginsWith(asker, "libcudnn") || BeginsWith(asker, "libcublas")) return nullptr;
  if (void* const next = RealDlsym()(RTLD_NEXT, name); next && next != hook && next != found)
    return nullptr;
  void* nothing = nullptr;
  std::atomic<void*>* const opened = OpenedFor(hook);
  const bool is_first = opened->compare_exchange_strong(nothing, found);
  return is_first || nothing == found ? hook : nullptr;
}

}  // namespace spillway::entry
