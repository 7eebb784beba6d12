// Plans that were handed out and are still open somewhere: each is memory of the agent's until the
// last who has it closes it.
//
// Called by the desk, on its thread. Owns a file of each, by which the kernel says whether anybody
// else has one.
//
// Invariants
//  1. What one tenant has open, in use or on its way, is at most `most_bytes` at any time, however
//  long it keeps it. A small plan counts as a
//     part of them, so that the number of files has a bound too.
//  2. What everybody has closed is memory no more after the next Sweep.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"

namespace spillway::agent {

class GivenPlans {
 public:
  static constexpr uint64_t kMostFiles = 256;  // of one tenant

  // Whether the tenant may be given so much more; looks whether it has closed something, if need
  // be.
  bool MayGive(const std::string& tenant, uint64_t size_bytes, uint64_t most_bytes);
  // A sealed file for it to read. Nothing: there is no memory, or no file left.
  base::UniqueFd Give(const std::string& tenant, std::string_view plan);
  // Forgets what is closed.
  void Sweep();

  bool empty() const { return given_.empty(); }
  uint64_t open_bytes() const;

 private:
  struct Plan {
    base::UniqueFd file;
    uint64_t size_bytes = 0;
  };
  using Plans = std::vector<Plan>;

  static void Sweep(Plans& plans);
  static uint64_t Counted(const Plans& plans, uint64_t most_bytes);

  std::map<std::string, Plans> given_;  // by tenant; none is empty after a Sweep
};

}  // namespace spillway::agent
