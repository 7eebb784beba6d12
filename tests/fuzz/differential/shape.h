// A program's size, host threads, contexts and features.
//
// A plain value; a seed decides it, options of the command line may override.
//
// A program's threads are numbered: thread t is host thread t % hosts with context t / hosts
// current, so that each of them has default streams of its own.
#pragma once

#include <cstdint>
#include <set>

namespace spillway::fuzz {

inline constexpr int kMaximumThreads = 4;
inline constexpr int kMaximumContexts = 2;

struct Shape {
  int hosts = 1;
  int contexts = 1;
  bool small = false;           // fewer operations, smaller buffers
  std::set<int> features = {};  // by their place in AllFeatures()

  int Threads() const { return hosts * contexts; }
  int HostOf(int thread) const { return thread % hosts; }
  int ContextOf(int thread) const { return thread / hosts; }
};

// Most seeds make plain programs of one thread.
Shape ShapeOf(std::uint64_t seed);

}  // namespace spillway::fuzz
