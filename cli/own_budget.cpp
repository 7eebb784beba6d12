#include "cli/own_budget.h"

#include <algorithm>
#include <cstdlib>

#include "cli/failure.h"
#include "cli/launch_checks.h"

namespace spillway::cli {
namespace {

constexpr char kRemedy[] =
    "correct or unset it, or state the budget yourself, which comes before it: --budget SIZE";

void CheckUnderstood(const base::ExternalLimits& limits) {
  if (limits.problems().empty()) return;
  throw Failure(kExitRefused, "a memory limit in the environment cannot be kept",
                limits.problems().front(), kRemedy);
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
  if (!asked) CheckUnderstood(limits);
  OwnBudget own;
  if (asked) own.written = asked->written;
  const std::optional<std::uint64_t> asked_or_none =
      asked ? std::optional(asked_bytes) : std::nullopt;
  for (int number = 0; number < std::max(device_count, 1); ++number) {
    const auto place = static_cast<std::size_t>(number);
    const std::string uuid = place < device_uuids.size() ? device_uuids[place] : "";
    own.devices.push_back(base::BudgetOf({number, uuid}, asked_or_none, limits));
    CheckLargeEnough(own.devices.back());
  }
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
