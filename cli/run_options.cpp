#include "cli/run_options.h"

#include "cli/failure.h"
#include "cli/option_list.h"

namespace spillway::cli {
namespace {

constexpr option kOptions[] = {
    {"budget", required_argument, nullptr, 'b'},   {"host", required_argument, nullptr, 'H'},
    {"simulate", optional_argument, nullptr, 's'}, {"report", required_argument, nullptr, 'r'},
    {"park", required_argument, nullptr, 'p'},     {"off", no_argument, nullptr, 'o'},
    {"quiet", no_argument, nullptr, 'q'},          {"no-framework-switches", no_argument, nullptr, 'n'},
    {"help", no_argument, nullptr, 'h'},           {},
};

Size ParseSizeOption(const std::string& option_name, const std::string& value) {
  const std::optional<Size> size = ParseSize(value);
  if (!size) {
    throw Failure(kExitUsage, option_name + " cannot be '" + value + "'", "that is no size",
                  "write bytes with a unit (8GiB, 8192MiB, 500MB, 8G), a share of the device (25%),\n"
                  "or a share of the job's own peak (25%peak)");
  }
  const bool is_zero = size->bytes == 0 && size->share_per_billion == 0;
  if (is_zero) {
    throw Failure(kExitUsage, option_name + " cannot be zero", "a job needs some memory to compute in",
                  "give it more, for example " + option_name + " 25%peak");
  }
  return *size;
}

Size ParseHostOption(const std::string& value) {
  const Size size = ParseSizeOption("--host", value);
  if (size.kind != SizeKind::kBytes) {
    throw Failure(kExitUsage, "--host cannot be '" + value + "'",
                  "host memory is no share of the device or the job",
                  "write it in bytes, for example --host 64GiB");
  }
  return size;
}

std::string ParseReportOption(const std::string& value) {
  if (!value.empty()) return value;
  throw Failure(kExitUsage, "--report needs a file name", "the one given is empty",
                "name a file, for example --report report.json");
}

std::string ParseParkOption(const std::string& value) {
  if (value == "auto" || value == "host" || value == "off") return value;
  throw Failure(kExitUsage, "--park cannot be '" + value + "'", "it says when evicted memory stays mapped",
                "write --park auto, --park host or --park off");
}

void TakeOption(RunOptions& options, int letter, const std::string& value) {
  switch (letter) {
    case 'b':
      options.budget = ParseSizeOption("--budget", value);
      break;
    case 'H':
      options.host = ParseHostOption(value);
      break;
    case 's':
      options.simulate = value.empty() ? kDefaultProfile : value;
      break;
    case 'r':
      options.report = ParseReportOption(value);
      break;
    case 'p':
      options.park = ParseParkOption(value);
      break;
    case 'o':
      options.off = true;
      break;
    case 'q':
      options.quiet = true;
      break;
    case 'n':
      options.framework_switches = false;
      break;
    default:
      options.help = true;
  }
}

void CheckTogether(const RunOptions& options) {
  if (options.command.empty()) {
    throw Failure(kExitUsage, "no command to run", "nothing follows the options",
                  "put it after --, for example: spillway run --budget 25% -- ./train --epochs 10");
  }
  if (options.off && (options.budget || options.host || !options.report.empty() || !options.park.empty())) {
    throw Failure(kExitUsage, "--off cannot be combined with --budget, --host, --park or --report",
                  "--off runs the command without Spillway, so nobody would keep or report them",
                  "leave out --off, or leave out the others");
  }
}

}  // namespace

RunOptions ParseRunOptions(const std::vector<std::string>& arguments) {
  RunOptions options;
  options.command =
      ForEachOption(arguments, "run", "b:r:qh", kOptions,
                    [&](int letter, const std::string& value) { TakeOption(options, letter, value); });
  if (!options.help) CheckTogether(options);
  return options;
}

}  // namespace spillway::cli
