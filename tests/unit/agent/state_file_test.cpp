#include "agent/loop/state_file.h"

#include <gtest/gtest.h>

#include "agent/loop/boot_id.h"

namespace spillway::agent {
namespace {

SavedState FullState() {
  SavedState state{.draining = true, .terms = {{"local-7@12", {.limit_bytes = 5}}}};
  ExpectedJob& job = state.expected["slurm-5"];
  job.terms = {.guaranteed_bytes = 1, .limit_bytes = 8, .weight = 2};
  job.parts = {{"0", {.limit_bytes = 3}}, {"batch", {}}};
  job.totals = {.job = "slurm-5",
                .peak_bytes = 1,
                .allocated_bytes = 2,
                .to_host_bytes = 3,
                .to_device_bytes = 4,
                .stall_ns = 5,
                .refused_allocations = 6};
  state.expected["slurm-6"].totals.job = "slurm-6";
  state.allocations["a"].limits.limit_bytes = 7;
  state.allocations["claim-1.x"].is_named = true;
  state.allocations["claim-1.x"].jobs = {"pod-1f2e", "container-0a"};
  state.boot = "4f1e";
  return state;
}

TEST(StateFileTest, EverythingReturns) {
  EXPECT_EQ(DecodeState(EncodeState(FullState())), FullState());
  EXPECT_EQ(DecodeState(EncodeState({})), SavedState{});
}

// Regression: the line's end, as the kernel writes it, spoiled the file.
TEST(StateFileTest, TheMachinesBootReturns) {
  SavedState state = FullState();
  state.boot = BootId();

  EXPECT_FALSE(state.boot.empty());
  EXPECT_EQ(DecodeState(EncodeState(state)), state);
}

TEST(StateFileTest, AllocationsAloneKeepTheirBoot) {
  SavedState state;
  state.boot = "4f1e";
  state.allocations["a"];
  EXPECT_EQ(DecodeState(EncodeState(state)), state);
}

TEST(StateFileTest, AnIncompleteFileIsRefused) {
  const std::string text = EncodeState(FullState());
  for (size_t size = 0; size < text.size(); ++size)
    EXPECT_EQ(DecodeState(text.substr(0, size)), std::nullopt) << size;
}

}  // namespace
}  // namespace spillway::agent
