// Measures how long /bin/true takes from its start to its end, bare and under the preload library in turn.
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

double NowUs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

double RunOnceUs(const char* variable) {
  char program[] = "/bin/true";
  char* arguments[] = {program, nullptr};
  char* environment[] = {const_cast<char*>(variable), nullptr};
  const double begin_us = NowUs();
  pid_t child;
  int status = 0;
  if (posix_spawn(&child, program, nullptr, nullptr, arguments, environment) != 0) std::exit(1);
  waitpid(child, &status, 0);
  if (status != 0) std::exit(1);
  return NowUs() - begin_us;
}

double Quantile(std::vector<double>* values, double share) {
  std::sort(values->begin(), values->end());
  return (*values)[static_cast<size_t>(share * static_cast<double>(values->size() - 1))];
}

}  // namespace

int main(int count, char** arguments) {
  const int runs = count > 1 ? std::atoi(arguments[1]) : 1000;
  std::vector<double> bare_us, preloaded_us;
  for (int run = 0; run < runs; ++run) {
    bare_us.push_back(RunOnceUs("BARE=1"));
    preloaded_us.push_back(RunOnceUs("LD_PRELOAD=" START_UP_PRELOAD));
  }
  const double bare = Quantile(&bare_us, 0.5);
  const double preloaded = Quantile(&preloaded_us, 0.5);
  std::printf(
      "/bin/true, %d runs, us: bare median %.0f p99 %.0f, preloaded median %.0f p99 %.0f, difference %.0f\n",
      runs, bare, Quantile(&bare_us, 0.99), preloaded, Quantile(&preloaded_us, 0.99), preloaded - bare);
  return 0;
}
