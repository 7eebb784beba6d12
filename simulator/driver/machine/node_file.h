// The file through which several simulated drivers share a machine: its layout, how it is made and
// opened, its lock.
//
// Any thread of any process. The mapping lives as long as the process; the file is one run's, and
// is removed by whoever named it.
//
// Invariants
//  1. A file is ready once `magic` is there: whoever dies while making it leaves one that the next
//  makes again.
//  2. The lock's holder may die anywhere: what is counted is counted again from the slots, and
//  times only grow.
#pragma once

#include <pthread.h>

#include <cstdint>
#include <string>

#include "base/result.h"
#include "simulator/driver/machine/node_state.h"

namespace spillway::simulator {

// What all processes of a machine must agree on.
struct Machine {
  std::string profile;
  int device_count = 1;
  std::uint64_t capacity_bytes = 0;
  node::LinkRates rates = {};
  int reserved_slots = 0;  // of the first process: how many are expected from the start
};

struct NodeFile {
  std::uint64_t magic;
  char profile[64];
  pthread_mutex_t mutex;
  std::int64_t reserved_until_ns;  // CLOCK_MONOTONIC: whoever was expected and has not come by then
                                   // is not waited for
  node::State state;
};

// Makes the file if there is none. An error: it is another machine's, or cannot be mapped.
base::Result<NodeFile*> OpenNodeFile(const std::string& path, const Machine& machine);
// An existing one, whatever its machine.
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

// Clears the slots of those who are dead, and suspends the stopped: all slots, or only the one
// whose turn it is.
enum class Whom { kAll, kFirst };
void Sweep(NodeFile& file, Whom whom);

}  // namespace spillway::simulator
