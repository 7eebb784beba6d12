// What the driver has prepared, kept in a file so that a restarted driver, and the next version
// beside this one, know it.
//
// Used by ClaimPreparer; one StateFile per process, on any thread. Access holds the lock.
//
// Invariants
//  1. While an Access lives, no other thread or process reads or writes the file: during a rolling
//     update two drivers run on a node.
//  2. After Save the file holds the old state or the new one, whole, also after a crash.
//  3. A damaged file is put aside under `.damaged`, and never overwritten. While one lies there,
//  the
//     state may miss claims of running pods (knows_all).
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "deploy/kubernetes/claim.h"
#include "deploy/kubernetes/memory_terms.h"

namespace spillway::kubernetes {

struct PreparedDevice {
  std::string request, pool, device, share_id;
  std::string gpu_uuid;
  MemoryTerms terms = {};
  int64_t counted_bytes = 0;                      // by the scheduler
  std::optional<int64_t> class_limit_bytes = {};  // before the claim lowers it
  bool operator==(const PreparedDevice&) const = default;
};

struct ClaimRecord {
  ClaimName name;
  std::vector<PreparedDevice> devices = {};
  std::vector<std::string> pods = {};  // uids
  std::string job_socket = {};         // of its own, on the host; empty: the one for all jobs
  bool operator==(const ClaimRecord&) const = default;
};

struct DriverState {
  std::map<std::string, ClaimRecord> claims;  // by uid
  // What the agent is still to hear of: new terms, pods whose last claim went, claims.
  std::set<std::string> pods_to_expect, pods_to_forget;
  std::set<std::string> listeners_to_close = {};  // of claims that are gone
  bool operator==(const DriverState&) const = default;

  std::set<std::string> Pods() const;
  // Both note their pods, and Drop its claim, for the agent.
  void Take(ClaimRecord claim);
  void Drop(const std::string& uid);

 private:
  void Note(const std::vector<std::string>& pods);
};

// Whether the scheduler's choice is still the one that was prepared.
bool IsSameAllocation(const ClaimRecord& record, const Claim& claim);

std::string Written(const DriverState& state);
base::Result<DriverState> ReadState(std::string_view text);

class StateFile {
 public:
  // In `folder`, which exists: state.json and state.lock.
  explicit StateFile(const std::string& folder);

  class Access {
   public:
    DriverState state;
    std::string damage;      // empty: the file was sound, or there was none
    bool knows_all = false;  // false: claims of running pods may be missing
    base::Status SaveIfChanged();

   private:
    friend class StateFile;
    Access(std::string path, base::UniqueFd lock)
        : path_(std::move(path)), lock_(std::move(lock)) {}
    std::string path_;
    DriverState saved_;
    base::UniqueFd lock_;  // closing it releases the lock
  };
  // Waits for the lock until `deadline_ns` (CLOCK_MONOTONIC): others hold it while the agent
  // answers.
  base::Result<Access> Open(int64_t deadline_ns) const;

 private:
  base::UniqueFd Lock(int64_t deadline_ns) const;
  base::Status PutAside() const;

  const std::string path_, lock_path_;
};

}  // namespace spillway::kubernetes
