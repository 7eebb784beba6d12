#include "agent/node/holdings/budget_record.h"

#include "tests/unit/agent/node/part_fixture.h"

namespace spillway::agent {
namespace {

class MapRecord : public HeldRecord {
 public:
  Held Before(const HolderOnDevice& holder) const override {
    const auto found = before.find(holder);
    return found == before.end() ? Held{} : found->second;
  }
  void Note(const HolderOnDevice& holder, const Held& budgeted) override {
    noted[holder] = budgeted.memory_bytes;
  }
  std::map<HolderOnDevice, Held> NotReturned() const override { return {}; }
  void ForgetBefore() override { before.clear(); }

  std::map<HolderOnDevice, Held> before;
  std::map<HolderOnDevice, int64_t> noted;
};

class BudgetRecordTest : public PartTest {
 protected:
  BudgetRecordTest() {
    facts_.devices = {{{9}, "GPU-1", "Simulated", 100}};
    facts_.host_bytes = 50;
    arbiter_.SetDevice(kDevice, 100);
    arbiter_.SetHost(50);
  }
  int64_t Believed(HeldRecord* record, int64_t held_bytes) {
    const BudgetRecord budgets(&facts_, &table_, &arbiter_, &resume_, record);
    return budgets.BelievedOf(session_, kDevice, {.held_bytes = held_bytes}).memory_bytes;
  }

  NodeFacts facts_;
  Arbiter arbiter_{ArbiterRules{.step_bytes = 1, .headroom_bytes = 0}};
  ResumePeriod resume_{100, 0};
  Session& session_ = NewJobSession("job", 7);
  const HolderOnDevice holder_ = {"job", 7, {9}};
  MapRecord record_;
};

TEST_F(BudgetRecordTest, AProcessIsBelievedAsFarAsRecorded) {
  EXPECT_EQ(Believed(&record_, 60), 0) << "unknown";
  record_.before[holder_] = {40, 0};

  EXPECT_EQ(Believed(&record_, 60), 40);
  EXPECT_EQ(Believed(&record_, 30), 30);
}

TEST_F(BudgetRecordTest, WithoutARecordItIsBelievedUpToTheDevice) {
  EXPECT_EQ(Believed(nullptr, 60), 60);
  EXPECT_EQ(Believed(nullptr, 600), 100);
}

TEST_F(BudgetRecordTest, NobodyIsBelievedLater) {
  record_.before[holder_] = {40, 0};
  resume_.Pass(100);

  EXPECT_EQ(Believed(&record_, 60), 0);
}

TEST_F(BudgetRecordTest, ADecisionIsRecordedWithTheProcessesBudget) {
  BudgetRecord budgets(&facts_, &table_, &arbiter_, &resume_, &record_);
  Register(session_, 3);
  Terms terms;
  terms.memory.limit = 100;
  arbiter_.Join(ProcessOf(session_, kDevice), terms, {.wanted_bytes = 70}, 0);
  const Decisions decisions = arbiter_.Decide(0);
  ASSERT_EQ(decisions.grants.size(), 1U);

  budgets.Note(decisions.grants[0].process);

  EXPECT_EQ(record_.noted.at(holder_), decisions.grants[0].memory_bytes);
  budgets.Note({session_.job, SessionId{99}, kDevice});  // a session that has ended
  EXPECT_EQ(record_.noted.size(), 1U);
}

}  // namespace
}  // namespace spillway::agent
