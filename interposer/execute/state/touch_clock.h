// A clock for "least recently used": fast, the same for all threads, of no particular unit.
#pragma once

#include <atomic>
#include <cstdint>

#if !defined(__x86_64__) && !defined(__aarch64__)
#include <time.h>
#endif

namespace spillway::interposer {

inline std::uint64_t TouchClock() {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
  std::uint64_t ticks;
  asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
#else
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
#endif
}

// How many ticks late a touch may be noted: some microseconds. Otherwise each call would write to
// memory that many threads use.
inline constexpr std::uint64_t kTouchResolution = 1 << 13;

inline void NoteTouch(std::atomic<std::uint64_t>* last_touch, std::uint64_t now) {
  if (now - last_touch->load(std::memory_order_relaxed) > kTouchResolution)
    last_touch->store(now, std::memory_order_relaxed);
}

}  // namespace spillway::interposer
