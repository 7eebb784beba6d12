// Slabs of memory that the GPU driver makes: a job maps them at addresses of its device as they
// are, instead of having the driver pin their pages at every start.
//
// Used by the maker of slabs on its thread, but for Stop, which any thread may call while the maker
// waits.
//
// The driver itself is in a process of its own (driver_worker.h), started when something is to be
// made and ended by Rest: the agent holds no driver, and what that does to a process it does not do
// to the agent. A slab outlives the process that made it by its file.
//
// Invariants
//  1. Nothing here takes longer than kPatienceMs: a worker that is silent for so long is killed,
//  and the driver counts as refusing.
//  2. A slab that comes was filled with zeros by the worker, whatever the driver does with new
//  memory.
// Never verified on a GPU: that HOST_NUMA memory exported by file can be mapped by another process
// (docs/agent.md).
#pragma once

#include <sys/types.h>

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "agent/pool/slab_file.h"
#include "agent/pool/slab_wire.h"
#include "base/result.h"

namespace spillway::agent {

class DriverSlabs {
 public:
  static constexpr int kPatienceMs = 10'000;

  // `command`: a program that runs RunSlabWorker.
  explicit DriverSlabs(std::vector<std::string> command, int patience_ms = kPatienceMs);
  ~DriverSlabs() { Rest(); }
  DriverSlabs(const DriverSlabs&) = delete;
  DriverSlabs& operator=(const DriverSlabs&) = delete;

  enum class Outcome { kMade, kNoMemory, kRefused };
  struct Answer {
    Outcome outcome = Outcome::kRefused;
    std::optional<SlabFile> slab = std::nullopt;
    std::string why = {};  // it is refused
  };
  Answer Make(int64_t size_bytes, int node);
  // Whether Make has a chance.
  Answer Try(int64_t size_bytes);
  // Ends the worker, until something is to be made.
  void Rest();
  // What is waited for, now or later, is refused.
  void Stop();

 private:
  base::Status Start();
  Answer Ask(const SlabRequest& request);
  bool AwaitReply() const;

  const std::vector<std::string> command_;
  const int patience_ms_;
  const base::UniqueFd stop_;
  // The worker, while there is one.
  pid_t worker_ = 0;
  base::UniqueFd socket_;
};

}  // namespace spillway::agent
