// One host thread runs at a time, and a seed decides which: a schedule that can be repeated.
//
// Made by main for each program, on the main thread; every host thread of the program holds a Turn
// while it runs. The steps are the library's schedule points (base/schedule_point.h, only in
// libspillway_breakable.so), the program's own operations, and its waits for another thread.
// Probabilistic: S. Burckhardt et al., ASPLOS 2010, without priorities.
//
// Invariants
//  1. Of the threads that hold a Turn, exactly one is not waiting in Point or Turn's constructor.
//  2. Equal seeds and programs give equal schedules as long as nothing but these threads calls the
//  library.
// Never: schedules threads without a Turn; their points are none.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

#include "tests/fuzz/differential/random.h"

namespace spillway::fuzz {

class Schedule {
 public:
  // For a program of so many host threads.
  Schedule(std::uint64_t seed, int threads);
  ~Schedule();
  Schedule(const Schedule&) = delete;
  Schedule& operator=(const Schedule&) = delete;

  // Of the calling thread, from when all threads have begun until it ends. Without a schedule it is
  // nothing.
  class Turn {
   public:
    explicit Turn(int thread);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
  };

  static bool IsOn() { return current_ != nullptr; }
  // Another thread may go on here.
  static void Point();

 private:
  static constexpr int kNobody = -1;

  void Enter(int thread);
  void Leave(int thread);
  void Step(int thread);
  int Chosen();

  inline static Schedule* current_ = nullptr;
  inline static thread_local int mine_ = kNobody;

  std::mutex mutex_;
  std::condition_variable changed_;
  Random random_;
  const std::uint64_t one_in_;  // so many steps go on to another thread
  std::vector<bool> running_;   // thread by thread: between Enter and Leave
  int awaited_;                 // threads that have not entered yet
  int turn_ = kNobody;
};

}  // namespace spillway::fuzz
