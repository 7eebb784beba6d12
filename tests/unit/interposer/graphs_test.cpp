#include "interposer/ledger/graphs.h"

#include <gtest/gtest.h>

namespace spillway::interposer {
namespace {

CUgraphExec Exec(std::uintptr_t number) { return reinterpret_cast<CUgraphExec>(number); }
CUgraphNode Node(std::uintptr_t number) { return reinterpret_cast<CUgraphNode>(number); }

NodeFacts NodeOfWords(std::vector<CUdeviceptr> words) {
  NodeFacts facts;
  facts.words = std::move(words);
  return facts;
}

NodeFacts KernelAt(std::uintptr_t kernel, CUdeviceptr word) {
  NodeFacts facts = NodeOfWords({word});
  facts.kernels.push_back(reinterpret_cast<CUfunction>(kernel));
  return facts;
}

TEST(GraphLedgerTest, LaunchNamesTheMemoryOfAllNodes) {
  GraphLedger ledger;
  NodeFacts set;
  set.writes.emplace_back(SetFacts{0x3000, 64, 1, 0});
  ledger.Instantiated(
      Exec(1),
      {{Node(1), NodeOfWords({0x2000, 0x1000})}, {Node(2), NodeOfWords({0x2000})}, {Node(3), set}});

  const GraphLedger::Launch launch = ledger.AboutToLaunch(Exec(1));

  ASSERT_TRUE(launch.facts);
  EXPECT_EQ(launch.facts->words, (std::vector<CUdeviceptr>{0x1000, 0x2000}));
  ASSERT_EQ(launch.facts->writes.size(), 1u);
  EXPECT_EQ(std::get<SetFacts>(launch.facts->writes[0]).base, 0x3000u);
  EXPECT_TRUE(launch.facts->complete);
}

// A training step updated in each iteration brings new addresses only.
TEST(GraphLedgerTest, KernelsAreNewUntilTheirLaunchIsScanned) {
  GraphLedger ledger;
  ledger.Instantiated(Exec(1), {{Node(1), KernelAt(7, 0x1000)}, {Node(2), KernelAt(5, 0x2000)}});
  EXPECT_TRUE(ledger.AboutToLaunch(Exec(1)).brings_new_kernels);
  EXPECT_TRUE(ledger.AboutToLaunch(Exec(1)).brings_new_kernels);
  ledger.MarkScanned(Exec(1), *ledger.AboutToLaunch(Exec(1)).facts);
  EXPECT_FALSE(ledger.AboutToLaunch(Exec(1)).brings_new_kernels);

  ledger.Updated(Exec(1), {{Node(3), KernelAt(5, 0x3000)}, {Node(4), KernelAt(7, 0x4000)}});
  EXPECT_FALSE(ledger.AboutToLaunch(Exec(1)).brings_new_kernels);

  ledger.NodeChanged(Exec(1), Node(3), KernelAt(6, 0x3000));
  EXPECT_TRUE(ledger.AboutToLaunch(Exec(1)).brings_new_kernels);
}

TEST(GraphLedgerTest, ChangedNodeNamesOnlyItsNewMemory) {
  GraphLedger ledger;
  ledger.Instantiated(Exec(1),
                      {{Node(1), NodeOfWords({0x1000})}, {Node(2), NodeOfWords({0x2000})}});
  ledger.NodeChanged(Exec(1), Node(1), NodeOfWords({0x5000}));
  EXPECT_EQ(ledger.AboutToLaunch(Exec(1)).facts->words, (std::vector<CUdeviceptr>{0x2000, 0x5000}));
}

TEST(GraphLedgerTest, UpdateReplacesAllFacts) {
  GraphLedger ledger;
  ledger.Instantiated(Exec(1),
                      {{Node(1), NodeOfWords({0x1000})}, {Node(2), NodeOfWords({0x2000})}});
  ledger.Updated(Exec(1), {{Node(7), NodeOfWords({0x7000})}});
  EXPECT_EQ(ledger.AboutToLaunch(Exec(1)).facts->words, (std::vector<CUdeviceptr>{0x7000}));
}

TEST(GraphLedgerTest, FactsInUseOutliveChangesAndTheGraph) {
  GraphLedger ledger;
  ledger.Instantiated(Exec(1), {{Node(1), NodeOfWords({0x1000})}});
  const GraphLedger::Launch launch = ledger.AboutToLaunch(Exec(1));
  ledger.NodeChanged(Exec(1), Node(1), NodeOfWords({0x2000}));
  ledger.Take(Exec(1));
  EXPECT_EQ(launch.facts->words, (std::vector<CUdeviceptr>{0x1000}));
}

TEST(GraphLedgerTest, DestroyedGraphIsForgotten) {
  GraphLedger ledger;
  ledger.Instantiated(Exec(1), {{Node(1), NodeOfWords({0x1000})}});
  ledger.Take(Exec(1));
  EXPECT_EQ(ledger.size(), 0u);
  EXPECT_FALSE(ledger.AboutToLaunch(Exec(1)).facts);
}

TEST(GraphLedgerTest, GraphIsTakenOnce) {
  GraphLedger ledger;
  ledger.Instantiated(Exec(1), {{Node(1), NodeOfWords({0x1000})}});
  EXPECT_TRUE(ledger.Take(Exec(1)));
  EXPECT_FALSE(ledger.Take(Exec(1)));
}

// An executable whose instantiation was not seen stays unknown; changes do not make it half known.
TEST(GraphLedgerTest, ChangesOfUnknownGraphsAreIgnored) {
  GraphLedger ledger;
  ledger.NodeChanged(Exec(9), Node(1), NodeOfWords({0x1000}));
  ledger.Updated(Exec(9), {{Node(1), NodeOfWords({0x1000})}});
  EXPECT_EQ(ledger.size(), 0u);
}

TEST(GraphLedgerTest, OneUnreadNodeMakesTheGraphIncomplete) {
  GraphLedger ledger;
  NodeFacts unread;
  unread.complete = false;
  ledger.Instantiated(Exec(1), {{Node(1), NodeOfWords({0x1000})}, {Node(2), unread}});
  EXPECT_FALSE(ledger.AboutToLaunch(Exec(1)).facts->complete);
}

TEST(GraphLedgerTest, ReusedHandleIsANewGraph) {
  GraphLedger ledger;
  ledger.Instantiated(Exec(1), {{Node(1), NodeOfWords({0x1000})}});
  ledger.Take(Exec(1));
  ledger.Instantiated(Exec(1), {{Node(1), NodeOfWords({0x2000})}});
  EXPECT_EQ(ledger.AboutToLaunch(Exec(1)).facts->words, (std::vector<CUdeviceptr>{0x2000}));
}

// Another thread gets the handle before the destruction has returned.
TEST(GraphLedgerTest, HandleReusedDuringDestructionKeepsItsFacts) {
  GraphLedger ledger;
  ledger.Instantiated(Exec(1), {{Node(1), NodeOfWords({0x1000})}});
  {
    const GraphLedger::Taken taken = ledger.Take(Exec(1));
    ledger.Instantiated(Exec(1), {{Node(1), NodeOfWords({0x2000})}});
  }
  EXPECT_EQ(ledger.AboutToLaunch(Exec(1)).facts->words, (std::vector<CUdeviceptr>{0x2000}));
}

TEST(GraphLedgerTest, GraphWhoseDestructionFailedIsKnown) {
  GraphLedger ledger;
  ledger.Instantiated(Exec(1), {{Node(1), NodeOfWords({0x1000})}});
  ledger.PutBack(ledger.Take(Exec(1)));
  ledger.PutBack(ledger.Take(Exec(2)));
  EXPECT_EQ(ledger.size(), 1u);
  EXPECT_EQ(ledger.AboutToLaunch(Exec(1)).facts->words, (std::vector<CUdeviceptr>{0x1000}));
}

// Positions come from the graph's edges; handles imply no order.
TEST(GraphLedgerTest, WritesAreOrderedByPosition) {
  GraphLedger ledger;
  NodeFacts early, late;
  early.writes.emplace_back(SetFacts{0x1000, 64, 1, 0});
  late.writes.emplace_back(SetFacts{0x2000, 64, 1, 0});
  late.place = 1;
  ledger.Instantiated(Exec(1), {{Node(2), early}, {Node(1), late}});

  const auto facts = ledger.AboutToLaunch(Exec(1)).facts;
  const auto& writes = facts->writes;

  ASSERT_EQ(writes.size(), 2u);
  EXPECT_EQ(std::get<SetFacts>(writes[0]).base, 0x1000u);
}

}  // namespace
}  // namespace spillway::interposer
