#include "base/unix_socket.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

namespace spillway::base {
namespace {

class UnixSocketTest : public ::testing::Test {
 protected:
  UnixSocketTest() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    near_.Reset(ends[0]);
    far_.Reset(ends[1]);
  }
  ssize_t Receive(std::size_t most_files) {
    files_.clear();
    return ReceiveWithFiles(far_.get(), place_, most_files, &files_);
  }

  UniqueFd near_, far_;
  std::vector<UniqueFd> files_;
  char place_[16];
};

ino_t InodeOf(int file) {
  struct stat facts {};
  fstat(file, &facts);
  return facts.st_ino;
}

TEST_F(UnixSocketTest, PassesDescriptorsInOrder) {
  const UniqueFd one(open("/proc/self/stat", O_RDONLY)), other(open("/dev/null", O_RDONLY));
  const int files[] = {one.get(), other.get()};
  ASSERT_EQ(SendWithFiles(near_.get(), "hello", files), 5);

  ASSERT_EQ(Receive(2), 5);
  EXPECT_EQ(std::string_view(place_, 5), "hello");
  ASSERT_EQ(files_.size(), 2u);
  EXPECT_EQ(InodeOf(files_[0].get()), InodeOf(one.get()));
  EXPECT_EQ(InodeOf(files_[1].get()), InodeOf(other.get()));
  EXPECT_EQ(fcntl(files_[0].get(), F_GETFD), FD_CLOEXEC);
}

TEST_F(UnixSocketTest, ReceivesNoMoreDescriptorsThanRequested) {
  const int files[] = {near_.get(), near_.get(), near_.get()};
  for (std::size_t most = 0; most < 4; ++most) {
    ASSERT_EQ(SendWithFiles(near_.get(), "x", files), 1);
    ASSERT_EQ(Receive(most), 1);
    EXPECT_EQ(files_.size(), most);
  }
  ASSERT_EQ(SendWithFiles(near_.get(), "x", {}), 1);
  ASSERT_EQ(Receive(3), 1);
  EXPECT_TRUE(files_.empty());
}

TEST_F(UnixSocketTest, ReportsWhySendOrReceiveFailed) {
  EXPECT_EQ(Receive(1), -1);
  EXPECT_EQ(errno, EAGAIN);
  const std::vector<int> too_many(kMostPassedFiles + 1, near_.get());
  EXPECT_EQ(SendWithFiles(near_.get(), "x", too_many), -1);
  EXPECT_EQ(errno, EINVAL);
  far_.Reset();
  EXPECT_EQ(SendWithFiles(near_.get(), "x", {}), -1);
  EXPECT_EQ(errno, EPIPE);
}

TEST(UnixAddressTest, IsAPathOrAnAbstractName) {
  const UnixAddress path = UnixAddressOf("/run/a");
  EXPECT_TRUE(path.is_path());
  EXPECT_STREQ(path.name.sun_path, "/run/a");
  EXPECT_EQ(path.size, offsetof(sockaddr_un, sun_path) + 7);

  const UnixAddress abstract = UnixAddressOf("@a");
  EXPECT_FALSE(abstract.is_path());
  EXPECT_EQ(abstract.name.sun_path[1], 'a');
  EXPECT_EQ(abstract.size, offsetof(sockaddr_un, sun_path) + 2);

  EXPECT_EQ(UnixAddressOf("").size, 0u);
  EXPECT_EQ(UnixAddressOf(std::string(108, 'a')).size, 0u);
  EXPECT_NE(UnixAddressOf(std::string(107, 'a')).size, 0u);
}

}  // namespace
}  // namespace spillway::base
