#include "simulator/driver/process.h"

#include <pthread.h>

#include <atomic>

namespace spillway::simulator {
namespace {

std::atomic<bool> initialised{false};
std::atomic<bool> forked_child{false};

void AfterForkInChild() { forked_child = true; }

}  // namespace

bool WasInitialised() { return initialised; }
bool IsForkedChild() { return forked_child; }

void MarkInitialised() {
  if (!initialised.exchange(true)) pthread_atfork(nullptr, nullptr, AfterForkInChild);
}

}  // namespace spillway::simulator
