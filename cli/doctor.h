// `spillway doctor`: checks everything that could stop a job here. Only a child process loads the
// driver, and only /bin/true the preload library.
#pragma once

#include <string>
#include <vector>

#include "cli/findings.h"
#include "cli/installation.h"
#include "cli/options/option.h"

namespace spillway::cli {

// Returns 1 if there is a problem. Throws Failure (2).
int Doctor(const std::vector<std::string>& arguments);

std::vector<Option> DoctorOptionList();

// `root`: "", or a folder with test versions of proc and sys.
void ExamineInstallation(const Installation& installation, Findings& findings);
void ExamineAccelerator(const Installation& installation, const std::string& simulated_profile,
                        Findings& findings);
void ExamineKernel(const std::string& root, Findings& findings);
void ExamineSession(Findings& findings);

}  // namespace spillway::cli
