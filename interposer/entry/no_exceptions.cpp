// Replaces the C++ library's exceptions: one line on standard error, then abort.
//
// libstdc++'s own operator new and std::__throw_* would bring its exception runtime and unwinder
// into every preloaded process. Its constructor allocates 72 KiB before main (gcc 12, eh_alloc.cc).
// We build without exceptions, so a throw could only end in std::terminate anyway.
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include <atomic>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <system_error>

namespace {

[[noreturn]] void Die(const char* what) {
  fprintf(stderr, "spillway: %s\n", what);
  abort();
}

void* Allocate(size_t size_bytes) {
  void* const memory = malloc(size_bytes == 0 ? 1 : size_bytes);
  if (memory == nullptr) Die("out of host memory");
  return memory;
}

void* AllocateAligned(size_t size_bytes, std::align_val_t alignment) {
  void* memory = nullptr;
  if (posix_memalign(&memory, static_cast<size_t>(alignment), size_bytes) != 0)
    Die("out of host memory");
  return memory;
}

}  // namespace

void* operator new(size_t size) { return Allocate(size); }
void* operator new[](size_t size) { return Allocate(size); }
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  return malloc(size == 0 ? 1 : size);
}
void* operator new[](size_t size, const std::nothrow_t&) noexcept {
  return malloc(size == 0 ? 1 : size);
}
void* operator new(size_t size, std::align_val_t alignment) {
  return AllocateAligned(size, alignment);
}
void* operator new[](size_t size, std::align_val_t alignment) {
  return AllocateAligned(size, alignment);
}
void operator delete(void* memory) noexcept { free(memory); }
void operator delete[](void* memory) noexcept { free(memory); }
void operator delete(void* memory, size_t) noexcept { free(memory); }
void operator delete[](void* memory, size_t) noexcept { free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { free(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { free(memory); }
void operator delete[](void* memory, size_t, std::align_val_t) noexcept { free(memory); }

// Registers a thread-local object's destructor with the C library. libstdc++'s version can throw.
extern "C" int __cxa_thread_atexit_impl(void (*destructor)(void*), void* object, void* library);
extern "C" __attribute__((visibility("hidden"))) int __cxa_thread_atexit(void (*destructor)(void*),
                                                                         void* object,
                                                                         void* library) {
  return __cxa_thread_atexit_impl(destructor, object, library);
}

// One thread makes a function's static object; the others wait. The compiler reads the first of the
// guard's eight bytes (Itanium C++ ABI, 3.3.3); the second is ours. An object whose construction
// needs itself would wait for ever, so there must be none.
extern "C" {
__attribute__((visibility("hidden"))) int __cxa_guard_acquire(std::atomic<char>* guard) {
  for (;; sched_yield()) {
    if (guard[0].load(std::memory_order_acquire)) return 0;
    char free = 0;
    if (!guard[1].compare_exchange_strong(free, 1, std::memory_order_acquire)) continue;
    if (!guard[0].load(std::memory_order_acquire)) return 1;
    guard[1].store(0, std::memory_order_release);
    return 0;
  }
}
__attribute__((visibility("hidden"))) void __cxa_guard_release(std::atomic<char>* guard) {
  guard[0].store(1, std::memory_order_release);
  guard[1].store(0, std::memory_order_release);
}
__attribute__((visibility("hidden"))) void __cxa_guard_abort(std::atomic<char>* guard) {
  guard[1].store(0, std::memory_order_release);
}
}

namespace std {
bool _Sp_make_shared_tag::_S_eq(const type_info&) noexcept {
  return false;
}  // asked where there is no type information

void __throw_bad_exception() { Die("bad exception"); }
void __throw_bad_alloc() { Die("out of host memory"); }
void __throw_bad_array_new_length() { Die("array too long"); }
void __throw_bad_cast() { Die("bad cast"); }
void __throw_bad_typeid() { Die("bad type id"); }
void __throw_logic_error(const char* what) { Die(what); }
void __throw_domain_error(const char* what) { Die(what); }
void __throw_invalid_argument(const char* what) { Die(what); }
void __throw_length_error(const char* what) { Die(what); }
void __throw_out_of_range(const char* what) { Die(what); }
void __throw_out_of_range_fmt(const char* what, ...) { Die(what); }
void __throw_runtime_error(const char* what) { Die(what); }
void __throw_range_error(const char* what) { Die(what); }
void __throw_overflow_error(const char* what) { Die(what); }
void __throw_underflow_error(const char* what) { Die(what); }
void __throw_system_error(int) { Die("a system call on a lock or thread failed"); }
void __throw_bad_function_call() { Die("an empty function was called"); }

}  // namespace std
