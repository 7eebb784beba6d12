#include "cli/options/planner_options.h"

#include <algorithm>
#include <iterator>

namespace spillway::cli {
namespace {

constexpr Option kDeviceOption{"device", 'd', Value("PROFILE", Kind::kWords, kProfileWords),
                               "the device: {values}"};
constexpr Option kChunkOption{"chunk", 0, Value("SIZE"), "granularity of device memory"};

constexpr Option kPlanOptions[] = {
    {"budget", 'b', Value("SIZE"),
     "device memory: 8GiB, 25% of the device, 50%peak of the profile"},
    {"strategy", 's', StrategyValue("all"), "a strategy's name, or all (default: spillway)"},
    kDeviceOption,
    kChunkOption,
    {"link-share", 0, Value("PERCENT"), "per cent of the link that the job has"},
    {"seed", 0, Value("N"), "for strategies that draw at random"},
    {"repair", 0, kNoValue, "put right what a strategy's rule leaves over the budget"},
    {"place", 0, kNoValue, "give buffers addresses"},
    {"explain", 0, kNoValue, "why each action was taken"},
    kJsonOption,
    {"svg", 0, Value("FILE", Kind::kFile), "draw memory and engines over time into a file"},
    {"perfetto", 0, Value("FILE", Kind::kFile), "write a trace for ui.perfetto.dev"},
    {"curve", 0, Value("FILE", Kind::kFile),
     "draw the slow-down over budgets, all strategies, into an SVG file (takes minutes)"},
    kHelpOption,
};

constexpr Option kTraceOptions[] = {
    {"device", 'd', Value("PROFILE", Kind::kWords, kProfileWords),
     "for durations of networks (print, convert)"},
    {"profile", 0, kNoValue, "take a trace for one iteration (convert)"},
    {"from", 0, Value("EVENT"), "first event to keep (trim)"},
    {"until", 0, Value("EVENT"), "first event not to keep (trim)"},
    kHelpOption,
};

constexpr Option kViewOptions[] = {
    {"output", 'o', Value("FILE", Kind::kFile),
     "the page, - for standard output (default: beside the trace, .html)"},
    kHelpOption,
};

constexpr Option kAdviseOptions[] = {
    {"budget", 'b', Value("SIZE"),
     "device memory: 8GiB, 25% of the device, 50%peak of the last profile"},
    kDeviceOption,
    kChunkOption,
    {"learning-rate", 0, Value("RATE"), "learning rate tuned for the base batch"},
    {"base-batch", 0, Value("N"),
     "batch that the learning rate is tuned for (default: the smallest profile's)"},
    {"batch-step", 0, Value("N"), "consider multiples of this"},
    {"most-batch", 0, Value("N"), "consider none larger"},
    kJsonOption,
    kHelpOption,
};

template <size_t n>
std::vector<Option> ListOf(const Option (&options)[n]) {
  return {std::begin(options), std::end(options)};
}

}  // namespace

std::vector<Option> PlannerOptionList(std::string_view command) {
  if (command == "plan") return ListOf(kPlanOptions);
  if (command == "trace") return ListOf(kTraceOptions);
  if (command == "view") return ListOf(kViewOptions);
  if (command == "advise") return ListOf(kAdviseOptions);
  return {};
}

}  // namespace spillway::cli
