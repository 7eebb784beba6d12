// Plans that were handed out and are still open somewhere. Each takes agent memory until its last
// holder closes it.
//
// Invariants
//  1. A tenant's open plans, in use or in flight, are at most `most_bytes`. A small plan counts as
//     at least one part in kMostFiles, which bounds the files too.
//  2. Plans that all holders have closed are freed by the next Sweep.
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

  // Sweeps the tenant's plans if necessary.
  bool MayGive(const std::string& tenant, uint64_t size_bytes, uint64_t most_bytes);
  // Invalid: no memory, or no file descriptor.
  base::UniqueFd Give(const std::string& tenant, std::string_view plan);
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

  std::map<std::string, Plans> given_;  // no empty entries after a Sweep
};

}  // namespace spillway::agent
