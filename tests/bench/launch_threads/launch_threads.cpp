// Measures kernel launches from many threads through the preload library, beside the same launches
// straight to the driver.
//
// Each thread launches on its own stream. Of five pointers, three lie in its own allocations and
// two in shared ones (weights). A driver with free launches shows the hook alone; one whose launch
// takes two microseconds (real ones take at least as long) shows what a program sees. Rounds of
// both kinds alternate; a figure is the median.
#include <atomic>
#include <cstdint>
#include <thread>

#include "tests/bench/bench.h"

namespace {

using bench::Die;
using bench::NowNs;
using bench::OpenDriver;
using Launch = decltype(&::cuLaunchKernel);

constexpr int kParameters = 20;
constexpr int kOwn = 3;
constexpr int kShared = 2;
constexpr size_t kBytes = size_t{4} << 20;

struct Arguments {
  uint64_t values[kParameters] = {};
  void* addresses[kParameters];
  Arguments() {
    for (int i = 0; i < kParameters; ++i) addresses[i] = &values[i];
  }
};

struct Program {
  OpenDriver driver;
  Launch hooked = driver.Find<Launch>("cuLaunchKernel");
  Launch bare = reinterpret_cast<Launch>(driver.Find<void* (*)()>("null_driver_launch")());
  std::vector<CUdeviceptr> shared;

  CUdeviceptr Allocate() const {
    CUdeviceptr address;
    if (driver.Find<decltype(&::cuMemAlloc_v2)>("cuMemAlloc_v2")(&address, kBytes) != CUDA_SUCCESS)
      Die("an allocation failed");
    return address;
  }
};

struct Span {
  double begin_ns, end_ns;
};

// Waits for the others, launches, and returns its times.
Span LaunchAll(const Program& program, Launch launch, int launches, std::atomic<int>* waiting) {
  program.driver.MakeCurrent();
  CUstream stream;
  program.driver.Find<decltype(&::cuStreamCreate)>("cuStreamCreate")(&stream,
                                                                     CU_STREAM_NON_BLOCKING);
  Arguments arguments;
  for (int i = 0; i < kOwn; ++i) arguments.values[i] = program.Allocate();
  for (int i = 0; i < kShared; ++i)
    arguments.values[kOwn + i] = program.shared[static_cast<size_t>(i)];
  const auto kernel = reinterpret_cast<CUfunction>(uintptr_t{0x100000});
  launch(kernel, 1, 1, 1, 1, 1, 1, 0, stream, arguments.addresses, nullptr);
  waiting->fetch_sub(1);
  while (waiting->load() > 0) std::this_thread::yield();
  const double begin_ns = NowNs();
  for (int i = 0; i < launches; ++i)
    launch(kernel, 1, 1, 1, 1, 1, 1, 0, stream, arguments.addresses, nullptr);
  const double end_ns = NowNs();
  for (int i = 0; i < kOwn; ++i)
    program.driver.Find<decltype(&::cuMemFree_v2)>("cuMemFree_v2")(arguments.values[i]);
  return {begin_ns, end_ns};
}

// Launches per second of all threads, from the first begin to the last end.
double Round(const Program& program, Launch launch, int threads, int launches) {
  std::atomic<int> waiting{threads};
  std::vector<Span> spans(static_cast<size_t>(threads));
  std::vector<std::thread> running;
  for (Span& span : spans)
    running.emplace_back([&] { span = LaunchAll(program, launch, launches, &waiting); });
  for (std::thread& thread : running) thread.join();
  double begin_ns = spans[0].begin_ns, end_ns = 0;
  for (const Span& span : spans) {
    begin_ns = std::min(begin_ns, span.begin_ns);
    end_ns = std::max(end_ns, span.end_ns);
  }
  return threads * launches / (end_ns - begin_ns) * 1e9;
}

struct Row {
  int threads;
  double bare, hooked;  // launches per second
};

Row Measure(const Program& program, int threads, int rounds, int launches) {
  std::vector<double> bare, hooked;
  for (int round = 0; round < rounds; ++round) {
    bare.push_back(Round(program, program.bare, threads, launches));
    hooked.push_back(Round(program, program.hooked, threads, launches));
  }
  return {threads, bench::Quantile(&bare, 0.5), bench::Quantile(&hooked, 0.5)};
}

void Print(const Row& row, const Row& alone) {
  std::printf("%8d %14.0f %14.0f %12.3f %16.2f %16.2f\n", row.threads, row.bare / 1e3,
              row.hooked / 1e3, row.hooked / row.bare, row.bare / alone.bare,
              row.hooked / alone.hooked);
}

}  // namespace

int main(int count, char** arguments) {
  bool quick = false;
  const char* launch_ns = "2000";
  for (int i = 1; i < count; ++i) {
    if (std::string(arguments[i]) == "--quick") quick = true;
    if (std::string(arguments[i]) == "--launch-ns" && i + 1 < count) launch_ns = arguments[++i];
  }
  setenv("NULL_DRIVER_LAUNCH_NS", launch_ns, 1);
  bench::StartUnderThePreload(arguments, bench::NullDriver());

  Program program;
  for (int i = 0; i < kShared; ++i) program.shared.push_back(program.Allocate());
  const int launches = quick ? 200 : std::atoi(launch_ns) ? 40000 : 1000000;
  const int rounds = quick ? 2 : 9;
  std::printf("a driver whose launch takes %s ns; %u processors\n", launch_ns,
              std::thread::hardware_concurrency());
  std::printf("%8s %14s %14s %12s %16s %16s\n", "threads", "bare k/s", "hooked k/s", "hooked/bare",
              "bare growth", "hooked growth");
  const Row alone = Measure(program, 1, rounds, launches);
  Print(alone, alone);
  for (int threads : {2, 4, 8}) Print(Measure(program, threads, rounds, launches / threads), alone);
  return 0;
}
