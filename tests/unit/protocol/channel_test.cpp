// What every channel promises, checked for each kind.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cstring>

#include "base/unix_socket.h"
#include "protocol/memory_channel.h"
#include "protocol/socket_channel.h"

namespace spillway::protocol {
namespace {

using What = Received::What;

struct Ends {
  std::unique_ptr<Channel> near, far;
};

Ends SocketEnds() {
  int files[2];
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, files), 0);
  return {std::make_unique<SocketChannel>(base::UniqueFd(files[0])),
          std::make_unique<SocketChannel>(base::UniqueFd(files[1]))};
}
Ends MemoryEnds() {
  auto [near, far] = MemoryChannel::Pair();
  return {std::move(near), std::move(far)};
}

class ChannelTest : public testing::TestWithParam<Ends (*)()> {
 protected:
  Ends ends_ = GetParam()();
};

INSTANTIATE_TEST_SUITE_P(Kinds, ChannelTest, testing::Values(&SocketEnds, &MemoryEnds),
                         [](const auto& info) { return info.index == 0 ? "Socket" : "Memory"; });

TEST_P(ChannelTest, DeliversInOrder) {
  EXPECT_EQ(ends_.near->Send(Obeyed{0, 1, 10, 0}), Sent::kSent);
  EXPECT_EQ(ends_.near->Send(Obeyed{0, 2, 20, 0}), Sent::kSent);

  EXPECT_EQ(std::get<Obeyed>(ends_.far->Receive().message).serial, 1u);
  EXPECT_EQ(std::get<Obeyed>(ends_.far->Receive().message).serial, 2u);
  EXPECT_EQ(ends_.far->Receive().what, What::kNothing);
}

TEST_P(ChannelTest, SenderKnowsWhetherAllIsRead) {
  EXPECT_TRUE(ends_.near->IsRead());
  ends_.near->Send(Obeyed{0, 1, 10, 0});
  EXPECT_FALSE(ends_.near->IsRead());
  ends_.far->Receive();
  EXPECT_TRUE(ends_.near->IsRead());
}

TEST_P(ChannelTest, MessagesSentBeforeTheEndArrive) {
  ends_.near->Send(Goodbye{3});
  ends_.near.reset();

  EXPECT_EQ(ends_.far->Receive().what, What::kMessage);
  EXPECT_EQ(ends_.far->Receive().what, What::kClosed);
  EXPECT_EQ(ends_.far->Send(Done{}), Sent::kClosed);
}

// Regression: a client refused before its first message was read never received the reason.
TEST_P(ChannelTest, LastMessagesOfAnEndThatReadNothingArrive) {
  ends_.far->Send(Hello{});
  ends_.near->Send(Error{.code = ErrorCode::kTooFast});
  ends_.near.reset();

  EXPECT_EQ(ends_.far->Receive().what, What::kMessage);
  EXPECT_EQ(ends_.far->Receive().what, What::kClosed);
}

TEST_P(ChannelTest, ReportsAFullQueueAndLosesNothing) {
  int sent = 0;
  while (ends_.near->Send(Goodbye{sent}) == Sent::kSent) ++sent;
  EXPECT_EQ(ends_.near->Send(Goodbye{}), Sent::kFull);

  for (int i = 0; i < sent; ++i)
    ASSERT_EQ(std::get<Goodbye>(ends_.far->Receive().message).exit_code, i);
  EXPECT_EQ(ends_.far->Receive().what, What::kNothing);
}

TEST_P(ChannelTest, CarriesAFile) {
  const base::UniqueFd file(open("/dev/null", O_RDONLY | O_CLOEXEC));

  EXPECT_EQ(ends_.near->Send(Document{1, 0}, {{file.get()}}), Sent::kSent);

  const Received received = ends_.far->Receive();
  struct stat sent, arrived;
  ASSERT_EQ(fstat(file.get(), &sent), 0);
  ASSERT_EQ(fstat(received.file(), &arrived), 0);
  EXPECT_EQ(sent.st_rdev, arrived.st_rdev);
  EXPECT_NE(received.file(), file.get());
}

TEST_P(ChannelTest, CarriesSeveralFilesInTheirOrder) {
  const base::UniqueFd null(open("/dev/null", O_RDONLY | O_CLOEXEC)),
      zero(open("/dev/zero", O_RDONLY | O_CLOEXEC));

  EXPECT_EQ(ends_.near->Send(LinkPlace{2, 1, 17}, {{null.get(), zero.get()}}), Sent::kSent);

  const Received received = ends_.far->Receive();
  ASSERT_EQ(received.files.size(), 2u);
  const base::UniqueFd* const expected[] = {&null, &zero};
  for (size_t i = 0; i < 2; ++i) {
    struct stat sent, arrived;
    ASSERT_EQ(fstat(expected[i]->get(), &sent), 0);
    ASSERT_EQ(fstat(received.files[i].get(), &arrived), 0);
    EXPECT_EQ(sent.st_rdev, arrived.st_rdev) << i;
  }
}

TEST_P(ChannelTest, UsesTheAgreedVersion) {
  ends_.near->SetVersion(1);
  ends_.near->Send(Goodbye{});
  ends_.near->Send(Leaving{});

  EXPECT_EQ(ends_.far->Receive().what, What::kMessage);
  EXPECT_EQ(ends_.far->Receive().fault, Fault::kKind) << "version 1 knows no such message";
}

TEST(SocketChannelTest, FaultyFrameIsReportedAndItsFilesAreClosed) {
  int files[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, files), 0);
  const base::UniqueFd near(files[0]);
  SocketChannel far{base::UniqueFd(files[1])};
  const std::vector<char> noise(kFrameBytes + 1, 'x');

  ASSERT_EQ(send(near.get(), noise.data(), noise.size(), 0), static_cast<ssize_t>(noise.size()));
  ASSERT_EQ(send(near.get(), noise.data(), kFrameBytes, 0), static_cast<ssize_t>(kFrameBytes));

  const Received too_long = far.Receive();
  EXPECT_EQ(too_long.what, What::kFault);
  EXPECT_EQ(too_long.fault, Fault::kSize);
  EXPECT_EQ(far.Receive().fault, Fault::kMagic);
}

TEST(SocketChannelTest, SurplusFilesAreNeverLeftOpen) {
  int files[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, files), 0);
  const base::UniqueFd near(files[0]);
  SocketChannel far{base::UniqueFd(files[1])};
  const Frame frame = Encode(Goodbye{});
  const std::vector<int> too_many(12, files[0]);
  const base::UniqueFd before(dup(0));

  ASSERT_GT(base::SendWithFiles(near.get(), base::BytesOf(frame), too_many), 0);
  { const Received received = far.Receive(); }

  const base::UniqueFd after(dup(0));
  EXPECT_EQ(after.get(), before.get() + 1) << "a file of the sender is still open here";
}

TEST(SocketChannelTest, ConnectsAndAcceptsByPath) {
  const std::string path = testing::TempDir() + "channel_test." + std::to_string(getpid());
  const base::UniqueFd listener = ListenOn(path, 0600);
  ASSERT_TRUE(listener);

  SocketChannel near(ConnectTo(path));
  SocketChannel far(AcceptFrom(listener.get()));
  near.Send(Goodbye{5});

  EXPECT_EQ(std::get<Goodbye>(far.Receive().message).exit_code, 5);
  EXPECT_FALSE(AcceptFrom(listener.get()));
  unlink(path.c_str());
  EXPECT_FALSE(ConnectTo(path));
  EXPECT_FALSE(ListenOn(std::string(200, 'x'), 0600));
}

// Regression: a second agent, started by mistake, took the first one's socket. Both promised the
// same device, and later the first was unreachable.
TEST(SocketChannelTest, TakesNoSocketFromALivingListener) {
  const std::string path = testing::TempDir() + "channel_test." + std::to_string(getpid());
  base::UniqueFd listener = ListenOn(path, 0600);

  EXPECT_FALSE(ListenOn(path, 0600));

  EXPECT_EQ(errno, EADDRINUSE);
  EXPECT_TRUE(ConnectTo(path));
  listener.Reset();
  EXPECT_TRUE(ListenOn(path, 0600)) << "what a dead agent left is in nobody's way";
  unlink(path.c_str());
}

TEST(SocketChannelTest, RemovesSocketsOnly) {
  const std::string path = testing::TempDir() + "channel_test_file." + std::to_string(getpid());
  { const base::UniqueFd file(open(path.c_str(), O_WRONLY | O_CREAT, 0600)); }

  EXPECT_FALSE(ListenOn(path, 0600));

  EXPECT_EQ(errno, EEXIST);
  EXPECT_EQ(unlink(path.c_str()), 0);
}

}  // namespace
}  // namespace spillway::protocol
