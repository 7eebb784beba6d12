// What the driver has prepared, kept in a file so that a restarted driver, and the next version
// beside this one, know it.
//
// Used by ClaimPreparer; one StateFile per process, on any thread. Access holds the lock.
//
// Invariants
//  1. While an Access lives, no other thread or process reads or writes the file: during a rolling
//     update two drivers run on a node.
//  2. After Save the file holds the old state or the new one, whole, also after a crash.
//  3. A damaged file is put aside under `.damaged`, never overwritten.
#pragma once

#include <map>
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
  bool operator==(const PreparedDevice&) const = default;
};

struct ClaimRecord {
  ClaimName name;
  std::vector<PreparedDevice> devices = {};
  std::vector<std::string> pods = {};  // uids
  bool operator==(const ClaimRecord&) const = default;
};

struct DriverState {
  std::map<std::string, ClaimRecord> claims;  // by uid
  std::set<std::string> pods_to_forget;       // the agent was not there when their last claim went
  bool operator==(const DriverState&) const = default;

  std::set<std::string> Pods() const;
};

std::string Written(const DriverState& state);
base::Result<DriverState> ReadState(std::string_view text);

class StateFile {
 public:
  // In `folder`, which exists: state.json and state.lock.
  explicit StateFile(const std::string& folder);

  class Access {
   public:
    DriverState state;
    std::string damage;  // empty: the file was sound, or there was none
    base::Status Save() const;

   private:
    friend class StateFile;
    Access(std::string path, base::UniqueFd lock)
        : path_(std::move(path)), lock_(std::move(lock)) {}
    std::string path_;
    base::UniqueFd lock_;  // closing it releases the lock
  };
  // Waits for the lock, which others hold for some seconds at most.
  base::Result<Access> Open() const;

 private:
  const std::string path_, lock_path_;
};

}  // namespace spillway::kubernetes
