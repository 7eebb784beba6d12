#include "cli/launch_checks.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/environment.h"
#include "cli/failure.h"
#include "cli/files.h"

namespace spillway::cli {
namespace {

bool HasPreloadedSpillway(const std::string& preloads) {
  std::size_t begin = 0;
  while (begin < preloads.size()) {
    const std::size_t end = std::min(preloads.find_first_of(" :", begin), preloads.size());
    const std::string entry = preloads.substr(begin, end - begin);
    if (entry.substr(entry.find_last_of('/') + 1) == "libspillway.so") return true;
    begin = end + 1;
  }
  return false;
}

std::string ProfileNames(const std::string& folder) {
  std::vector<std::string> names;
  if (DIR* listing = opendir(folder.c_str()); listing != nullptr) {
    while (const dirent* entry = readdir(listing)) {
      const std::string name = entry->d_name;
      if (name.front() != '.') names.push_back(name.substr(0, name.find_last_of('.')));
    }
    closedir(listing);
  }
  std::sort(names.begin(), names.end());
  std::string text;
  for (const std::string& name : names) text += " " + name;
  return text.empty() ? " none" : text;
}

bool HasProfile(const std::string& folder, const std::string& profile) {
  if (profile.find('/') != std::string::npos) return access(profile.c_str(), R_OK) == 0;
  return (ProfileNames(folder) + " ").find(" " + profile + " ") != std::string::npos;
}

Failure BudgetFailure(const BudgetQuestion& question, const std::string& why,
                      const std::string& remedy) {
  return {kExitRefused, "the budget " + question.size.written + " cannot work", why, remedy};
}

std::uint64_t WholeBytes(const BudgetQuestion& question) {
  if (question.size.kind != base::SizeKind::kShareOfPeak) return question.device_bytes;
  if (question.peak_bytes != 0) return question.peak_bytes;
  throw BudgetFailure(
      question,
      "this command's peak is not known: no earlier run of exactly this command measured it",
      "run it once without a budget, then again with it:\n" + question.measure_command);
}

void CheckAbilities(const AcceleratorFacts& accelerator) {
  if (!accelerator.has_virtual_memory) {
    throw Failure(kExitRefused, accelerator.device_name + " cannot be used",
                  "it lacks virtual memory management (cuMemMap), on which Spillway is built",
                  "use a device of compute capability 6.0 or newer");
  }
  if (accelerator.driver_version < kOldestDriverVersion) {
    throw Failure(kExitRefused,
                  "the driver is too old: CUDA " + DriverVersionText(accelerator.driver_version),
                  "before CUDA " + DriverVersionText(kOldestDriverVersion) +
                      " a driver does not tell which memory a kernel is given",
                  "install a newer NVIDIA driver, or run without Spillway: spillway run --off");
  }
}

}  // namespace

void CheckNotNested() {
  if (!HasPreloadedSpillway(EnvironmentValue("LD_PRELOAD"))) return;
  const std::string job = EnvironmentValue(environment::kJobPid);
  if (!job.empty()) {
    throw Failure(kExitRefused, "already inside a job of Spillway (pid " + job + ")",
                  "a budget inside a budget is not supported: the outer one holds for everything "
                  "the job starts",
                  "leave out the inner `spillway run`");
  }
  throw Failure(kExitRefused, "LD_PRELOAD already names libspillway.so",
                "only `spillway run` puts it there, once",
                "unset LD_PRELOAD, or take libspillway.so out of it");
}

void CheckPreloadLibrary(const Installation& installation) {
  const std::string& path = installation.preload_library;
  if (access(path.c_str(), R_OK) != 0) {
    throw Failure(kExitRefused, "cannot read " + path, std::strerror(errno),
                  "build or install Spillway whole: bin/spillway and lib/spillway/libspillway.so "
                  "belong together");
  }
  if (path.find_first_of(" :") != std::string::npos) {
    throw Failure(kExitRefused, "cannot preload " + path,
                  "LD_PRELOAD separates its entries by spaces and colons, and the path holds one",
                  "move or link Spillway to a folder without spaces and colons");
  }
}

void CheckSimulator(const Installation& installation, const std::string& profile) {
  const std::string& folder = installation.simulator_folder;
  if (access((folder + "/libcuda.so.1").c_str(), R_OK) != 0) {
    throw Failure(
        kExitRefused, "no simulated GPU in " + folder, std::strerror(errno),
        "build it (cmake option SPILLWAY_SIMULATOR=ON), or run without --simulate on a real GPU");
  }
  if (folder.find_first_of(":;") != std::string::npos) {
    throw Failure(
        kExitRefused, "cannot use the simulated GPU in " + folder,
        "LD_LIBRARY_PATH separates its entries by colons and semicolons, and the path holds one",
        "move or link Spillway to a folder without them");
  }
  if (!HasProfile(folder + "/profiles", profile)) {
    throw Failure(kExitRefused, "no device profile '" + profile + "'",
                  "the simulator has:" + ProfileNames(folder + "/profiles"),
                  "choose one of them, or give a file's path");
  }
}

void CheckAccelerator(const AcceleratorFacts& accelerator) {
  const std::string elsewhere = "\nto try Spillway without a GPU, add --simulate";
  switch (accelerator.outcome) {
    case ProbeOutcome::kReady:
      return CheckAbilities(accelerator);
    case ProbeOutcome::kNoDriver:
      throw Failure(kExitRefused, "no CUDA driver", accelerator.message,
                    "install the NVIDIA driver, or in a container pass the GPU in" + elsewhere);
    case ProbeOutcome::kNotADriver:
      throw Failure(kExitRefused, accelerator.driver_path + " is no CUDA driver that can be used",
                    "it lacks " + accelerator.message,
                    "update the NVIDIA driver, or correct SPILLWAY_DRIVER");
    case ProbeOutcome::kDriverFailed: {
      const DriverResultAdvice advice = AdviceForDriverResult(accelerator.driver_result);
      throw Failure(kExitRefused, "the CUDA driver does not start (" + accelerator.message + ")",
                    advice.meaning, advice.remedy + elsewhere);
    }
    case ProbeOutcome::kCrashed:
      throw Failure(kExitRefused, "the CUDA driver cannot be asked about the device",
                    accelerator.message, "see whether nvidia-smi works; look at dmesg" + elsewhere);
  }
}

std::string ClearFile(const std::string& file, const std::string& what) {
  const std::string path = AbsolutePath(file);
  struct stat facts = {};
  const bool exists = stat(path.c_str(), &facts) == 0;
  // The library renames a new file over it, which would replace a device such as /dev/null.
  if (exists && !S_ISREG(facts.st_mode)) {
    throw Failure(kExitRefused, "cannot write the " + what + " to " + path,
                  "it is a folder, a device or a pipe", "name a file that may be replaced");
  }
  const std::string checked = exists ? path : ParentFolder(path);
  if (access(checked.c_str(), W_OK) != 0) {
    throw Failure(kExitRefused, "cannot write the " + what + " to " + path,
                  checked + ": " + std::strerror(errno),
                  "choose another place, or make the folder first");
  }
  if (exists) unlink(path.c_str());
  return path;
}

std::uint64_t DecideBudgetBytes(const BudgetQuestion& question, std::string& warning) {
  const std::uint64_t budget_bytes = base::ResolveSize(question.size, WholeBytes(question));
  if (budget_bytes < kSmallestBudgetBytes) {
    throw BudgetFailure(question,
                        "it comes to " + std::to_string(budget_bytes) + " bytes (" +
                            base::FormatBytes(budget_bytes) +
                            "), below the smallest that can be kept, " +
                            base::FormatBytes(kSmallestBudgetBytes),
                        "give the job more memory");
  }
  if (budget_bytes <= question.device_bytes) return budget_bytes;
  warning = "the budget " + question.size.written + " (" + base::FormatBytes(budget_bytes) +
            ") is more than the device has; " + "using all of it, " +
            base::FormatBytes(question.device_bytes);
  return question.device_bytes;
}

}  // namespace spillway::cli
