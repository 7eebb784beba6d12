// The job's file: blocks, and every way in which input and output may fail.
#include "interposer/execute/state/spill_file.h"

#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>

namespace spillway::interposer {
namespace {

constexpr size_t kBlock = SpillFile::kBlockBytes;

// A disk in memory whose next operations fail as told.
struct Disk {
  std::vector<std::byte> bytes = std::vector<std::byte>(4 * kBlock);
  size_t at_once = SIZE_MAX;  // the most bytes that one operation moves
  int error = 0;
  int interruptions = 0;
};

class FakeIo final : public SpillIo {
 public:
  explicit FakeIo(Disk* disk) : disk_(*disk) {}
  ssize_t Write(const std::byte* data, size_t bytes, std::uint64_t at) override {
    if (const ssize_t failed = Fails()) return failed;
    const size_t count = CountAt(bytes, at);
    std::copy_n(data, count, disk_.bytes.begin() + static_cast<std::ptrdiff_t>(at));
    return static_cast<ssize_t>(count);
  }
  ssize_t Read(std::byte* data, size_t bytes, std::uint64_t at) override {
    if (const ssize_t failed = Fails()) return failed;
    const size_t count = CountAt(bytes, at);
    std::copy_n(disk_.bytes.begin() + static_cast<std::ptrdiff_t>(at), count, data);
    return static_cast<ssize_t>(count);
  }

 private:
  ssize_t Fails() {
    errno = disk_.interruptions > 0 ? EINTR : disk_.error;
    if (disk_.interruptions > 0) --disk_.interruptions;
    return errno == 0 ? 0 : -1;
  }
  size_t CountAt(size_t bytes, std::uint64_t at) const {
    return std::min({bytes, disk_.at_once, disk_.bytes.size() - std::min(disk_.bytes.size(), at)});
  }
  Disk& disk_;
};

class SpillFileTest : public testing::Test {
 protected:
  static std::vector<std::byte> Filled(int value) {
    return std::vector<std::byte>(kBlock, static_cast<std::byte>(value));
  }
  std::vector<SpilledBlock> Taken(size_t bytes) {
    std::vector<SpilledBlock> blocks;
    EXPECT_TRUE(file_.Take(bytes, &blocks));
    return blocks;
  }

  Disk disk_;
  SpillFile file_{std::make_unique<FakeIo>(&disk_), 4 * kBlock + 1, 7};
  std::vector<std::byte> read_ = std::vector<std::byte>(kBlock);
};

TEST_F(SpillFileTest, GivesBackWhatWasWritten) {
  std::vector<SpilledBlock> blocks = Taken(2 * kBlock);
  ASSERT_EQ(blocks.size(), 2u);
  EXPECT_TRUE(file_.Write(&blocks[0], Filled(1).data()).ok());
  EXPECT_TRUE(file_.Write(&blocks[1], Filled(2).data()).ok());

  EXPECT_TRUE(file_.Read(blocks[1], read_.data()).ok());
  EXPECT_EQ(read_, Filled(2));
  EXPECT_TRUE(file_.Read(blocks[0], read_.data()).ok());
  EXPECT_EQ(read_, Filled(1));
}

TEST_F(SpillFileTest, TakesNoMoreThanItsSize) {
  std::vector<SpilledBlock> first = Taken(3 * kBlock - 1), more;
  EXPECT_FALSE(file_.Take(kBlock + 1, &more));
  EXPECT_EQ(file_.free_bytes(), kBlock);
  EXPECT_TRUE(file_.Take(kBlock, &more));
  EXPECT_FALSE(file_.Take(1, &more));
  file_.Give(first);
  EXPECT_FALSE(file_.IsEmpty());
  file_.Give(more);
  EXPECT_TRUE(file_.IsEmpty());
}

TEST_F(SpillFileTest, ShortAndInterruptedOperationsGoOn) {
  disk_.at_once = kBlock / 3;
  disk_.interruptions = 2;
  std::vector<SpilledBlock> blocks = Taken(kBlock);
  EXPECT_TRUE(file_.Write(&blocks[0], Filled(9).data()).ok());
  disk_.interruptions = 2;
  EXPECT_TRUE(file_.Read(blocks[0], read_.data()).ok());
  EXPECT_EQ(read_, Filled(9));
}

TEST_F(SpillFileTest, ErrorsAreToldWithTheirReason) {
  std::vector<SpilledBlock> blocks = Taken(kBlock);
  disk_.error = ENOSPC;
  EXPECT_EQ(file_.Write(&blocks[0], Filled(1).data()).text(),
            "cannot write: No space left on device");
  disk_.error = 0;
  EXPECT_TRUE(file_.Write(&blocks[0], Filled(1).data()).ok());
  disk_.error = EIO;
  EXPECT_EQ(file_.Read(blocks[0], read_.data()).text(), "cannot read: Input/output error");
}

TEST_F(SpillFileTest, AFileThatBecameShorterIsAnError) {
  std::vector<SpilledBlock> blocks = Taken(kBlock);
  EXPECT_TRUE(file_.Write(&blocks[0], Filled(1).data()).ok());
  disk_.bytes.resize(kBlock / 2);
  EXPECT_EQ(file_.Read(blocks[0], read_.data()).text(), "cannot read: the file is too short");
}

TEST_F(SpillFileTest, ADamagedBlockIsAnErrorAndNeverAnAnswer) {
  std::vector<SpilledBlock> blocks = Taken(kBlock);
  EXPECT_TRUE(file_.Write(&blocks[0], Filled(1).data()).ok());
  disk_.bytes[kBlock / 2] ^= std::byte{1};
  EXPECT_EQ(file_.Read(blocks[0], read_.data()).text(),
            "cannot read: the bytes are not those that were written");
}

TEST_F(SpillFileTest, EqualBytesOfAnotherBlockAreAnError) {
  std::vector<SpilledBlock> blocks = Taken(2 * kBlock);
  EXPECT_TRUE(file_.Write(&blocks[0], Filled(1).data()).ok());
  EXPECT_TRUE(file_.Write(&blocks[1], Filled(1).data()).ok());
  std::swap(blocks[0].number, blocks[1].number);
  EXPECT_FALSE(file_.Read(blocks[0], read_.data()).ok());
}

// The real input and output, in a folder of the tests.
class RealFileTest : public SpillFileTest {
 protected:
  static base::UniqueFd Opened(int flags) {
    const char* const folder = getenv("TMPDIR");
    const std::string path = folder ? folder : "/tmp";
    return base::UniqueFd(open(path.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC | flags, 0600));
  }
  void Check(int flags) {
    base::UniqueFd opened = Opened(flags);
    if (!opened) GTEST_SKIP() << "no such file: " << strerror(errno);
    SpillFile file(IoOf(std::move(opened)), 4 * kBlock, 1);
    auto* const data = static_cast<std::byte*>(aligned_alloc(SpillFile::kAlignment, kBlock));
    std::vector<SpilledBlock> blocks;
    ASSERT_TRUE(file.Take(2 * kBlock, &blocks));
    std::fill_n(data, kBlock, std::byte{5});
    EXPECT_TRUE(file.Write(&blocks[1], data).ok());
    std::fill_n(data, kBlock, std::byte{0});
    EXPECT_TRUE(file.Read(blocks[1], data).ok());
    EXPECT_EQ(data[kBlock - 1], std::byte{5});
    EXPECT_FALSE(file.Read(blocks[0], data).ok()) << "it was never written";
    free(data);
  }
};

TEST_F(RealFileTest, DirectFileGivesBackWhatWasWritten) { Check(O_DIRECT); }

TEST_F(RealFileTest, PlainFileGivesBackWhatWasWritten) { Check(0); }

TEST_F(RealFileTest, UnalignedMemoryEndsDirectIoAndIsServed) {
  base::UniqueFd opened = Opened(O_DIRECT);
  if (!opened) GTEST_SKIP() << "no direct I/O here";
  SpillFile file(IoOf(std::move(opened)), kBlock, 1);
  std::vector<std::byte> data(kBlock + 1, std::byte{3});
  std::vector<SpilledBlock> blocks;
  ASSERT_TRUE(file.Take(kBlock, &blocks));
  EXPECT_TRUE(file.Write(&blocks[0], data.data() + 1).ok());
  EXPECT_TRUE(file.Read(blocks[0], read_.data()).ok());
}

// As on the spill thread, the signal is blocked.
TEST_F(RealFileTest, ALimitOfFileSizesIsAnError) {
  const pid_t child = fork();
  if (child == 0) {
    sigset_t blocked;
    sigfillset(&blocked);
    sigprocmask(SIG_SETMASK, &blocked, nullptr);
    const rlimit limit{kBlock, kBlock};
    setrlimit(RLIMIT_FSIZE, &limit);
    SpillFile file(IoOf(Opened(0)), 4 * kBlock, 1);
    std::vector<SpilledBlock> blocks;
    const bool is_right = file.Take(2 * kBlock, &blocks) &&
                          file.Write(&blocks[0], read_.data()).ok() &&
                          !file.Write(&blocks[1], read_.data()).ok();
    _exit(is_right ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace spillway::interposer
