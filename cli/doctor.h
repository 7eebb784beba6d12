// `spillway doctor`: checks everything on this machine that could stop a job, and advises. Only a
// child process loads the driver, and only /bin/true the preload library.
#pragma once

#include <string>
#include <vector>

#include "cli/findings.h"
#include "cli/installation.h"
#include "cli/options/option.h"

namespace spillway::cli {

// `arguments` start with "doctor". Returns 1 if there is a problem. Throws Failure (2).
int Doctor(const std::vector<std::string>& arguments);

std::vector<Option> DoctorOptionList();

// Parts, for the tests. `root`: "", or a folder with test versions of proc and sys.
void ExamineInstallation(const Installation& installation, Findings& findings);
void ExamineAccelerator(const Installation& installation, const std::string& simulated_profile,
                        Findings& findings);
void ExamineKernel(const std::string& root, Findings& findings);
void ExamineSession(Findings& findings);

}  // namespace spillway::cli
