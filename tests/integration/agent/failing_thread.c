// Preloaded beside the library: the creation of its thread number FAILING_THREAD (from 1) fails.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef int Create(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);

static int IsOurs(void* caller) {
  Dl_info place;
  return dladdr(caller, &place) != 0 && strstr(place.dli_fname, "libspillway") != NULL;
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                   void* argument) {
  static int started = 0;
  const char* const failing = getenv("FAILING_THREAD");
  if (IsOurs(__builtin_return_address(0)) && failing != NULL && ++started == atoi(failing))
    return EAGAIN;
  Create* const real = (Create*)dlsym(RTLD_NEXT, "pthread_create");
  return real(thread, attributes, run, argument);
}
