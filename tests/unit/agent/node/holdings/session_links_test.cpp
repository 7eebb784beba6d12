#include "agent/node/holdings/session_links.h"

#include "tests/unit/agent/node/fake_shares.h"
#include "tests/unit/agent/node/part_fixture.h"

namespace spillway::agent {
namespace {

class SessionLinksTest : public PartTest {
 protected:
  FakeShares shares_;
  SessionLinks links_{&shares_};
};

TEST_F(SessionLinksTest, SendsAPlaceOnceAndChangesItsWeight) {
  Session& session = NewJobSession("job", 7);
  Registration& registration = Register(session, 3);

  links_.NoteGrant(session, 3, registration, 500);
  EXPECT_EQ(Next<protocol::LinkPlace>(session).device, 3U);
  EXPECT_EQ(shares_.weights[1], 500U);
  links_.NoteGrant(session, 3, registration, 0);

  EXPECT_TRUE(ReceivesNothing(session));
  EXPECT_EQ(shares_.weights[1], 1U) << "no weight is 0";
  links_.Leave(registration);
  EXPECT_TRUE(shares_.weights.empty());
}

TEST_F(SessionLinksTest, APlaceThatCannotBeSentIsGivenBack) {
  Session& session = NewJobSession("job", 7, 0);
  Registration& registration = Register(session, 3);

  links_.NoteGrant(session, 3, registration, 500);

  EXPECT_TRUE(shares_.weights.empty());
  EXPECT_FALSE(registration.place) << "the next grant tries again";
}

TEST_F(SessionLinksTest, ALinkWithoutPlacesIsAskedAgainAtTheNextGrant) {
  Session& session = NewJobSession("job", 7);
  Registration& registration = Register(session, 3);
  shares_.has_places = false;
  links_.NoteGrant(session, 3, registration, 500);
  EXPECT_TRUE(ReceivesNothing(session));

  shares_.has_places = true;
  links_.NoteGrant(session, 3, registration, 500);

  EXPECT_EQ(Next<protocol::LinkPlace>(session).slot, 1U);
}

TEST_F(SessionLinksTest, MendsLinksAtMostOnceASecond) {
  for (int64_t ms : {0, 500, 999, 1000}) links_.Settle(ms * 1'000'000);

  EXPECT_EQ(shares_.mended, 2);
}

}  // namespace
}  // namespace spillway::agent
