// The folder of files for evicted memory: checks it, and makes private files there.
//
// Invariants
//  1. The folder belongs to root or to this process, nobody else may write there, and its file
//     system is on a disk, unless memory is allowed.
//  2. A file has no name that others can open: it never gets one, or loses it at once. Its space is
//     reserved before anybody writes, so that a full disk is known early.
// Never: encrypts.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace spillway::agent {

class SpillFolder {
 public:
  enum class InMemory : uint8_t { kRefused, kAllowed };
  // An error says why the folder cannot serve.
  static base::Result<SpillFolder> Open(const std::string& path, InMemory in_memory);

  base::Result<base::UniqueFd> NewFile(int64_t size_bytes) const;

 private:
  SpillFolder(std::string path, base::UniqueFd folder)
      : path_(std::move(path)), folder_(std::move(folder)) {}

  std::string path_;
  base::UniqueFd folder_;
};

}  // namespace spillway::agent
