// The private file of a job's bytes that left host memory: blocks, their checksums, and I/O that
// may fail.
//
// Take and Give are called with the state lock held; Write and Read on any thread, without it. The
// file has no name. It ends with its last descriptor, so no death of a process leaves space behind.
//
// Invariants
//  1. A block that Read accepts holds the bytes that Write was given: a checksum, seeded with the
//     block's number, says so. Damaged or misplaced bytes are an error, never an answer.
//  2. Nothing is written beyond the size that the file was given.
// Never: encrypts.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace spillway::interposer {

// Tests have one that fails.
class SpillIo {
 public:
  virtual ~SpillIo() = default;
  // Like pwrite and pread: negative with errno, or short.
  virtual ssize_t Write(const std::byte* data, size_t bytes, std::uint64_t at) = 0;
  virtual ssize_t Read(std::byte* data, size_t bytes, std::uint64_t at) = 0;
};

// Direct I/O, if the file was opened so and its system serves it. Else plain I/O that leaves
// nothing in the page cache.
std::unique_ptr<SpillIo> IoOf(base::UniqueFd file);

struct SpilledBlock {
  std::uint32_t number = 0;
  std::uint64_t checksum = 0;
};

class SpillFile {
 public:
  static constexpr size_t kBlockBytes = size_t{1} << 20;
  static constexpr size_t kAlignment = 4096;  // of data for direct I/O

  SpillFile(std::unique_ptr<SpillIo> io, size_t bytes, std::uint64_t serial);

  std::uint64_t serial() const { return serial_; }

  // False, with nothing changed: it is full.
  bool Take(size_t bytes, std::vector<SpilledBlock>* out);
  void Give(const std::vector<SpilledBlock>& blocks);
  size_t bytes() const { return blocks_ * kBlockBytes; }
  size_t free_bytes() const { return free_.size() * kBlockBytes; }
  bool IsEmpty() const { return free_.size() == blocks_; }

  // A whole block of aligned memory.
  base::Status Write(SpilledBlock* block, const std::byte* data);
  base::Status Read(const SpilledBlock& block, std::byte* data);

 private:
  const std::unique_ptr<SpillIo> io_;
  const std::uint64_t serial_;
  const size_t blocks_;
  // Guarded by the callers' state lock.
  std::vector<std::uint32_t> free_;
};

}  // namespace spillway::interposer
