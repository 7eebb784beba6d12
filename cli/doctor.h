// `spillway doctor`: looks at everything on this machine that could stop a job and says what to do
// about it.
//
// One thread; changes nothing. The driver is only loaded in a child process, the preload library
// only in /bin/true.
#pragma once

#include <string>
#include <vector>

#include "cli/findings.h"
#include "cli/installation.h"
#include "cli/option_list.h"

namespace spillway::cli {

// `arguments` starts with "doctor". Returns the exit code: 1 when there is a problem. Throws
// Failure (2).
int Doctor(const std::vector<std::string>& arguments);

OptionList DoctorOptionList();

// The parts, for the tests. `root` is "" or a folder that stands for /, with proc and sys as
// fixtures.
void ExamineInstallation(const Installation& installation, Findings& findings);
void ExamineAccelerator(const Installation& installation, const std::string& simulated_profile,
                        Findings& findings);
void ExamineKernel(const std::string& root, Findings& findings);
void ExamineSession(Findings& findings);

}  // namespace spillway::cli
