#include "cli/doctor.h"

#include <cstdio>

#include "cli/help.h"
#include "cli/option_list.h"
#include "cli/run_options.h"

namespace spillway::cli {
namespace {

struct DoctorOptions {
  bool json = false;
  bool help = false;
  std::string simulated_profile;  // empty: the real device
};

constexpr option kDoctorOptions[] = {
    {"json", no_argument, nullptr, 'j'},
    {"simulate", optional_argument, nullptr, 's'},
    {"help", no_argument, nullptr, 'h'},
    {},
};

DoctorOptions ParseOptions(const std::vector<std::string>& arguments) {
  DoctorOptions options;
  const auto operands = ForEachOption(
      arguments, "doctor", "h", kDoctorOptions, [&](int letter, const std::string& value) {
        if (letter == 'j') options.json = true;
        if (letter == 'h') options.help = true;
        if (letter == 's') options.simulated_profile = value.empty() ? kDefaultProfile : value;
      });
  if (!operands.empty()) throw UnexpectedOperand("doctor", operands.front());
  return options;
}

std::string Verdict(const Findings& findings) {
  const int problems = CountLevel(findings, Level::kProblem);
  const int warnings = CountLevel(findings, Level::kWarning);
  if (problems == 0 && warnings == 0) return "nothing stands in the way\n";
  return std::to_string(problems) + (problems == 1 ? " problem, " : " problems, ") +
         std::to_string(warnings) + (warnings == 1 ? " warning\n" : " warnings\n");
}

}  // namespace

OptionList DoctorOptionList() { return {"h", kDoctorOptions}; }

int Doctor(const std::vector<std::string>& arguments) {
  const DoctorOptions options = ParseOptions(arguments);
  if (options.help) {
    std::fputs(HelpText("doctor").c_str(), stdout);
    return 0;
  }
  Findings findings;
  const Installation installation = FindInstallation();
  ExamineInstallation(installation, findings);
  ExamineAccelerator(installation, options.simulated_profile, findings);
  ExamineKernel("", findings);
  ExamineSession(findings);
  const std::string text =
      options.json ? FindingsAsJson(findings) : FindingsAsText(findings) + Verdict(findings);
  std::fputs(text.c_str(), stdout);
  return CountLevel(findings, Level::kProblem) == 0 ? 0 : 1;
}

}  // namespace spillway::cli
