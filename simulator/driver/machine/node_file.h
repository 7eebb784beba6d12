// The file by which simulated drivers share a machine.
//
// Invariants
//  1. A file is ready once `magic` is there. Until then the next process makes it again.
//  2. The lock's holder may die anywhere: counts are derived again from the slots, times only grow.
#pragma once

#include <pthread.h>

#include <cstdint>
#include <string>

#include "base/result.h"
#include "simulator/driver/machine/node_state.h"

namespace spillway::simulator {

struct Machine {
  std::string profile;
  int device_count = 1;
  std::uint64_t capacity_bytes = 0;
  node::LinkRates rates = {};
  int reserved_slots = 0;  // set by the first process
};

struct NodeFile {
  std::uint64_t magic;
  char profile[64];
  pthread_mutex_t mutex;
  std::int64_t reserved_until_ns;  // CLOCK_MONOTONIC: no longer wait for expected processes
  node::State state;
};

// Errors: it belongs to another machine, or it cannot be mapped.
base::Result<NodeFile*> OpenNodeFile(const std::string& path, const Machine& machine);
base::Result<NodeFile*> OpenNodeFile(const std::string& path);

class NodeLock {
 public:
  explicit NodeLock(NodeFile& file);
  ~NodeLock();
  NodeLock(const NodeLock&) = delete;
  NodeLock& operator=(const NodeLock&) = delete;

 private:
  NodeFile& file_;
};

// In all slots, or only in the first.
enum class Whom { kAll, kFirst };
void Sweep(NodeFile& file, Whom whom);

}  // namespace spillway::simulator
