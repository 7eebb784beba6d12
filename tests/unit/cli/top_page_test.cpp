#include "cli/top_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace spillway::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kSecond = 1'000'000'000;

// Two jobs on a device of 141 GiB; the second has moved bytes and stalled.
std::string Status(int64_t up_ns, int64_t moved_bytes, int64_t stall_ns) {
  const std::string memory = "151397597184", moved = std::to_string(moved_bytes);
  return R"({"schema": 1, "agent_instance": 7, "up_ns": )" + std::to_string(up_ns) +
         R"(, "draining": false, "resuming": false, "host": {"memory_bytes": 68719476736, "budgeted_bytes": 12884901888},
      "devices": [{"device": 0, "uuid": "GPU-73696d2d-6832-3030-0000-000000000000", "model": "NVIDIA H200", "memory_bytes": )" +
         memory + R"(, "budgeted_bytes": 12884901888, "resident_bytes": 75698798592}],
      "jobs": [{"job": "slurm-1201", "command": "python3 \"train\".py", "devices": [{"device": 0, "state": "planned",
        "budget_bytes": 12884901888, "wanted_bytes": 318767104, "resident_bytes": 6442450944, "host_bytes": 1073741824,
        "ordinary_bytes": 0, "to_host_bytes": 0, "to_device_bytes": 0, "stall_ns": 0, "iterations": 0}]},
       {"job": "local-7", "command": "gpt", "devices": [{"device": 0, "state": "reactive",
        "budget_bytes": 1073741824, "wanted_bytes": 2147483648, "resident_bytes": 1073741824, "host_bytes": 0,
        "ordinary_bytes": 0, "to_host_bytes": )" +
         moved + R"(, "to_device_bytes": 0, "stall_ns": )" + std::to_string(stall_ns) +
         R"(, "iterations": 3}]}]})";
}

std::string Shown(const TopSize& size, TopView view = {}) {
  const JsonValue before = *JsonValue::Parse(Status(10 * kSecond, 0, 0));
  const JsonValue now = *JsonValue::Parse(Status(12 * kSecond, int64_t{2} << 30, kSecond));
  std::vector<TopJob> jobs = TopJobs(now, &before);
  SortJobs(view, jobs);
  return TopPage(now, jobs, size, view);
}

size_t LongestLine(const std::string& page) {
  std::istringstream lines(page);
  size_t longest = 0;
  for (std::string line; std::getline(lines, line);)
    longest = std::max(longest, line.size() - (line.starts_with("\033") ? 8 : 0));
  return longest;
}

TEST(TopPageTest, ShowsRatesStallsAndSizesAt80Columns) {
  const std::string page = Shown({24, 80});

  EXPECT_THAT(page, HasSubstr("In/s  Out/s Stall Iter/s  Use Budget  Wants   Held"));
  EXPECT_THAT(page, HasSubstr("local-7"));
  EXPECT_THAT(page, HasSubstr("    0B   1.0G 50.0%    0.0 100%   1.0G   2.0G   1.0G"));
  EXPECT_THAT(page, HasSubstr(" 141.0G    12.0G  70.5G  50% NVIDIA H200"));
  EXPECT_THAT(page, Not(HasSubstr("GPU-7")));
}

TEST(TopPageTest, NoLineIsLongerThanTheTerminalAndNoNumberIsCut) {
  for (int columns = 24; columns <= 200; ++columns) {
    const std::string page = Shown({24, columns});
    EXPECT_LE(LongestLine(page), static_cast<size_t>(columns));
    EXPECT_THAT(page, HasSubstr("  2.0G")) << columns;
    EXPECT_EQ(page.find(" 50.0%") != page.npos, columns >= 44) << columns;
    EXPECT_EQ(page.find("  70.5G") != page.npos, columns >= 27) << columns;
    EXPECT_EQ(page.find("Held Used") != page.npos, columns >= 32) << columns;
    EXPECT_EQ(page.find("; host") != page.npos, page.find("64.0G budgeted") != page.npos);
  }
}

// Regression: "passthrough" and "no device" were cut to 8 letters, and 12345.6 iterations a second
// to "12345.".
TEST(TopPageTest, NoStateIsCutAndNoLargeNumber) {
  const JsonValue now = *JsonValue::Parse(Status(kSecond, 0, 0));
  std::vector<TopJob> jobs;
  for (const char* state : {"waiting", "rejected", "learning", "planned", "reactive", "passthrough",
                            "no device", "?"}) {
    TopJob& job = jobs.emplace_back();
    job.name = "job";
    job.gpu = 127;
    job.state = state;
    job.has_rates = true;
    job.budget_bytes = int64_t{1} << 60;
    job.wanted_bytes = int64_t{1536} << 30;
    job.resident_bytes = job.budget_bytes * 7;
    job.host_bytes = int64_t{1500} << 40;
    job.in_per_second = job.out_per_second = int64_t{1010} << 30;
    job.stall_permille = 999;
    job.iterations_per_1000_s = 12'345'678;
  }
  for (int columns = 24; columns <= 200; ++columns) {
    TopView view = {.selected = jobs.size() - 1};
    const std::string page = TopPage(now, jobs, {24, columns}, view);
    EXPECT_LE(LongestLine(page), static_cast<size_t>(columns));
    const bool has_states = page.find("State") != page.npos;
    const bool has_rates = page.find("Iter/s") != page.npos;
    EXPECT_EQ(page.find(" passthrough ") != page.npos, has_states) << page;
    EXPECT_EQ(page.find(" no device ") != page.npos, has_states) << page;
    EXPECT_EQ(page.find("  12K") != page.npos, has_rates) << page;
    EXPECT_THAT(page, HasSubstr(" 819.1P   1.5T")) << page;
    EXPECT_TRUE(columns < 80 || (has_states && has_rates)) << page;
  }
}

TEST(TopPageTest, IterationsFitTheirColumnWhateverTheyAre) {
  const JsonValue now = *JsonValue::Parse(Status(kSecond, 0, 0));
  const std::pair<int64_t, const char*> shown[] = {{999'900, " 999.9 "},    {1'000'000, "  1000 "},
                                                   {9'999'999, "  9999 "},  {10'000'000, "   10K "},
                                                   {12'345'678, "   12K "}, {INT64_MAX, " 9223T "}};
  for (const auto& [iterations, text] : shown) {
    TopJob job;
    job.has_rates = true;
    job.iterations_per_1000_s = iterations;
    TopView view;
    EXPECT_THAT(TopPage(now, {job}, {24, 80}, view), HasSubstr(text)) << iterations;
  }
}

// Regression: at 60 columns local-11887 and local-11885 both read local-1188.
TEST(TopPageTest, JobsAreDistinguishableOnNarrowTerminals) {
  std::string text = Status(kSecond, 5, 5);
  text.replace(text.find("slurm-1201"), 10, "local-11887");
  text.replace(text.find("local-7"), 7, "container-0123456789ab");
  const JsonValue now = *JsonValue::Parse(text);
  for (int columns = 40; columns <= 120; ++columns) {
    TopView view;
    const std::string page = TopPage(now, TopJobs(now, nullptr), {24, columns}, view);
    EXPECT_THAT(page, HasSubstr("local-11887 ")) << columns;
    EXPECT_THAT(page, HasSubstr("456789ab ")) << columns;
    EXPECT_LE(LongestLine(page), static_cast<size_t>(columns));
  }
}

TEST(TopPageTest, WithoutAnEarlierDocumentThereAreNoRates) {
  const JsonValue now = *JsonValue::Parse(Status(kSecond, 5, 5));
  TopView view;

  EXPECT_THAT(TopPage(now, TopJobs(now, nullptr), {24, 80}, view),
              HasSubstr("     -      -     -      -"));
}

TEST(TopPageTest, SortsAndReverses) {
  EXPECT_LT(Shown({24, 80}, {.sort = 0}).find("slurm-1201"),
            Shown({24, 80}, {.sort = 0}).find("local-7"));
  EXPECT_GT(Shown({24, 80}, {.sort = 6}).find("slurm-1201"),
            Shown({24, 80}, {.sort = 6}).find("local-7"));
  const TopView reversed = {.sort = 6, .is_reversed = true};
  EXPECT_LT(Shown({24, 80}, reversed).find("slurm-1201"),
            Shown({24, 80}, reversed).find("local-7"));
}

TEST(TopPageTest, ScrollsToTheSelectedJob) {
  const JsonValue now = *JsonValue::Parse(Status(kSecond, 0, 0));
  std::vector<TopJob> jobs(50);
  for (size_t i = 0; i < jobs.size(); ++i) jobs[i].name = "job-" + std::to_string(i);
  TopView view = {.selected = 30};

  const std::string page = TopPage(now, jobs, {16, 80}, view);

  EXPECT_THAT(page, HasSubstr("\033[7mjob-30 "));
  EXPECT_THAT(page, Not(HasSubstr("job-0 ")));
  view.selected = 1000;
  EXPECT_THAT(TopPage(now, jobs, {16, 80}, view), HasSubstr("\033[7mjob-49 "));
}

TEST(TopPageTest, BytesAreShort) {
  EXPECT_EQ(ShortBytes(0), "0B");
  EXPECT_EQ(ShortBytes(999), "999B");
  EXPECT_EQ(ShortBytes(318767104), "304.0M");
  EXPECT_EQ(ShortBytes(int64_t{157} << 30), "157.0G");
  for (int64_t bytes : {int64_t{1000}, int64_t{1023} << 30, int64_t{1} << 62, INT64_MAX})
    EXPECT_LE(ShortBytes(bytes).size(), 6u) << bytes;
}

TEST(JsonValueTest, ReadsOnlyValidJson) {
  EXPECT_EQ((*JsonValue::Parse(R"({"a": [1, {"b": "x\n\u0041\"y"}], "c": true})"))["a"]
                .entries()[1]["b"]
                .text(),
            "x??\"y");
  EXPECT_EQ((*JsonValue::Parse("{}"))["missing"]["more"].number(), 0);
  for (const char* text : {"", "{", "[1,", "{\"a\" 1}", "{\"a\": 1} x", "\"a", "\"\\", "nonsense"})
    EXPECT_FALSE(JsonValue::Parse(text)) << text;
  EXPECT_FALSE(JsonValue::Parse(std::string(1000, '[')));
}

}  // namespace
}  // namespace spillway::cli
