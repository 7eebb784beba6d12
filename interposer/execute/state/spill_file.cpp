#include "interposer/execute/state/spill_file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <utility>

#include "base/checksum.h"

namespace spillway::interposer {
namespace {

class FileIo final : public SpillIo {
 public:
  explicit FileIo(base::UniqueFd file) : file_(std::move(file)) {
    const int flags = fcntl(file_.get(), F_GETFL);
    is_direct_ = flags >= 0 && (flags & O_DIRECT) != 0;
  }

  ssize_t Write(const std::byte* data, size_t bytes, std::uint64_t at) override {
    const auto offset = static_cast<off_t>(at);
    ssize_t count = pwrite(file_.get(), data, bytes, offset);
    if (count < 0 && EndsDirectIo()) count = pwrite(file_.get(), data, bytes, offset);
    if (count > 0) DropCached(offset, count);
    return count;
  }

  ssize_t Read(std::byte* data, size_t bytes, std::uint64_t at) override {
    const auto offset = static_cast<off_t>(at);
    ssize_t count = pread(file_.get(), data, bytes, offset);
    if (count < 0 && EndsDirectIo()) count = pread(file_.get(), data, bytes, offset);
    if (count > 0) DropCached(offset, count);
    return count;
  }

 private:
  // Some file systems open a file for direct I/O, and then refuse it.
  bool EndsDirectIo() {
    if (errno != EINVAL || !is_direct_.exchange(false)) return false;
    const int flags = fcntl(file_.get(), F_GETFL);
    return fcntl(file_.get(), F_SETFL, flags & ~O_DIRECT) == 0;
  }
  // Written pages leave the cache only once they are clean.
  void DropCached(off_t offset, off_t bytes) {
    if (is_direct_) return;
    sync_file_range(
        file_.get(), offset, bytes,
        SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
    posix_fadvise(file_.get(), offset, bytes, POSIX_FADV_DONTNEED);
  }

  const base::UniqueFd file_;
  std::atomic<bool> is_direct_{false};
};

// `step` moves some bytes from an offset in the block on.
template <class Step>
base::Status MoveBlock(Step step, const char* what) {
  for (size_t done = 0; done < SpillFile::kBlockBytes;) {
    const ssize_t count = step(done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return base::ErrnoError(what);
    if (count == 0) return base::Error{what, "the file is too short"};
    done += static_cast<size_t>(count);
  }
  return base::Ok();
}

std::uint64_t PlaceOf(const SpilledBlock& block) {
  return std::uint64_t{block.number} * SpillFile::kBlockBytes;
}

}  // namespace

std::unique_ptr<SpillIo> IoOf(base::UniqueFd file) {
  return std::make_unique<FileIo>(std::move(file));
}

SpillFile::SpillFile(std::unique_ptr<SpillIo> io, size_t bytes, std::uint64_t serial)
    : io_(std::move(io)), serial_(serial), blocks_(bytes / kBlockBytes) {
  free_.reserve(blocks_);
  for (size_t number = blocks_; number-- > 0;) free_.push_back(static_cast<std::uint32_t>(number));
}

bool SpillFile::Take(size_t bytes, std::vector<SpilledBlock>* out) {
  const size_t count = (bytes + kBlockBytes - 1) / kBlockBytes;
  if (count > free_.size()) return false;
  out->clear();
  out->reserve(count);
  for (size_t i = 0; i < count; ++i) {
    out->push_back({.number = free_.back()});
    free_.pop_back();
  }
  return true;
}

void SpillFile::Give(const std::vector<SpilledBlock>& blocks) {
  for (const SpilledBlock& block : blocks) free_.push_back(block.number);
}

base::Status SpillFile::Write(SpilledBlock* block, const std::byte* data) {
  block->checksum = base::Checksum64(data, kBlockBytes, block->number);
  const std::uint64_t place = PlaceOf(*block);
  return MoveBlock(
      [&](size_t done) { return io_->Write(data + done, kBlockBytes - done, place + done); },
      "cannot write");
}

base::Status SpillFile::Read(const SpilledBlock& block, std::byte* data) {
  const std::uint64_t place = PlaceOf(block);
  base::Status status = MoveBlock(
      [&](size_t done) { return io_->Read(data + done, kBlockBytes - done, place + done); },
      "cannot read");
  if (status.ok() && base::Checksum64(data, kBlockBytes, block.number) != block.checksum)
    return base::Error{"cannot read", "the bytes are not those that were written"};
  return status;
}

}  // namespace spillway::interposer
