// An interactive job and batch jobs that do not fit one device, on a virtual clock: the agent's
// deciders against other rules. Jobs and link are modelled; so are all figures.
#include <charconv>
#include <cstdio>
#include <fstream>
#include <optional>
#include <string_view>

#include "tests/bench/seats/report.h"

namespace spillway::seats {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;
constexpr const char* kUsage =
    "usage: seats [--quick] [--device NAME]... [--gap SECONDS] [--hours N] [--seed N] [--json]\n"
    "             [--picture FILE]\n"
    "  --quick    half an hour of virtual time instead of two, and only the goal's jobs\n"
    "  --gap      mean time between two requests (30)\n"
    "  --picture  draws the first device's rows as SVG\n"
    "The exit code is 1 where turns miss their goal.\n";

struct Options {
  Settings settings;
  bool is_quick = false, is_json = false;
  std::string picture;
};

std::optional<int64_t> NumberOf(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_whole = error == std::errc{} && end == text.data() + text.size();
  if (!is_whole || number < 1 || number > 1'000'000) return std::nullopt;
  return number;
}

bool SetNumber(std::string_view name, std::string_view text, Settings& settings) {
  const std::optional<int64_t> number = NumberOf(text);
  if (!number) return false;
  if (name == "--gap") {
    settings.gap_ns = *number * kSecondNs;
  } else if (name == "--hours") {
    settings.duration_ns = *number * 3600 * kSecondNs;
  } else if (name == "--seed") {
    settings.seed = static_cast<uint64_t>(*number);
  } else {
    return false;
  }
  return true;
}

std::optional<Options> Parse(int count, char** arguments) {
  Options options;
  std::vector<std::string> devices;
  for (int i = 1; i < count; ++i) {
    const std::string_view name = arguments[i];
    if (name == "--quick") {
      options.is_quick = true;
      options.settings.duration_ns = 1800 * kSecondNs;
    } else if (name == "--json") {
      options.is_json = true;
    } else if (++i == count) {
      return std::nullopt;
    } else if (name == "--device") {
      devices.emplace_back(arguments[i]);
    } else if (name == "--picture") {
      options.picture = arguments[i];
    } else if (!SetNumber(name, arguments[i], options.settings)) {
      return std::nullopt;
    }
  }
  if (!devices.empty()) options.settings.devices = devices;
  return options;
}

base::Result<std::vector<Row>> RunAll(const Options& options) {
  std::vector<Row> rows;
  for (const std::string& name : options.settings.devices) {
    const base::Result<DeviceFacts> device = FindDevice(name);
    if (!device.ok()) return device.error();
    for (const Scenario& scenario : Scenarios(options.settings)) {
      if (options.is_quick && scenario.name != kGoal) continue;
      for (const Row& row : Compare(*device, scenario)) rows.push_back(row);
    }
  }
  return rows;
}

bool Draw(const std::vector<Row>& rows, const std::string& path) {
  std::ofstream file(path);
  file << PictureOf(rows, rows.front().device);
  file.close();
  if (!file) std::fprintf(stderr, "seats: cannot write %s\n", path.c_str());
  return !file.fail();
}

int Main(int count, char** arguments) {
  const std::optional<Options> options = Parse(count, arguments);
  if (!options) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  const base::Result<std::vector<Row>> rows = RunAll(*options);
  if (!rows.ok()) {
    std::fprintf(stderr, "seats: %s\n", rows.text().c_str());
    return 2;
  }
  const Verdict verdict = JudgeGoal(*rows);
  std::fputs((options->is_json ? JsonOf(*rows) : TableOf(*rows)).c_str(), stdout);
  std::fputs(("\n" + verdict.text + "All figures are simulated.\n").c_str(),
             options->is_json ? stderr : stdout);
  if (!options->picture.empty() && !Draw(*rows, options->picture)) return 2;
  return verdict.is_met ? 0 : 1;
}

}  // namespace
}  // namespace spillway::seats

int main(int count, char** arguments) { return spillway::seats::Main(count, arguments); }
