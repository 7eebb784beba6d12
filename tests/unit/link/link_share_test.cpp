// The agent's side of a shared link: owners of slots, and what clients can do with their files.
#include "agent/link/link_share.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mapping.h"

namespace spillway::agent {
namespace {

using protocol::LinkLanes;
using protocol::LinkTerms;

const LinkTerms& TermsAsClient(const LinkShare& share) {
  void* const memory =
      mmap(nullptr, sizeof(LinkTerms), PROT_READ, MAP_SHARED, share.terms_file(), 0);
  EXPECT_NE(memory, MAP_FAILED);
  return *static_cast<const LinkTerms*>(memory);
}

TEST(LinkShareTest, ClientsReadWhatTheAgentSet) {
  auto share = LinkShare::Make({50'000, 40'000});
  ASSERT_TRUE(share.has_value());
  const LinkTerms& terms = TermsAsClient(*share);

  const auto first = share->Join(300);
  const auto second = share->Join(200);

  ASSERT_TRUE(first.has_value() && second.has_value());
  EXPECT_NE(*first, *second);
  EXPECT_EQ(terms.bytes_per_second[0], 50'000);
  EXPECT_EQ(terms.bytes_per_second[1], 40'000);
  EXPECT_EQ(terms.weights[*second], 200u);
  EXPECT_EQ(terms.total_weight, 500u);
  EXPECT_EQ(terms.slots_used, 2u);

  share->SetWeight(*first, 700);
  EXPECT_EQ(terms.total_weight, 900u);
  share->Leave(*second);
  EXPECT_EQ(terms.total_weight, 700u);
  EXPECT_EQ(terms.slots_used, 1u);
  EXPECT_EQ(share->Join(1), second);
}

TEST(LinkShareTest, ClientsCannotWriteTheTermsNorResizeAnything) {
  const auto share = LinkShare::Make({});
  ASSERT_TRUE(share.has_value());
  const std::string path = "/proc/self/fd/" + std::to_string(share->terms_file());

  EXPECT_EQ(
      mmap(nullptr, sizeof(LinkTerms), PROT_READ | PROT_WRITE, MAP_SHARED, share->terms_file(), 0),
      MAP_FAILED);
  // Even the files' owner gains nothing by opening one anew for writing.
  const int reopened = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (reopened >= 0) {
    EXPECT_EQ(mmap(nullptr, sizeof(LinkTerms), PROT_READ | PROT_WRITE, MAP_SHARED, reopened, 0),
              MAP_FAILED);
    EXPECT_NE(pwrite(reopened, "x", 1, 0), 1);
    close(reopened);
  }
  EXPECT_NE(ftruncate(share->lanes_file(), 0), 0);
  EXPECT_NE(ftruncate(share->lanes_file(), 1 << 30), 0);
}

// Regression: a client sealed the lanes, and later clients got no slot.
TEST(LinkShareTest, ClientsCannotSealTheLanesAgainstLaterClients) {
  const auto share = LinkShare::Make({});
  ASSERT_TRUE(share.has_value());

  for (const int seal : {F_SEAL_FUTURE_WRITE, F_SEAL_WRITE, F_SEAL_SEAL})
    EXPECT_NE(fcntl(share->lanes_file(), F_ADD_SEALS, seal), 0) << seal;

  EXPECT_TRUE(base::Mapping(share->lanes_file(), sizeof(LinkLanes)));
}

TEST(LinkShareTest, FreedSlotIsNotAwaitedAndStartsFromZero) {
  auto share = LinkShare::Make({1'000'000'000, 0});
  ASSERT_TRUE(share.has_value());
  const uint32_t slot = *share->Join(1);
  auto* const lanes = static_cast<LinkLanes*>(
      mmap(nullptr, sizeof(LinkLanes), PROT_READ | PROT_WRITE, MAP_SHARED, share->lanes_file(), 0));
  lanes->lanes[0].slots[slot].waits_until_ns = INT64_MAX;
  lanes->lanes[0].slots[slot].admitted_bytes = 17;
  EXPECT_EQ(share->AdmittedBytes(slot, protocol::Direction::kToDevice), 17);

  share->Leave(slot);
  EXPECT_EQ(lanes->lanes[0].slots[slot].waits_until_ns, 0);

  ASSERT_EQ(share->Join(1), slot);
  EXPECT_EQ(share->AdmittedBytes(slot, protocol::Direction::kToDevice), 0);
}

TEST(LinkShareTest, CorruptedLaneIsRepaired) {
  auto share = LinkShare::Make({1'000'000'000, 1'000'000'000});
  ASSERT_TRUE(share.has_value());
  const uint32_t slot = *share->Join(1);
  auto* const lanes = static_cast<LinkLanes*>(
      mmap(nullptr, sizeof(LinkLanes), PROT_READ | PROT_WRITE, MAP_SHARED, share->lanes_file(), 0));
  lanes->lanes[0].free_at_ns = INT64_MAX;
  lanes->lanes[0].slots[900].waits_until_ns = INT64_MAX;
  lanes->lanes[1].free_at_ns = 5'500'000;
  lanes->lanes[1].slots[slot].waits_until_ns = 6'000'000;

  share->Mend(5'000'000);

  EXPECT_EQ(lanes->lanes[0].free_at_ns, 5'000'000);
  EXPECT_EQ(lanes->lanes[0].slots[900].waits_until_ns, 0);
  EXPECT_EQ(lanes->lanes[1].free_at_ns, 5'500'000);
  EXPECT_EQ(lanes->lanes[1].slots[slot].waits_until_ns, 6'000'000);
}

TEST(LinkShareTest, LackOfSlotsIsReported) {
  auto share = LinkShare::Make({});
  ASSERT_TRUE(share.has_value());
  for (uint32_t i = 0; i < protocol::kLinkSlots; ++i) ASSERT_TRUE(share->Join(1).has_value());

  EXPECT_FALSE(share->Join(1).has_value());
}

}  // namespace
}  // namespace spillway::agent
