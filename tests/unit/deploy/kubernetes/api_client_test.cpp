// Watches that are interrupted, at a server that never answers.
#include "deploy/kubernetes/api_client.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <thread>

#include "base/clock.h"
#include "base/unique_fd.h"

namespace spillway::kubernetes {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

class SilentServerTest : public testing::Test {
 protected:
  SilentServerTest() : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* const name = reinterpret_cast<sockaddr*>(&address);
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(listener_.get(), name, size), 0);
    EXPECT_EQ(listen(listener_.get(), 8), 0);
    EXPECT_EQ(getsockname(listener_.get(), name, &size), 0);
    client_ =
        *ApiClient::Make({"http://127.0.0.1:" + std::to_string(ntohs(address.sin_port)), "", ""});
  }
  void Watch() {
    const auto answer = client_->Watch("/any", [](const std::string&) { return true; });
    EXPECT_TRUE(answer.ok()) << answer.text();
  }

  base::UniqueFd listener_;
  std::unique_ptr<ApiClient> client_;
  const int64_t began_ns_ = base::NowNs(CLOCK_MONOTONIC);
};

// Regression: such an interrupt was lost, and the driver's end waited five minutes for the watch.
TEST_F(SilentServerTest, AnInterruptBeforeTheWatchEndsIt) {
  client_->Interrupt();
  Watch();
  EXPECT_LT(base::NowNs(CLOCK_MONOTONIC) - began_ns_, 60 * kSecond);
}

TEST_F(SilentServerTest, AnInterruptDuringTheWatchEndsIt) {
  std::thread watching([this] { Watch(); });
  const base::UniqueFd connection(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  char request;
  EXPECT_EQ(recv(connection.get(), &request, 1, 0), 1);
  client_->Interrupt();
  watching.join();
  EXPECT_LT(base::NowNs(CLOCK_MONOTONIC) - began_ns_, 60 * kSecond);
}

TEST_F(SilentServerTest, AGetEndsByItsDeadline) {
  const auto answer = client_->Get("/any", began_ns_ + kSecond / 5);
  EXPECT_FALSE(answer.ok());
  EXPECT_LT(base::NowNs(CLOCK_MONOTONIC) - began_ns_, 5 * kSecond);
}

}  // namespace
}  // namespace spillway::kubernetes
