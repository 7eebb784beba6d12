#include "agent/report/history.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "agent/report/live_pages.h"

namespace spillway::agent {
namespace {

constexpr int64_t kOneSecond = 1'000'000'000;
constexpr int64_t kGibibyte = int64_t{1} << 30;

TenancyReport Tenancy(int64_t resident_bytes, int64_t to_host_bytes = 0, int64_t demand_ns = 0) {
  TenancyReport tenancy;
  tenancy.resident_bytes = resident_bytes;
  tenancy.to_host_bytes = to_host_bytes;
  tenancy.parts.stall_ns[0] = demand_ns;
  tenancy.stall_ns = demand_ns;
  return tenancy;
}

NodeReport ReportAt(int64_t seconds, const std::map<std::string, TenancyReport>& jobs) {
  NodeReport report;
  report.instance = 7;
  report.up_ns = seconds * kOneSecond;
  report.devices = {{0, "GPU-1", "NVIDIA H200", 140 * kGibibyte, 0, 0, "", 0}};
  for (const auto& [name, tenancy] : jobs) {
    JobReport job;
    job.name = name;
    job.command = "<img src=x>\xff\n";
    job.tenancies = {tenancy};
    report.jobs.push_back(job);
  }
  return report;
}

TEST(NodeHistoryTest, RatesAreDifferencesOfCountersBySecond) {
  NodeHistory history;
  history.Add(ReportAt(1, {{"a", Tenancy(kGibibyte, 10'000, 0)}}), 1000);
  history.Add(ReportAt(3, {{"a", Tenancy(2 * kGibibyte, 14'000, kOneSecond / 2)}}), 3000);

  const HistorySample* const now = history.NewestOf({"a", 0});
  ASSERT_NE(now, nullptr);
  EXPECT_EQ(now->resident_bytes, 2 * kGibibyte);
  EXPECT_EQ(now->to_host_bytes, 2000);
  EXPECT_EQ(now->stall_permille[0], 250);
  EXPECT_EQ(history.jobs().at({"a", 0}).samples.front().to_host_bytes, 0)
      << "what a job moved before it was first seen is no rate";
}

// Regression: what a process had moved before it reported to this agent was shown as a rate.
TEST(NodeHistoryTest, WhatAProcessBringsAtItsFirstReportIsNoRate) {
  NodeHistory history;
  TenancyReport joined = Tenancy(kGibibyte, 5'000'000, kOneSecond * 3600);
  history.Add(ReportAt(1, {{"a", Tenancy(kGibibyte)}}), 1000);
  joined.reporters = {SessionId{7}};
  history.Add(ReportAt(2, {{"a", joined}}), 2000);
  EXPECT_EQ(history.NewestOf({"a", 0})->to_host_bytes, 0);
  EXPECT_EQ(history.NewestOf({"a", 0})->stall_permille[0], 0);

  joined.to_host_bytes += 9;
  history.Add(ReportAt(3, {{"a", joined}}), 3000);
  EXPECT_EQ(history.NewestOf({"a", 0})->to_host_bytes, 9);
}

TEST(NodeHistoryTest, ADeviceHasTheSumOfItsJobs) {
  NodeHistory history;
  history.Add(ReportAt(1, {{"a", Tenancy(kGibibyte)}, {"b", Tenancy(kGibibyte)}}), 1000);
  history.Add(ReportAt(2, {{"a", Tenancy(kGibibyte, 5)}, {"b", Tenancy(kGibibyte, 6)}}), 2000);

  EXPECT_EQ(history.NewestOf(0)->resident_bytes, 2 * kGibibyte);
  EXPECT_EQ(history.NewestOf(0)->to_host_bytes, 11);
}

TEST(NodeHistoryTest, ACounterThatFallsIsNoRate) {
  NodeHistory history;
  history.Add(ReportAt(1, {{"a", Tenancy(kGibibyte, 1000)}}), 1000);
  history.Add(ReportAt(2, {{"a", Tenancy(kGibibyte, 10)}}), 2000);
  EXPECT_EQ(history.NewestOf({"a", 0})->to_host_bytes, 0);
}

TEST(NodeHistoryTest, AReportThatIsSeenTwiceCountsOnce) {
  NodeHistory history;
  history.Add(ReportAt(1, {{"a", Tenancy(kGibibyte)}}), 1000);
  history.Add(ReportAt(1, {{"a", Tenancy(kGibibyte)}}), 1500);
  EXPECT_EQ(history.tick(), 1u);
}

TEST(NodeHistoryTest, KeepsTheNewestSamplesOnly) {
  NodeHistory history;
  constexpr int64_t reports = NodeHistory::kMostSamples + 50;
  for (int64_t i = 1; i <= reports; ++i) history.Add(ReportAt(i, {{"a", Tenancy(i)}}), i * 1000);

  EXPECT_EQ(history.at_ms().size(), NodeHistory::kMostSamples);
  EXPECT_EQ(history.at_ms().front(), 51'000);
  const HistorySeries& series = history.jobs().at({"a", 0});
  EXPECT_EQ(series.samples.size(), NodeHistory::kMostSamples);
  EXPECT_EQ(series.samples.front().resident_bytes, 51);
  EXPECT_EQ(series.last_tick(), history.tick());
}

TEST(NodeHistoryTest, AnEndedJobStaysUntilItsSamplesAreOld) {
  NodeHistory history;
  history.Add(ReportAt(1, {{"a", Tenancy(1)}}), 1000);
  for (int64_t i = 2; i <= int64_t{NodeHistory::kMostSamples}; ++i)
    history.Add(ReportAt(i, {}), i * 1000);
  EXPECT_EQ(history.jobs().count({"a", 0}), 1u);
  EXPECT_EQ(history.NewestOf({"a", 0}), nullptr);

  history.Add(ReportAt(NodeHistory::kMostSamples + 1, {}), 0);
  EXPECT_EQ(history.jobs().count({"a", 0}), 0u);
}

TEST(NodeHistoryTest, AJobThatComesBackBeginsAnew) {
  NodeHistory history;
  history.Add(ReportAt(1, {{"a", Tenancy(1)}}), 1000);
  history.Add(ReportAt(2, {}), 2000);
  history.Add(ReportAt(3, {{"a", Tenancy(3)}}), 3000);
  EXPECT_EQ(history.jobs().at({"a", 0}).first_tick, 3u);
  EXPECT_EQ(history.jobs().at({"a", 0}).samples.size(), 1u);
}

std::map<std::string, TenancyReport> Jobs(size_t first, size_t count) {
  std::map<std::string, TenancyReport> jobs;
  for (size_t i = first; i < first + count; ++i) jobs[std::to_string(1000 + i)] = Tenancy(1);
  return jobs;
}

TEST(NodeHistoryTest, ManyJobsTakeABoundedNumberOfSeries) {
  NodeHistory history;
  history.Add(ReportAt(1, Jobs(0, 5000)), 1000);
  EXPECT_EQ(history.jobs().size(), NodeHistory::kMostSeries);
  EXPECT_EQ(history.left_out(), 5000 - NodeHistory::kMostSeries);
  EXPECT_EQ(history.NewestOf(0)->resident_bytes, 5000) << "the device still counts all";
}

TEST(NodeHistoryTest, ANewJobTakesThePlaceOfAnEndedOneAndOfNoOther) {
  NodeHistory history;
  const auto all = Jobs(0, NodeHistory::kMostSeries);
  history.Add(ReportAt(1, all), 1000);
  auto more = all;
  more["new"] = Tenancy(1);
  history.Add(ReportAt(2, more), 2000);
  EXPECT_EQ(history.NewestOf({"new", 0}), nullptr);
  EXPECT_EQ(history.left_out(), 1u);

  more.erase("1000");
  history.Add(ReportAt(3, more), 3000);
  history.Add(ReportAt(4, more), 4000);
  EXPECT_NE(history.NewestOf({"new", 0}), nullptr);
  EXPECT_EQ(history.jobs().count({"1000", 0}), 0u);
  EXPECT_EQ(history.left_out(), 0u);
}

TEST(LivePagesTest, AnEventIsOneStateWithRates) {
  NodeHistory history;
  history.Add(ReportAt(1, {{"a", Tenancy(kGibibyte)}}), 1000);
  const NodeReport report = ReportAt(2, {{"a", Tenancy(kGibibyte, 4096)}});
  history.Add(report, 2000);

  const std::string event = EventOf(report, history);
  const std::string head = "event: state\nid: 7-2\ndata: ";
  ASSERT_TRUE(event.starts_with(head)) << event;
  ASSERT_TRUE(event.ends_with("}\n\n"));
  const std::string data = event.substr(head.size(), event.size() - head.size() - 2);
  EXPECT_EQ(data.find('\n'), data.npos) << "a line break would cut the event";
  const auto state = nlohmann::json::parse(data);
  EXPECT_EQ(state["schema"], 1);
  EXPECT_EQ(state["jobs"][0]["devices"][0]["now"]["to_host_bytes_per_second"], 4096);
  EXPECT_EQ(state["devices"][0]["now"]["stall_permille"]["unknown"], 0);
}

TEST(LivePagesTest, AnEventHasABoundedNumberOfJobs) {
  NodeHistory history;
  const NodeReport report = ReportAt(1, Jobs(0, kMostEventJobs + 3));
  history.Add(report, 1000);
  const auto state = nlohmann::json::parse(LiveState(report, history));
  EXPECT_EQ(state["jobs"].size(), kMostEventJobs);
  EXPECT_EQ(state["jobs_left_out"], 3);
}

TEST(LivePagesTest, AHistoryNamesTheFirstSampleOfEachSeries) {
  NodeHistory history;
  history.Add(ReportAt(1, {}), 1000);
  history.Add(ReportAt(2, {{"a", Tenancy(5)}}), 2000);
  const NodeReport report = ReportAt(3, {{"a", Tenancy(6)}, {"aa", Tenancy(7)}});
  history.Add(report, 3000);

  const auto job = nlohmann::json::parse(JobHistory("a", report, history));
  EXPECT_EQ(job["at_ms"], (std::vector<int64_t>{1000, 2000, 3000}));
  ASSERT_EQ(job["series"].size(), 1u);
  EXPECT_EQ(job["series"][0]["first"], 1);
  EXPECT_EQ(job["series"][0]["resident_bytes"], (std::vector<int64_t>{5, 6}));
  const auto node = nlohmann::json::parse(DeviceHistory(report, history));
  EXPECT_EQ(node["series"][0]["resident_bytes"], (std::vector<int64_t>{0, 5, 13}));
  EXPECT_TRUE(nlohmann::json::parse(JobHistory("b", report, history))["series"].empty());
}

}  // namespace
}  // namespace spillway::agent
