// Measures programs without CUDA from start to end, in turn with and without the preload library.
#include <spawn.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/support/paths.h"

namespace {

using Command = std::vector<std::string>;

double NowUs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

struct Cost {
  double wall_us, processor_us;
};

double Microseconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_usec);
}

Cost RunOnce(const Command& command, const char* variable) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  char* const environment[] = {const_cast<char*>(variable), nullptr};
  const double begin_us = NowUs();
  pid_t child;
  int status = 0;
  rusage usage;
  if (posix_spawnp(&child, arguments[0], nullptr, nullptr, arguments.data(), environment) != 0)
    std::exit(1);
  wait4(child, &status, 0, &usage);
  if (status != 0) std::exit(1);
  return {NowUs() - begin_us, Microseconds(usage.ru_utime) + Microseconds(usage.ru_stime)};
}

double MedianUs(const std::vector<Cost>& costs, double Cost::*which) {
  std::vector<double> values;
  for (const Cost& cost : costs) values.push_back(cost.*which);
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void Measure(const char* what, const Command& command, int runs) {
  const std::string preload = "LD_PRELOAD=" + spillway::test::PreloadLibrary();
  std::vector<Cost> bare, preloaded;
  for (int run = 0; run < runs; ++run) {
    bare.push_back(RunOnce(command, "BARE=1"));
    preloaded.push_back(RunOnce(command, preload.c_str()));
  }
  std::printf("%-16s", what);
  for (double Cost::*which : {&Cost::wall_us, &Cost::processor_us}) {
    const double bare_us = MedianUs(bare, which);
    const double preloaded_us = MedianUs(preloaded, which);
    std::printf(" %10.0f %10.0f %10.0f", bare_us, preloaded_us, preloaded_us - bare_us);
  }
  std::printf("\n");
}

// The command python3 may be a script that first starts hundreds of programs.
std::string PythonInterpreter() {
  char path[4096] = "";
  FILE* const answer = popen("python3 -c 'import sys; print(sys.executable, end=str())'", "r");
  if (answer == nullptr || std::fgets(path, sizeof(path), answer) == nullptr || pclose(answer) != 0)
    std::exit(1);
  return path;
}

}  // namespace

int main(int count, char** arguments) {
  const int runs = count > 1 ? std::atoi(arguments[1]) : 300;
  std::printf("medians of %d runs, us\n%-16s %32s %32s\n", runs, "", "start to end",
              "processor time");
  std::printf("%-16s %10s %10s %10s %10s %10s %10s\n", "", "bare", "preloaded", "more", "bare",
              "preloaded", "more");
  Measure("/bin/true", {"/bin/true"}, runs);
  Measure("bash -c true", {"bash", "-c", "true"}, runs);
  Measure("python3 -c pass", {PythonInterpreter(), "-c", "pass"}, runs);
  return 0;
}
