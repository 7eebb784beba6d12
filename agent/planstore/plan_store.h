// Plans that were made earlier, in a folder: found again by what they were made for, and by the
// program that they were made for.
//
// Called by the desk's thread (agent/planning). A plan is a file of bytes here
// (scheduler/plan/plan_codec.h): its header and hash are looked at, nothing else. One
// base::FileStore per owner, one file per key.
//
// Invariants
//  1. What is kept for one owner is given to nobody else.
//  2. The plans stay below most_bytes of the disk together, however small each is. Who keeps most
//  makes room, its plans used longest ago first: nobody can crowd out
//     another's.
//  3. What is damaged or of another version is deleted, with one line. A disk that takes nothing is
//  said once, and when it does again.
// Never: fails its caller.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_store.h"
#include "protocol/message.h"

namespace spillway::agent {

class PlanStore {
 public:
  struct Counts {
    int64_t plans = 0, bytes = 0;
    int64_t damaged = 0, evicted = 0, not_written = 0;  // since the start
  };

  // An empty folder name, or no bytes: nothing is kept or found.
  PlanStore(std::string folder, int64_t most_bytes, std::function<void(const std::string&)> say);

  // A plan for the same iteration, device and strategy, and for this budget or a little less.
  std::optional<std::string> Find(const std::string& owner, const protocol::PlanKey& key);
  // The plans of a program that were used last, of different iterations.
  std::vector<std::string> Recall(const std::string& owner, uint64_t program);
  // In the place of earlier ones for about the same budget.
  void Keep(const std::string& owner, const protocol::PlanKey& key, std::string_view bytes);

  void SetMostBytes(int64_t most_bytes);
  const Counts& counts() const { return counts_; }

  // What a file of so many bytes takes, with what the disk needs to find it.
  static int64_t BytesOnDisk(int64_t size_bytes);
  // Whether a plan for one budget serves another one.
  static bool Serves(int64_t planned_bytes, int64_t budget_bytes);

 private:
  struct Entry {
    protocol::PlanKey key;
    int64_t disk_bytes = 0;
    int64_t used_ns = 0;  // since 1970
  };
  using Entries = std::vector<Entry>;
  struct Owner {
    Entries entries;
    int64_t bytes = 0;  // of them all, on disk
  };

  void Scan();
  void ScanOwner(const std::string& owner);
  base::FileStore FilesOf(const std::string& owner) const;
  // Nothing when it had to be discarded.
  std::optional<std::string> Read(const std::string& owner, const Entry& entry);
  void NoteUse(const std::string& owner, const protocol::PlanKey& key);
  void Remove(const std::string& owner, const protocol::PlanKey& key);
  void Add(const std::string& owner, const Entry& entry);
  void Forget(const std::string& owner, const protocol::PlanKey& key);
  void DropReplaced(const std::string& owner, const protocol::PlanKey& key);
  void MakeRoom();
  void NoteWritten(const base::Status& written);

  const std::string folder_;
  const std::function<void(const std::string&)> say_;
  int64_t most_bytes_;
  std::map<std::string, Owner> owners_;  // none without entries, but for a moment
  Counts counts_;
  std::string problem_;  // with the disk, as last said
};

}  // namespace spillway::agent
