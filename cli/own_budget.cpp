#include "cli/own_budget.h"

#include <algorithm>
#include <climits>
#include <cstdlib>

#include "cli/failure.h"
#include "cli/launch_checks.h"

namespace spillway::cli {
namespace {

constexpr char kRemedy[] =
    "correct or unset it, or state the budget yourself, which comes before it: --budget SIZE";

// A source below those that decide changes no budget, so it stops no job: the library names it.
void CheckUnderstood(const base::ExternalLimits& limits, int last_deciding_source) {
  for (const base::ExternalProblem& problem : limits.problems()) {
    if (problem.source <= last_deciding_source)
      throw Failure(kExitRefused, "a memory limit in the environment cannot be kept", problem.text,
                    kRemedy);
  }
}

std::string UnmatchedKey(const base::ExternalLimits& limits,
                         const std::vector<base::DeviceName>& devices) {
  for (const base::ExternalLimit& limit : limits.all()) {
    const auto is_named = [&](const base::DeviceName& device) {
      // Without its UUID a device may be any.
      return (!limit.uuid.empty() && device.uuid.empty()) ||
             base::ExternalLimits::Names(limit, device);
    };
    if (limit.source == base::ExternalLimits::kDriversSource &&
        std::none_of(devices.begin(), devices.end(), is_named))
      return limit.setting + ": no device here is " +
             (limit.uuid.empty() ? std::to_string(*limit.number) : limit.uuid) +
             ", so that entry limits nothing";
  }
  return "";
}

void CheckLargeEnough(const base::DeviceBudget& budget) {
  if (budget.setting.empty() || *budget.bytes >= kSmallestBudgetBytes) return;
  throw Failure(kExitRefused, "the budget by " + budget.setting + " cannot work",
                "a job needs at least " + base::FormatBytesExactly(kSmallestBudgetBytes) +
                    " beside the driver's own memory",
                kRemedy);
}

std::string SourceOf(const base::DeviceBudget& budget, const OwnBudget& own) {
  return budget.setting.empty() ? own.written : "by " + budget.setting;
}

}  // namespace

OwnBudget DecideOwnBudget(const std::optional<base::Size>& asked, std::uint64_t asked_bytes,
                          const std::vector<std::string>& device_uuids, int device_count) {
  const auto limits =
      base::ExternalLimits::Read([](const char* name) { return std::getenv(name); });
  OwnBudget own;
  if (asked) own.written = asked->written;
  const std::optional<std::uint64_t> asked_or_none =
      asked ? std::optional(asked_bytes) : std::nullopt;
  std::vector<base::DeviceName> devices;
  int last_deciding_source = 0;
  for (int number = 0; number < std::max(device_count, 1); ++number) {
    const auto place = static_cast<std::size_t>(number);
    devices.push_back(
        {number, place < device_uuids.size() ? std::string_view(device_uuids[place]) : ""});
    const base::ExternalLimit* const first = limits.FirstFor(devices.back());
    last_deciding_source = std::max(last_deciding_source, first ? first->source : INT_MAX);
  }
  if (!asked) CheckUnderstood(limits, last_deciding_source);
  for (const base::DeviceName& device : devices) {
    own.devices.push_back(base::BudgetOf(device, asked_or_none, limits));
    CheckLargeEnough(own.devices.back());
  }
  if (device_count > 0) own.warning = UnmatchedKey(limits, devices);
  return own;
}

std::string DescribeBudget(const OwnBudget& own) {
  std::string text;
  for (std::size_t number = 0; number < own.devices.size(); ++number) {
    const base::DeviceBudget& budget = own.devices[number];
    if (number > 0 && budget.bytes == own.devices[0].bytes) continue;
    if (number > 0) text += ", on device " + std::to_string(number) + " ";
    text += budget.bytes ? "budget " + std::to_string(*budget.bytes) + " bytes (" +
                               base::FormatBytes(*budget.bytes) + ", " + SourceOf(budget, own) + ")"
                         : "no budget";
  }
  return text;
}

std::string DescribeOwnLimit(const OwnBudget& own) {
  const base::DeviceBudget& first = own.devices.front();
  if (!first.bytes) return "";
  const std::string source = first.setting.empty() ? "" : " (by " + first.setting + ")";
  return ", at most " + base::FormatBytes(*first.bytes) + source;
}

}  // namespace spillway::cli
