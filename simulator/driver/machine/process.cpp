#include "simulator/driver/machine/process.h"

#include <pthread.h>

#include <atomic>
#include <cstdlib>

namespace spillway::simulator {
namespace {

std::atomic<bool> initialised{false};
std::atomic<bool> forked_child{false};

std::atomic<bool> shut_down{false};

void AfterForkInChild() { forked_child = true; }
void ShutDown() { shut_down = true; }

}  // namespace

bool WasInitialised() { return initialised; }
bool IsForkedChild() { return forked_child; }
bool HasShutDown() { return shut_down; }

void MarkInitialised() {
  if (initialised.exchange(true)) return;
  pthread_atfork(nullptr, nullptr, AfterForkInChild);
  std::atexit(ShutDown);
}

}  // namespace spillway::simulator
