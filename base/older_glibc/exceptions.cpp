// What libstdc++ and libgcc call of glibc 2.35 and 2.36 where exceptions are thrown.
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

#define SPILLWAY_HIDDEN extern "C" __attribute__((visibility("hidden")))

SPILLWAY_HIDDEN uint32_t arc4random() noexcept {
  uint32_t number = 0;
  while (getrandom(&number, sizeof number, 0) != sizeof number) {
    if (errno != EINTR) abort();
  }
  return number;
}

#if __GLIBC_PREREQ(2, 35)
namespace {

struct Search {
  uintptr_t code;
  dl_find_object* found;
};

// 1 ends the search.
int LookInto(dl_phdr_info* object, size_t, void* asked) {
  auto* const search = static_cast<Search*>(asked);
  bool has_code = false;
  const void* unwind_table = nullptr;
  uintptr_t begin = UINTPTR_MAX, end = 0;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = object->dlpi_phdr[i];
    const uintptr_t address = object->dlpi_addr + part.p_vaddr;
    if (part.p_type == PT_GNU_EH_FRAME) unwind_table = reinterpret_cast<const void*>(address);
    if (part.p_type != PT_LOAD) continue;
    has_code = has_code || (address <= search->code && search->code - address < part.p_memsz);
    begin = address < begin ? address : begin;
    end = address + part.p_memsz > end ? address + part.p_memsz : end;
  }
  if (!has_code || unwind_table == nullptr) return has_code ? -1 : 0;
  search->found->dlfo_map_start = reinterpret_cast<void*>(begin);
  search->found->dlfo_map_end = reinterpret_cast<void*>(end);
  search->found->dlfo_eh_frame = const_cast<void*>(unwind_table);
  return 1;
}

}  // namespace

SPILLWAY_HIDDEN int _dl_find_object(void* code, dl_find_object* found) noexcept {
  *found = {};
  Search search{reinterpret_cast<uintptr_t>(code), found};
  return dl_iterate_phdr(LookInto, &search) == 1 ? 0 : -1;
}
#endif
