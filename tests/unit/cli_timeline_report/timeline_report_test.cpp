// `spillway view`: what it reads from traces, and which files it refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "cli/failure.h"
#include "cli/timeline_report/recorded_run.h"
#include "cli/timeline_report/report_page.h"
#include "cli/timeline_report/run_figures.h"
#include "cli/timeline_report/timeline_picture.h"
#include "cli/timeline_report/view_command.h"
#include "tests/support/paths.h"

namespace spillway::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kHead[] =
    "[\n{\"name\": \"spillway\", \"ph\": \"M\", \"pid\": 0, \"tid\": 0, \"args\": {\"schema\": 1, "
    "\"command\": \"t\"}}";

std::string TextOf(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::string Golden(const std::string& name) {
  return test::SourcePath("tests/unit/cli_timeline_report/golden/" + name);
}

RecordedRun Read(const std::string& text) {
  std::istringstream trace(text);
  return ReadRecordedRun(trace, "t.json");
}

std::string RefusalOf(const std::string& text) {
  try {
    Read(text);
  } catch (const Failure& failure) {
    return failure.text();
  }
  return "";
}

RecordedRun SmallJob() { return Read(TextOf(Golden("small_job.trace.json"))); }

TEST(RecordedRunTest, ReadsARecordedRun) {
  const RecordedRun run = SmallJob();
  EXPECT_EQ(run.command, "train --net \"<small>\"");
  EXPECT_TRUE(run.is_whole);
  const RecordedDevice& device = run.devices.at(0);
  EXPECT_EQ(device.operations.size(), 4u);
  EXPECT_EQ(device.operations[0].begin_ns, 10'000);
  EXPECT_EQ(device.operations[0].end_ns, 110'000);
  EXPECT_THAT(device.operations[0].touches, ElementsAre(1));
  EXPECT_TRUE(device.copies[0].is_out);
  EXPECT_EQ(device.copies[0].size_bytes, 4194304);
  EXPECT_EQ(device.plans[0].strategy, "spillway");
}

TEST(RecordedRunTest, TraceOfAKilledProcessIsReadUpToItsLastWholeEvent) {
  const std::string whole = TextOf(Golden("small_job.trace.json"));
  const std::size_t head_end = whole.find('\n', 2);
  std::size_t operations = 0;
  for (std::size_t size = head_end; size < whole.size() - 2; size += 7) {
    const RecordedRun run = Read(whole.substr(0, size));
    EXPECT_FALSE(run.is_whole);
    const std::size_t now = run.devices.empty() ? 0 : run.devices.at(0).operations.size();
    EXPECT_GE(now, operations);
    operations = now;
  }
  EXPECT_EQ(operations, 4u);
}

TEST(RecordedRunTest, NonTraceIsRefusedWithAReason) {
  for (const char* text :
       {"", "\n", "[", "[\n", "[\n]\n", "{}", "hello",
        "\x7f"
        "ELF",
        "[\n{\"name\": \"x\"}\n]\n", "[\n[[[[\n", "[\n{\"traceEvents\": []}\n]"}) {
    EXPECT_THAT(RefusalOf(text), HasSubstr("t.json is no trace of a job")) << text;
    EXPECT_THAT(RefusalOf(text), HasSubstr("spillway run --trace")) << text;
  }
  EXPECT_THAT(RefusalOf("[\n{\"name\": \"spillway\", \"ph\": \"M\", \"args\": {\"schema\": 2}}\n]"),
              HasSubstr("is of another version"));
}

TEST(RecordedRunTest, ImpossibleNumbersAreRefusedWithTheirPosition) {
  const auto with = [](const std::string& event) {
    return std::string(kHead) + ",\n" + event + "\n]\n";
  };
  for (
      const char* event : {
          R"({"name": "a", "cat": "operation", "ph": "X", "pid": 0, "tid": 10, "ts": 1e300, "dur": 1})",
          R"({"name": "a", "cat": "operation", "ph": "X", "pid": 0, "tid": 10, "ts": 1, "dur": -1})",
          R"({"name": "a", "cat": "operation", "ph": "X", "pid": 0, "tid": 10, "ts": "1", "dur": 1})",
          R"({"name": "a", "cat": "operation", "ph": "X", "pid": 99999999999999999999, "tid": 10, "ts": 1, "dur": 1})",
          R"({"name": "copy in", "cat": "copy", "ph": "X", "pid": 0, "ts": 1, "dur": 1, "args": {"bytes": 18446744073709551615}})",
          R"({"name": "copy in", "cat": "copy", "ph": "X", "pid": 0, "ts": 1, "dur": 1, "args": {"bytes": 1.5}})",
          R"({"name": "copy in", "cat": "copy", "ph": "X", "pid": 0, "ts": 1, "dur": 1, "args": []})",
      }) {
    EXPECT_THAT(RefusalOf(with(event)), HasSubstr("near line")) << event;
  }
  EXPECT_THAT(RefusalOf(with("{\"broken\n{\"name\": \"a\"}")), HasSubstr("this is no event"));
}

TEST(RunFiguresTest, SumMovedBytesWaitsAndIdleTime) {
  const RunFigures figures = ComputeFigures(SmallJob().devices.at(0));
  EXPECT_EQ(figures.span.end_ns - figures.span.begin_ns, 620'000);
  EXPECT_EQ(figures.computing_ns, 490'000);
  ASSERT_EQ(figures.buffers.size(), 1u);
  EXPECT_EQ(figures.buffers[0].out_bytes, 4194304);
  EXPECT_EQ(figures.buffers[0].in_bytes, 4194304);
  EXPECT_EQ(figures.buffers[0].hits, 1);
  EXPECT_EQ(figures.buffers[0].dropped, 1);
  ASSERT_EQ(figures.sizes.size(), 1u);
  EXPECT_EQ(figures.sizes[0].allocations, 1);
  EXPECT_EQ(figures.sizes[0].moved.out_bytes, 4194304);
  EXPECT_EQ(figures.stalls.at("demand").total_ns, 38'000);
  ASSERT_EQ(figures.idle_device.size(), 3u);
  EXPECT_EQ(figures.idle_device[0].end_ns - figures.idle_device[0].begin_ns, 50'000);
  EXPECT_EQ(figures.idle_device[0].copy_out_ns, 40'000);
  EXPECT_EQ(figures.idle_device[1].copy_in_ns, 50'000);
  ASSERT_EQ(figures.idle_buffers.size(), 2u);
  EXPECT_EQ(figures.idle_buffers[0].buffer, 1u);
  EXPECT_TRUE(figures.idle_buffers[0].was_away);
  EXPECT_FALSE(figures.idle_buffers[1].was_away);
  EXPECT_EQ(figures.measured_iteration_ns, 420'000);
}

TEST(RunFiguresTest, BusySharesAreComputedPerColumn) {
  const std::vector<RecordedSpan> spans = {{-50, 10}, {20, 35}, {30, 40}};
  EXPECT_THAT(BusyShares(spans, {0, 80}, 4), ElementsAre(0.5, 1, 0, 0));
}

// SPILLWAY_WRITE_GOLDEN=1 rewrites the golden page.
TEST(ReportPageTest, EqualsTheGoldenPage) {
  const std::string page = ReportPage(SmallJob());
  const std::string path = Golden("small_job.html");
  if (std::getenv("SPILLWAY_WRITE_GOLDEN")) std::ofstream(path) << page;
  EXPECT_EQ(page, TextOf(path));
}

TEST(RunFiguresTest, FindsEmptyStretches) {
  const auto found = StretchesWithout({{30, 40}, {10, 20}, {12, 35}, {90, 120}}, {0, 100}, 10);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].begin_ns, 0);
  EXPECT_EQ(found[0].end_ns, 10);
  EXPECT_EQ(found[1].begin_ns, 40);
  EXPECT_EQ(found[1].end_ns, 90);
  EXPECT_EQ(StretchesWithout({}, {0, 100}, 1).size(), 1u);
}

TEST(ReportPageTest, AxisNamesItsUnitOnceAndEmptyStretchesAreLabelled) {
  const RecordedRun run = SmallJob();
  RecordedDevice device;
  device.operations = {run.devices.at(0).operations[0], run.devices.at(0).operations[0]};
  device.operations[0].begin_ns = 0;
  device.operations[0].end_ns = 1'000'000;
  device.operations[1].begin_ns = 9'000'000;
  device.operations[1].end_ns = 10'000'000;
  RecordedRun gap;
  gap.devices[0] = device;

  const std::string picture = TimelinePicture(device, {0, 10'000'000}, 0, {"p", "t", "d"});
  const std::string page = ReportPage(gap);

  EXPECT_EQ(picture.find(">ms<"), picture.rfind(">ms<"));
  EXPECT_THAT(picture, HasSubstr(">4<"));
  EXPECT_THAT(picture, HasSubstr("nothing recorded"));
  EXPECT_THAT(page, HasSubstr("Nothing was recorded from 1.00 ms to 9.00 ms (80.0 % of the run)"));
  EXPECT_THAT(page, HasSubstr("<summary>1.25 ms to 2.50 ms</summary>"));
}

TEST(ReportPageTest, NeedsNoNetworkAndEscapesNames) {
  const std::string page = ReportPage(SmallJob());
  for (const char* word : {"http://", "https://", "<script", "src=", "<small>"})
    EXPECT_THAT(page, Not(HasSubstr(word)));
  EXPECT_THAT(page, HasSubstr("train --net &quot;&lt;small&gt;&quot;"));
  EXPECT_THAT(page, HasSubstr("role=\"img\""));
}

TEST(ReportPageTest, NamesMissingData) {
  EXPECT_THAT(ReportPage(Read(kHead)), HasSubstr("The trace has no end"));
  EXPECT_THAT(ReportPage(Read(kHead)), HasSubstr("allocated no device memory"));
  const std::string lost =
      std::string(kHead) +
      ",\n{\"name\": \"events lost\", \"ph\": \"M\", \"args\": {\"count\": 5}}\n]\n";
  EXPECT_THAT(ReportPage(Read(lost)), HasSubstr("5 events are missing"));
  const std::string one =
      std::string(kHead) +
      ",\n{\"name\": \"memory\", \"ph\": \"C\", \"pid\": 0, \"ts\": 0, \"args\": {}}\n]\n";
  EXPECT_THAT(ReportPage(Read(one)), HasSubstr("No plan was followed"));
}

TEST(ViewCommandTest, WritesThePageBesideTheTraceUnlessToldWhere) {
  const std::string folder = ::testing::TempDir() + "timeline_report_" + std::to_string(getpid());
  const std::string trace = folder + ".json", page = folder + ".html";
  std::ofstream(trace) << TextOf(Golden("small_job.trace.json"));
  EXPECT_EQ(RunViewCommand({.trace = trace, .output = ""}), 0);
  EXPECT_THAT(TextOf(page), HasSubstr("</html>"));
  EXPECT_THROW(RunViewCommand({.trace = folder + ".none", .output = ""}), Failure);
  EXPECT_THROW(RunViewCommand({.trace = trace, .output = "/nowhere/page.html"}), Failure);
  std::remove(trace.c_str());
  std::remove(page.c_str());
}

}  // namespace
}  // namespace spillway::cli
