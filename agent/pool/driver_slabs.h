// Slabs made by the GPU driver: a job maps them at device addresses, instead of letting the driver
// pin their pages at every start.
//
// A separate process (driver_worker.h) loads the driver, so the driver cannot harm the agent. Make
// starts that process, Rest ends it. A slab's file outlives it.
//
// Invariants
//  1. No call takes longer than kPatienceMs: a silent worker is killed, and the driver counts as
//     refusing.
//  2. The worker fills every new slab with zeros.
// Never verified on a GPU: that another process can map exported HOST_NUMA memory (docs/agent.md).
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

  // `command`: runs RunSlabWorker.
  explicit DriverSlabs(std::vector<std::string> command, int patience_ms = kPatienceMs);
  ~DriverSlabs() { Rest(); }
  DriverSlabs(const DriverSlabs&) = delete;
  DriverSlabs& operator=(const DriverSlabs&) = delete;

  enum class Outcome { kMade, kNoMemory, kRefused };
  struct Answer {
    Outcome outcome = Outcome::kRefused;
    std::optional<SlabFile> slab = std::nullopt;
    std::string why = {};
  };
  Answer Make(int64_t size_bytes, int node);
  // Tests whether Make can succeed.
  Answer Try(int64_t size_bytes);
  void Rest();
  // Refuses the request in progress and all later ones.
  void Stop();

 private:
  base::Status Start();
  Answer Ask(const SlabRequest& request);
  bool AwaitReply() const;
  void Reap();

  const std::vector<std::string> command_;
  const int patience_ms_;
  const base::UniqueFd stop_;
  pid_t worker_ = 0;
  base::UniqueFd socket_;
  std::vector<pid_t> unreaped_;
};

}  // namespace spillway::agent
