// The disk of a simulated node: it makes files for evicted memory, may be full, and knows which of
// its files are still open, wherever that is.
//
// Each file's own description holds a lock, which ends with its last descriptor: in a message under
// way, in the agent, or in a process.
#pragma once

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/unit/agent/node/fake_shares.h"

namespace spillway::agent {

class TierDisk final : public FakeShares {
 public:
  TierDisk(int64_t quota_bytes, int64_t capacity_bytes)
      : quota_bytes_(quota_bytes), capacity_bytes_(capacity_bytes) {
    has_places = false;
  }

  int64_t SpillBytes() const override { return quota_bytes_; }
  base::Result<base::UniqueFd> OpenSpillFile(int64_t bytes) override {
    if (OpenBytes() + bytes > capacity_bytes_)
      return base::Error{"cannot reserve space", "No space left on device"};
    base::UniqueFd file(memfd_create("spill", MFD_CLOEXEC));
    flock(file.get(), LOCK_SH);
    const std::string path = "/proc/self/fd/" + std::to_string(file.get());
    files_.push_back({base::UniqueFd(open(path.c_str(), O_RDWR | O_CLOEXEC)), bytes, agents_});
    return file;
  }

  // Files of the agent before count by what their processes report.
  void AgentRestarts() { ++agents_; }
  void SetCapacity(int64_t bytes) { capacity_bytes_ = bytes; }

  int64_t OpenBytes() {
    int64_t bytes = 0;
    for (const File& file : Open()) bytes += file.bytes;
    return bytes;
  }
  int64_t OpenBytesOfThisAgent() {
    int64_t bytes = 0;
    for (const File& file : Open()) bytes += file.agent == agents_ ? file.bytes : 0;
    return bytes;
  }
  size_t files_made() const { return made_before_ + files_.size(); }

 private:
  struct File {
    base::UniqueFd watch;
    int64_t bytes;
    int agent;
  };

  const std::vector<File>& Open() {
    made_before_ += std::erase_if(
        files_, [](const File& file) { return flock(file.watch.get(), LOCK_EX | LOCK_NB) == 0; });
    return files_;
  }

  const int64_t quota_bytes_;
  int64_t capacity_bytes_;
  int agents_ = 0;
  size_t made_before_ = 0;
  std::vector<File> files_;
};

}  // namespace spillway::agent
