// Starts a detached thread of ours, with all signals blocked, in a foreign program.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <cstddef>

namespace spillway::base {

// `name` has at most 15 letters; 0 stack bytes mean the program's default size.
inline bool StartDetachedThread(const char* name, void* (*main)(void*), void* argument,
                                std::size_t stack_bytes = 0) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  if (stack_bytes != 0) pthread_attr_setstacksize(&attributes, stack_bytes);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  const bool is_made = pthread_create(&thread, &attributes, main, argument) == 0;
  if (is_made) pthread_setname_np(thread, name);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  return is_made;
}

}  // namespace spillway::base
