#include <signal.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <time.h>

#include <cstdio>

#include "deploy/kubernetes/driver.h"
#include "deploy/kubernetes/driver_options.h"

namespace spillway::kubernetes {
namespace {

constexpr timespec kTurn{1, 0};

sigset_t EndSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  return signals;
}

int Fail(const base::Status& status, int code) {
  std::fprintf(stderr, "spillway-kubernetes: %s\n", status.text().c_str());
  if (code == 2) std::fputs("see: spillway-kubernetes --help\n", stderr);
  return code;
}

int Serve(const DriverOptions& options) {
  // All threads block them; this one waits for them.
  const sigset_t signals = EndSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
  spdlog::set_default_logger(spdlog::stderr_logger_mt("spillway-kubernetes"));
  spdlog::set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %l %v", spdlog::pattern_time_type::utc);
  Driver driver(options);
  if (const base::Status started = driver.Start(); !started.ok()) return Fail(started, 1);
  spdlog::info("spillway-kubernetes " SPILLWAY_VERSION " begins");
  do {
    driver.Turn();
  } while (sigtimedwait(&signals, nullptr, &kTurn) < 0);
  spdlog::info("spillway-kubernetes ends");
  return 0;
}

int Main(int argc, char** argv) {
  const base::Result<DriverOptions> options = ReadDriverOptions({argv, argv + argc});
  if (!options) return Fail(options.status(), 2);
  if (options->help) return std::fputs(DriverHelp().c_str(), stdout), 0;
  if (options->version) return std::puts("spillway-kubernetes " SPILLWAY_VERSION), 0;
  if (!options->probe) return Serve(*options);
  const base::Status probed = ProbeDraServer(DraOptionsOf(*options));
  return probed.ok() ? 0 : Fail(probed, 1);
}

}  // namespace
}  // namespace spillway::kubernetes

int main(int argc, char** argv) { return spillway::kubernetes::Main(argc, argv); }
