#include "cli/doctor.h"

#include <cstdio>

#include "cli/help.h"
#include "cli/options/option_parser.h"
#include "cli/run_options.h"

namespace spillway::cli {
namespace {

struct DoctorOptions {
  bool json = false;
  bool help = false;
  std::string simulated_profile;  // empty: the real device
};

constexpr OptionRow<DoctorOptions> kDoctorRows[] = {
    JsonRow<DoctorOptions>(),
    {{"simulate", 0, ValueIfAny("PROFILE", Kind::kWords, kProfileWords),
      "look at the simulated GPU instead of a real one"},
     [](DoctorOptions& options, const std::string& value) {
       options.simulated_profile = value.empty() ? kDefaultProfile : value;
     }},
    HelpRow<DoctorOptions>(),
};

DoctorOptions ParseDoctorOptions(const std::vector<std::string>& arguments) {
  DoctorOptions options;
  const auto operands = ParseOptions(arguments, kDoctorRows, options);
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

std::vector<Option> DoctorOptionList() { return OptionsIn(kDoctorRows); }

int Doctor(const std::vector<std::string>& arguments) {
  const DoctorOptions options = ParseDoctorOptions(arguments);
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
