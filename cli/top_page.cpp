#include "cli/top_page.h"

#include <algorithm>
#include <cstdio>

#include "base/cut_name.h"

namespace spillway::cli {
namespace {

constexpr int kLeastNameWidth = 10, kUsualNameWidth = 14, kMostNameWidth = 20,
              kLeastCommandWidth = 5;
constexpr int kLeastStateWidth = 8, kMostStateWidth = 16;
constexpr int kLeastJobs = 2;

std::string Padded(const std::string& text, int width, bool to_right) {
  const auto columns = static_cast<size_t>(std::max(width, 0));
  if (text.size() >= columns) return text.substr(0, columns);
  const std::string blanks(columns - text.size(), ' ');
  return to_right ? blanks + text : text + blanks;
}

std::string Tenths(std::int64_t thousandths) {
  return std::to_string(thousandths / 1000) + "." + std::to_string(thousandths / 100 % 10);
}

// "999.9", "9999", "12K": at most four characters beside the tenths.
std::string ShortRate(std::int64_t thousandths) {
  static constexpr char kUnits[] = " KMGTP";
  std::int64_t whole = thousandths / 1000;
  if (whole < 1000) return Tenths(thousandths);
  size_t unit = 0;
  for (; whole >= 10'000; ++unit) whole /= 1000;
  return std::to_string(whole) + (unit == 0 ? "" : std::string(1, kUnits[unit]));
}

std::string Percent(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? std::to_string(std::min<std::int64_t>(part * 100 / whole, 999)) + "%" : "-";
}

std::string Rate(const TopJob& job, std::string value) { return job.has_rates ? value : "-"; }

// Columns of the highest rank are left out first.
struct Column {
  const char* title;
  int width, rank;
  bool to_right;
  std::string (*show)(const TopJob& job);
};
constexpr Column kColumns[] = {
    {"GPU", 3, 7, false,
     [](const TopJob& job) { return job.gpu < 0 ? "-" : std::to_string(job.gpu); }},
    {"State", kLeastStateWidth, 3, false, [](const TopJob& job) { return job.state; }},
    {"In/s", 6, 2, true,
     [](const TopJob& job) { return Rate(job, ShortBytes(job.in_per_second)); }},
    {"Out/s", 6, 2, true,
     [](const TopJob& job) { return Rate(job, ShortBytes(job.out_per_second)); }},
    {"Stall", 5, 2, true,
     [](const TopJob& job) { return Rate(job, Tenths(job.stall_permille * 100) + "%"); }},
    {"Iter/s", 6, 6, true,
     [](const TopJob& job) { return Rate(job, ShortRate(job.iterations_per_1000_s)); }},
    {"Use", 4, 5, true,
     [](const TopJob& job) { return Percent(job.resident_bytes, job.budget_bytes); }},
    {"Budget", 6, 1, true, [](const TopJob& job) { return ShortBytes(job.budget_bytes); }},
    {"Wants", 6, 1, true, [](const TopJob& job) { return ShortBytes(job.wanted_bytes); }},
    {"Held", 6, 4, true, [](const TopJob& job) { return ShortBytes(job.resident_bytes); }},
    {"Host", 6, 8, true, [](const TopJob& job) { return ShortBytes(job.host_bytes); }},
};
constexpr size_t kStateColumn = 1;
constexpr int kLeastRank = 1, kMostRank = 9;

struct Layout {
  std::vector<Column> columns;
  int name_width = kLeastNameWidth, command_width = 0;
};

int WidthOf(const std::vector<Column>& columns) {
  int width = 0;
  for (const Column& column : columns) width += 1 + column.width;
  return width;
}

// "passthrough" is rare, and would cost the others a column.
std::vector<Column> ColumnsFor(const std::vector<TopJob>& jobs) {
  std::vector<Column> columns(std::begin(kColumns), std::end(kColumns));
  size_t longest = kLeastStateWidth;
  for (const TopJob& job : jobs) longest = std::max(longest, job.state.size());
  columns[kStateColumn].width = static_cast<int>(std::min<size_t>(longest, kMostStateWidth));
  return columns;
}

// A cut `local-11887` would be another job's name.
int NameWidthOf(const std::vector<TopJob>& jobs) {
  size_t longest = kLeastNameWidth;
  for (const TopJob& job : jobs) longest = std::max(longest, job.name.size());
  return static_cast<int>(std::min<size_t>(longest, kUsualNameWidth));
}

Layout LayoutFor(int width, const std::vector<TopJob>& jobs) {
  const int least_name_width = NameWidthOf(jobs);
  const std::vector<Column> all = ColumnsFor(jobs);
  Layout layout;
  for (int rank = kMostRank; rank >= kLeastRank - 1; --rank) {
    layout.columns.clear();
    for (const Column& column : all) {
      if (column.rank <= rank) layout.columns.push_back(column);
    }
    if (least_name_width + WidthOf(layout.columns) <= width) break;
  }
  const int room = width - WidthOf(layout.columns);
  layout.name_width =
      std::clamp(room - 1 - kLeastCommandWidth, std::min(least_name_width, room), kMostNameWidth);
  layout.command_width = room - layout.name_width - 1;
  if (layout.command_width < kLeastCommandWidth) {
    layout.command_width = 0;
    layout.name_width = std::min(room, kMostNameWidth);
  }
  return layout;
}

std::string LineOf(const Layout& layout, const std::string& name, const std::string& command,
                   const auto& value_of) {
  const auto name_width = static_cast<size_t>(std::max(layout.name_width, 0));
  std::string line = Padded(base::CutName(name, name_width), layout.name_width, false);
  for (const Column& column : layout.columns)
    line += " " + Padded(value_of(column), column.width, column.to_right);
  if (layout.command_width > 0)
    line += " " + command.substr(0, static_cast<size_t>(layout.command_width));
  return line;
}

std::string Duration(std::int64_t ns) {
  const std::int64_t seconds = ns / 1'000'000'000;
  if (seconds < 60) return std::to_string(seconds) + " s";
  if (seconds < 3600) return std::to_string(seconds / 60) + " min";
  return std::to_string(seconds / 3600) + " h " + std::to_string(seconds / 60 % 60) + " min";
}

// Leaves out what does not fit whole.
std::string WithinWidth(std::string line, int width) {
  while (line.size() > static_cast<size_t>(std::max(width, 0))) {
    const size_t end = line.rfind("; ");
    line.resize(end == line.npos ? static_cast<size_t>(std::max(width, 0)) : end);
  }
  return line;
}

std::string FirstLine(const JsonValue& status, size_t jobs) {
  std::string line = "agent up " + Duration(status["up_ns"].number());
  if (status["draining"].flag()) line += ", draining";
  if (status["resuming"].flag()) line += ", waiting for jobs to come back";
  return line + "; jobs " + std::to_string(jobs) + "; host " +
         ShortBytes(status["host"]["budgeted_bytes"].number()) + " of " +
         ShortBytes(status["host"]["memory_bytes"].number()) + " budgeted";
}

std::vector<std::string> DeviceLines(const JsonValue& status, int width) {
  // Only the model's name, at the end, may be cut.
  std::vector<std::string> lines = {"GPU  Memory Budgeted   Held Used Model"};
  for (const JsonValue& device : status["devices"].entries()) {
    const std::int64_t memory_bytes = device["memory_bytes"].number();
    const std::int64_t resident_bytes = device["resident_bytes"].number();
    const std::string& model = device["model"].text();
    lines.push_back(Padded(std::to_string(device["device"].number()), 3, false) + " " +
                    Padded(ShortBytes(memory_bytes), 7, true) + " " +
                    Padded(ShortBytes(device["budgeted_bytes"].number()), 8, true) + " " +
                    Padded(ShortBytes(resident_bytes), 6, true) + " " +
                    Padded(Percent(resident_bytes, memory_bytes), 4, true) + " " +
                    (model.empty() ? device["uuid"].text() : model));
  }
  constexpr size_t kEnds[] = {32, 27, 20, 11, 3};  // of the columns before the model's name
  const auto room = static_cast<size_t>(std::max(width, 0));
  const size_t* const end =
      std::find_if(std::begin(kEnds), std::end(kEnds) - 1, [&](size_t at) { return at <= room; });
  for (std::string& line : lines)
    line.resize(std::min(line.size(), *end == kEnds[0] ? room : std::min(*end, room)));
  return lines;
}

void AddRates(const JsonValue& now, const JsonValue& before, std::int64_t passed_ns, TopJob& job) {
  const auto rise = [&](const char* name) {
    return std::max<std::int64_t>(0, now[name].number() - before[name].number());
  };
  const double per_second = 1e9 / static_cast<double>(passed_ns);
  job.has_rates = true;
  job.in_per_second =
      static_cast<std::int64_t>(static_cast<double>(rise("to_device_bytes")) * per_second);
  job.out_per_second =
      static_cast<std::int64_t>(static_cast<double>(rise("to_host_bytes")) * per_second);
  // Several processes wait at once, so the sum may exceed the time.
  job.stall_permille = std::min<std::int64_t>(999, rise("stall_ns") * 1000 / passed_ns);
  job.iterations_per_1000_s =
      static_cast<std::int64_t>(static_cast<double>(rise("iterations")) * 1000 * per_second);
}

// Null: none.
const JsonValue* Earlier(const JsonValue* before, const JsonValue& job, std::int64_t gpu) {
  if (before == nullptr) return nullptr;
  for (const JsonValue& other : (*before)["jobs"].entries()) {
    if (other["job"].text() != job["job"].text()) continue;
    for (const JsonValue& device : other["devices"].entries()) {
      if (device["device"].number() == gpu) return &device;
    }
  }
  return nullptr;
}

std::int64_t KeyOf(size_t sort, const TopJob& job) {
  switch (sort) {
    case 2:
      return job.budget_bytes;
    case 3:
      return job.wanted_bytes;
    case 4:
      return job.resident_bytes;
    case 5:
      return job.in_per_second + job.out_per_second;
    case 6:
      return job.stall_permille;
    default:
      return job.iterations_per_1000_s;
  }
}

}  // namespace

const std::vector<std::string>& TopSorts() {
  static const std::vector<std::string> names = {"age",  "name",  "budget", "wants",
                                                 "held", "moved", "stalls", "iterations"};
  return names;
}

std::vector<TopJob> TopJobs(const JsonValue& status, const JsonValue* before) {
  std::vector<TopJob> jobs;
  const std::int64_t passed_ns =
      before == nullptr ? 0 : status["up_ns"].number() - (*before)["up_ns"].number();
  const bool is_same_agent =
      passed_ns > 0 && status["agent_instance"].number() == (*before)["agent_instance"].number();
  for (const JsonValue& one : status["jobs"].entries()) {
    TopJob job;
    job.name = one["job"].text();
    job.command = one["command"].text();
    job.state = "no device";
    if (one["devices"].entries().empty()) jobs.push_back(job);
    for (const JsonValue& device : one["devices"].entries()) {
      job.gpu = device["device"].number();
      job.state = device["state"].text();
      job.budget_bytes = device["budget_bytes"].number();
      job.wanted_bytes = device["wanted_bytes"].number();
      job.resident_bytes = device["resident_bytes"].number();
      job.host_bytes = device["host_bytes"].number() + device["ordinary_bytes"].number();
      job.has_rates = false;
      const JsonValue* const earlier = is_same_agent ? Earlier(before, one, job.gpu) : nullptr;
      if (earlier != nullptr) AddRates(device, *earlier, passed_ns, job);
      jobs.push_back(job);
    }
  }
  return jobs;
}

// Amounts: largest first. Equal jobs keep the agent's order.
void SortJobs(const TopView& view, std::vector<TopJob>& jobs) {
  const size_t sort = view.sort % TopSorts().size();
  if (sort == 1)
    std::stable_sort(jobs.begin(), jobs.end(),
                     [](const TopJob& a, const TopJob& b) { return a.name < b.name; });
  if (sort > 1)
    std::stable_sort(jobs.begin(), jobs.end(), [&](const TopJob& a, const TopJob& b) {
      return KeyOf(sort, a) > KeyOf(sort, b);
    });
  if (view.is_reversed) std::reverse(jobs.begin(), jobs.end());
}

std::string ShortBytes(std::int64_t bytes) {
  static constexpr char kUnits[] = "BKMGTPE";
  if (bytes < 0) return "-";
  size_t unit = 0;
  std::int64_t tenths = bytes > INT64_MAX / 10 ? INT64_MAX : bytes * 10;
  while (tenths >= 10'000 && unit + 1 < sizeof kUnits - 1) {
    tenths /= 1024;
    ++unit;
  }
  const std::string whole = std::to_string(tenths / 10);
  return unit == 0 ? whole + "B" : whole + "." + std::to_string(tenths % 10) + kUnits[unit];
}

std::string TopPage(const JsonValue& status, const std::vector<TopJob>& jobs, const TopSize& size,
                    TopView& view) {
  const Layout layout = LayoutFor(size.columns, jobs);
  std::string page =
      WithinWidth(FirstLine(status, status["jobs"].entries().size()), size.columns) + "\n";
  const std::vector<std::string> devices = DeviceLines(status, size.columns);
  // Rows for the first line, an empty one, the titles, the keys, and some jobs.
  const bool has_devices = size.rows >= static_cast<int>(devices.size()) + 4 + kLeastJobs;
  for (const std::string& line : devices) page += has_devices ? line + "\n" : "";
  page += (has_devices ? "\n" : "") +
          LineOf(layout, "Job", "Command",
                 [](const Column& column) { return std::string(column.title); }) +
          "\n";
  const int used = has_devices ? static_cast<int>(devices.size()) + 4 : 3;
  const auto room = static_cast<size_t>(std::max(1, size.rows - used));
  view.selected = std::min(view.selected, jobs.empty() ? 0 : jobs.size() - 1);
  view.first = std::min(view.first, jobs.size() > room ? jobs.size() - room : 0);
  view.first = std::min(view.first, view.selected);
  if (view.selected >= view.first + room) view.first = view.selected - room + 1;
  for (size_t i = view.first; i < std::min(view.first + room, jobs.size()); ++i) {
    const std::string line = LineOf(layout, jobs[i].name, jobs[i].command,
                                    [&](const Column& column) { return column.show(jobs[i]); });
    page += i == view.selected ? "\033[7m" + Padded(line, size.columns, false) + "\033[0m\n"
                               : line + "\n";
  }
  return jobs.empty() ? page + "no jobs\n" : page;
}

}  // namespace spillway::cli
