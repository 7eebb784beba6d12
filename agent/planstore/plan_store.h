// Stores plans in a folder, by what they were made for and by their program. Plans are bytes here
// (scheduler/plan/plan_codec.h): only header and hash are checked. One base::FileStore per owner,
// one file per key.
//
// Invariants
//  1. An owner's plans are given to no other owner.
//  2. All plans together take at most most_bytes of the disk. The owner with the most bytes loses
//     its least recently used plans first, so nobody displaces another's.
//  3. Damaged plans, and plans of another version, are deleted and logged. A disk error is logged
//     once, and so is its end.
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

  PlanStore(std::string folder, int64_t most_bytes, std::function<void(const std::string&)> say);

  // For this budget or a little less.
  std::optional<std::string> Find(const std::string& owner, const protocol::PlanKey& key);
  // The program's most recently used plans, of different iterations.
  std::vector<std::string> Recall(const std::string& owner, uint64_t program);
  void Keep(const std::string& owner, const protocol::PlanKey& key, std::string_view bytes);

  void SetMostBytes(int64_t most_bytes);
  const Counts& counts() const { return counts_; }

  static int64_t BytesOnDisk(int64_t size_bytes);
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
    int64_t bytes = 0;  // of all entries, on disk
  };

  void Scan();
  void ScanOwner(const std::string& owner);
  base::FileStore FilesOf(const std::string& owner) const;
  // Nullopt: the plan was discarded.
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
  std::map<std::string, Owner> owners_;  // no empty owners, except within a call
  Counts counts_;
  std::string problem_;
};

}  // namespace spillway::agent
