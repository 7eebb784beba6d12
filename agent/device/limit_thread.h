// Sets hard limits by NVML on a thread of its own, which begins when there is something to do.
//
// Invariants
//  1. Want and Views never wait, nor does the destructor.
//  2. The limits of an earlier agent count as this one's from the beginning.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "agent/node/hard_limits.h"

namespace spillway::agent {

class LimitThread final : public HardLimits {
 public:
  // `path`: the record; empty: none is kept.
  explicit LimitThread(const std::string& path);
  ~LimitThread() override;

  void Want(const WantedLimits& limits) override;
  std::shared_ptr<const LimitViews> Views() const override;
  // Readable after a change; for polling.
  int file() const;
  void Drain() const;
  std::vector<std::string> TakeNotes();

 private:
  struct Shared;
  static void Run(Shared& shared);
  void Begin();

  const std::shared_ptr<Shared> shared_;  // also the thread's, which may outlive this object
  bool runs_ = false;
};

}  // namespace spillway::agent
