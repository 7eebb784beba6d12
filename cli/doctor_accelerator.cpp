#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/environment.h"
#include "base/size_text.h"
#include "cli/accelerator_probe.h"
#include "cli/doctor.h"
#include "cli/failure.h"
#include "cli/files.h"
#include "cli/launch_checks.h"
#include "cli/subprocess.h"
#include "cli/younger_driver.h"

namespace spillway::cli {
namespace {

// If a preload fails, the loader prints an error, and the exit code is 0.
Finding ExaminePreload(const std::string& library) {
  EnvironmentChanges environment;
  environment.Set("LD_PRELOAD", library);
  const SubprocessResult result = RunSubprocess({"/bin/true"}, environment);
  if (result.exit_code == 0 && result.output.empty())
    return {Level::kOk, "preload", library + " loads", ""};
  return {Level::kProblem, "preload", library + " does not load: " + result.output,
          "rebuild Spillway on this machine, or install the C library it was built for"};
}

Finding ExamineDriverVersion(const AcceleratorFacts& accelerator) {
  const std::string fact =
      accelerator.driver_path + ", CUDA " + DriverVersionText(accelerator.driver_version);
  if (accelerator.driver_version >= kOldestDriverVersion) return {Level::kOk, "driver", fact, ""};
  return {Level::kProblem, "driver", fact,
          "install a driver for CUDA " + DriverVersionText(kOldestDriverVersion) + " or newer"};
}

Finding DriverProblem(const AcceleratorFacts& accelerator) {
  switch (accelerator.outcome) {
    case ProbeOutcome::kNoDriver:
      return {
          Level::kProblem, "driver", "none: " + accelerator.message,
          "install the NVIDIA driver, or in a container pass the GPU in; --simulate needs none"};
    case ProbeOutcome::kNotADriver:
      return {Level::kProblem, "driver", accelerator.driver_path + " lacks " + accelerator.message,
              "update the NVIDIA driver"};
    case ProbeOutcome::kDriverFailed: {
      const DriverResultAdvice advice = AdviceForDriverResult(accelerator.driver_result);
      return {Level::kProblem, "driver",
              accelerator.driver_path + ": " + accelerator.message + ": " + advice.meaning,
              advice.remedy};
    }
    default:
      return {Level::kProblem, "driver", "it does not answer: " + accelerator.message,
              "see whether nvidia-smi works; look at dmesg"};
  }
}

// Copies and launches through functions of a newer driver go unseen.
void ExamineUnknownFunctions(const AcceleratorFacts& accelerator, const Installation& installation,
                             Findings& findings) {
  const auto unknown = UnknownFunctions(accelerator.driver_path, installation.preload_library);
  if (unknown.empty()) {
    findings.push_back({Level::kOk, "driver functions", "all are known", ""});
    return;
  }
  findings.push_back(
      {Level::kWarning, "driver functions",
       std::to_string(unknown.size()) + " that this Spillway does not know: " + Listed(unknown),
       "calls of them pass through; if a job uses them (see unknown_function_names in its report), "
       "use a newer Spillway"});
}

void ExamineDevice(const AcceleratorFacts& accelerator, Findings& findings) {
  std::string fact = accelerator.device_name + ", " + base::FormatBytes(accelerator.device_bytes);
  if (accelerator.device_count > 1)
    fact += ", first of " + std::to_string(accelerator.device_count);
  findings.push_back({Level::kOk, "device", fact, ""});
  if (!accelerator.has_virtual_memory) {
    findings.push_back(
        {Level::kProblem, "virtual memory", "the device lacks virtual memory management (cuMemMap)",
         "use a device of compute capability 6.0 or newer outside of vGPU modes that hide it"});
    return;
  }
  findings.push_back({Level::kOk, "virtual memory", "supported", ""});
  findings.push_back(
      accelerator.has_host_parking
          ? Finding{Level::kOk, "host parking", "supported", ""}
          : Finding{
                Level::kWarning, "host parking",
                "the driver cannot map host memory under device addresses",
                "jobs that hide pointers inside device memory keep all their memory on the device; "
                "a newer driver or kernel may help"});
}

}  // namespace

void ExamineInstallation(const Installation& installation, Findings& findings) {
  findings.push_back({Level::kOk, "command", installation.executable, ""});
  if (access(installation.preload_library.c_str(), R_OK) != 0) {
    findings.push_back({Level::kProblem, "preload",
                        installation.preload_library + ": " + std::strerror(errno),
                        "build or install Spillway whole: bin/spillway and "
                        "lib/spillway/libspillway.so belong together"});
  } else {
    findings.push_back(ExaminePreload(installation.preload_library));
  }
}

void ExamineAccelerator(const Installation& installation, const std::string& simulated_profile,
                        Findings& findings) {
  EnvironmentChanges environment;
  environment.Unset(environment::kSimStats);
  std::string driver = EnvironmentValue(environment::kDriver);
  if (driver.empty()) driver = "libcuda.so.1";
  if (!simulated_profile.empty()) {
    try {
      CheckSimulator(installation, simulated_profile);
    } catch (const Failure& failure) {
      findings.push_back({Level::kProblem, "simulator", failure.text(), "see above"});
      return;
    }
    environment.Set(environment::kSimProfile, simulated_profile);
    driver = installation.simulator_folder + "/libcuda.so.1";
  }
  const AcceleratorFacts accelerator = ProbeAccelerator(driver, environment);
  if (accelerator.outcome != ProbeOutcome::kReady) {
    findings.push_back(DriverProblem(accelerator));
    return;
  }
  findings.push_back(ExamineDriverVersion(accelerator));
  ExamineUnknownFunctions(accelerator, installation, findings);
  ExamineDevice(accelerator, findings);
}

}  // namespace spillway::cli
