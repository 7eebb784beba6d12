#include "agent/loop/passed_socket.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "base/unix_socket.h"

namespace spillway::agent {
namespace {

constexpr char kAll[] = "/run/spillway/agent.sock", kJobs[] = "/run/spillway/jobs/agent.sock";

std::string Of(const std::string& address, std::optional<Entrance> known = {},
               const ListenAddresses& configured = {kAll, kJobs}) {
  const auto entrance = EntranceOf(address, known, configured);
  if (!entrance) return "refused";
  return *entrance == Entrance::kAll ? "all" : "jobs";
}

TEST(PassedSocketTest, ItsAddressTellsWhoseItIs) {
  EXPECT_EQ(Of(kAll), "all");
  EXPECT_EQ(Of(kJobs), "jobs");
  EXPECT_EQ(Of("/run/spillway/x/../jobs/agent.sock"), "jobs");
  EXPECT_EQ(Of("@agent", {}, {"@agent", kJobs}), "all");
  EXPECT_EQ(Of("/run/of_the_unit.sock", {}, {kAll, ""}), "all");
}

// Regression: systemd names a socket after its unit unless the unit says otherwise. The jobs'
// socket then became one of operators, and containers' root operated the node.
TEST(PassedSocketTest, NoNameMakesTheJobsSocketOneOfOperators) {
  EXPECT_EQ(Of(kJobs, Entrance::kAll), "jobs");
  EXPECT_EQ(Of("/run/spillway/others/agent.sock"), "refused");
  EXPECT_EQ(Of(""), "refused");
}

// The configuration may have changed since an earlier agent opened it.
TEST(PassedSocketTest, AnEarlierAgentsNameCountsElsewhere) {
  EXPECT_EQ(Of("/run/old.sock", Entrance::kAll), "all");
  EXPECT_EQ(Of("/run/old.sock", Entrance::kJobsOnly), "jobs");
  EXPECT_EQ(Of(kAll, Entrance::kJobsOnly), "jobs");
}

TEST(PassedSocketTest, ReadsTheAddressOfASocket) {
  char name[] = "/tmp/spillway-passed.XXXXXX";
  const std::string folder = mkdtemp(name);
  for (const std::string& text : {folder + "/a", "@" + folder}) {
    const base::UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    EXPECT_EQ(AddressOf(socket.get()), "");
    const base::UnixAddress address = base::UnixAddressOf(text);
    ASSERT_EQ(bind(socket.get(), address.get(), address.size), 0);
    EXPECT_EQ(AddressOf(socket.get()), text);
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace spillway::agent
