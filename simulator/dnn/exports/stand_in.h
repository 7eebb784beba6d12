// A weak stand-in for a function of cuDNN or cuBLAS: prints once that the function is missing, and
// answers NOT_SUPPORTED. An implementation replaces it at link time. Included by the sources that
// stand_ins.py writes. Any thread.
#pragma once

#include <atomic>
#include <cstdio>

namespace spillway::simulator::dnn {

inline int AnswerNotSimulated(const char* function, std::atomic<bool>* is_told, int status) {
  if (!is_told->exchange(true))
    std::fprintf(stderr, "spillway simulator: %s is not simulated\n", function);
  return status;
}

}  // namespace spillway::simulator::dnn

#define SPILLWAY_STAND_IN(name, status)                                           \
  extern "C" __attribute__((weak)) int name() {                                   \
    static std::atomic<bool> is_told{false};                                      \
    return spillway::simulator::dnn::AnswerNotSimulated(#name, &is_told, status); \
  }
