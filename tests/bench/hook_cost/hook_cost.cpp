// Measures a kernel launch through the preload library, beside one straight to the driver.
//
// The program restarts itself under the preload library and over the null driver. Both kinds of
// launch alternate in batches of 32, so other load affects both alike. Printed are the median and
// the 99th percentile of the batches' means.
//
// The launches repeat, so the job can be learned. The last row's process follows a plan that moves
// nothing, and its report must confirm that.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/bench/bench.h"

namespace {

using bench::Die;
using bench::IsFrom;
using bench::NowNs;
using bench::OpenDriver;
using bench::Quantile;
using bench::StartUnderThePreload;

constexpr int kAllocations = 10000;
constexpr int kWorkingSet = 320;
constexpr int kParameters = 20;
constexpr int kPointers = 5;
constexpr int kKernels = 256;
constexpr int kLaunchesPerBatch = 32;
constexpr int kArgumentSets = 1024;
constexpr int kIterationBatches =
    kArgumentSets / kLaunchesPerBatch;  // until the same launches repeat
static_assert(kIterationBatches * kLaunchesPerBatch * 7 % kKernels == 0);

using Launch = decltype(&::cuLaunchKernel);

struct Driver {
  Launch hooked_launch = nullptr;
  Launch bare_launch = nullptr;
  decltype(&::cuMemAlloc_v2) allocate = nullptr;
  decltype(&::cuCtxSynchronize) synchronize = nullptr;
  int (*count_plain_allocations)() = nullptr;
};

struct ArgumentSet {
  std::array<uint64_t, kParameters> values;
  std::array<void*, kParameters> addresses;
};

struct Figures {
  const char* what;
  double bare_median_ns, bare_p99_ns, hooked_median_ns, hooked_p99_ns;
  double CostMedianNs() const { return hooked_median_ns - bare_median_ns; }
};

Driver Open() {
  const OpenDriver opened;
  Driver driver;
  driver.hooked_launch = opened.Find<Launch>("cuLaunchKernel");
  driver.bare_launch = reinterpret_cast<Launch>(opened.Find<void* (*)()>("null_driver_launch")());
  driver.allocate = opened.Find<decltype(driver.allocate)>("cuMemAlloc_v2");
  driver.synchronize = opened.Find<decltype(driver.synchronize)>("cuCtxSynchronize");
  driver.count_plain_allocations = opened.Find<int (*)()>("null_driver_plain_allocations");
  if (!IsFrom(spillway::test::PreloadLibrary().c_str(),
              reinterpret_cast<void*>(driver.hooked_launch)))
    Die("the launch is not hooked");
  if (!IsFrom(bench::NullDriver().c_str(), reinterpret_cast<void*>(driver.bare_launch)))
    Die("the bare launch is not the driver's");
  return driver;
}

// 1 to 16 MiB each, 85 GiB in all, in random order.
std::vector<CUdeviceptr> Allocate(const Driver& driver, std::mt19937_64* random) {
  std::uniform_int_distribution<size_t> size_kib(1024, 16384);
  std::vector<CUdeviceptr> addresses(kAllocations);
  for (CUdeviceptr& address : addresses) {
    if (driver.allocate(&address, size_kib(*random) << 10) != CUDA_SUCCESS)
      Die("an allocation failed");
  }
  if (driver.count_plain_allocations() != 0)
    Die("the allocations are not managed: there is nothing to measure");
  std::shuffle(addresses.begin(), addresses.end(), *random);
  return addresses;
}

using ArgumentSets = std::unique_ptr<std::array<ArgumentSet, kArgumentSets>>;

// Five pointers into the first `working_set` allocations; scalars that look like sizes, strides and
// floats.
ArgumentSets MakeArguments(const std::vector<CUdeviceptr>& addresses, int working_set,
                           std::mt19937_64* random) {
  auto sets = std::make_unique<std::array<ArgumentSet, kArgumentSets>>();
  for (ArgumentSet& set : *sets) {
    for (int i = 0; i < kParameters; ++i) {
      const bool is_pointer = i < kPointers;
      set.values[i] = is_pointer ? addresses[(*random)() % working_set] + ((*random)() % 4096) * 256
                                 : (*random)() >> 34;
      set.addresses[i] = &set.values[i];
    }
  }
  return sets;
}

double BatchNs(Launch launch, ArgumentSets::element_type& sets, unsigned first) {
  const double begin_ns = NowNs();
  for (int i = 0; i < kLaunchesPerBatch; ++i) {
    ArgumentSet& set = sets[(first + i) % kArgumentSets];
    const auto kernel =
        reinterpret_cast<CUfunction>(uintptr_t{0x100000} + (first * 7 + i) % kKernels * 64);
    if (launch(kernel, 64, 1, 1, 256, 1, 1, 0, nullptr, set.addresses.data(), nullptr) !=
        CUDA_SUCCESS) {
      Die("a launch failed");
    }
  }
  return (NowNs() - begin_ns) / kLaunchesPerBatch;
}

Figures Measure(const char* what, const Driver& driver, ArgumentSets::element_type& sets,
                int batches) {
  std::vector<double> bare_ns, hooked_ns;
  for (int batch = -batches / 10; batch < batches; ++batch) {
    const unsigned first = static_cast<unsigned>(batch + batches) * kLaunchesPerBatch;
    const double bare = BatchNs(driver.bare_launch, sets, first);
    const double hooked = BatchNs(driver.hooked_launch, sets, first);
    if (batch >= 0) {  // the first tenth warms caches and pools
      bare_ns.push_back(bare);
      hooked_ns.push_back(hooked);
    }
    if (batch % 64 == 0) driver.synchronize();
  }
  return {what, Quantile(&bare_ns, 0.5), Quantile(&bare_ns, 0.99), Quantile(&hooked_ns, 0.5),
          Quantile(&hooked_ns, 0.99)};
}

// A job that fits is only followed, and no longer recorded, from the 65,536th event of its
// iteration on.
constexpr int kIterationsToLearn = 100;
constexpr const char* kFollowed = "a working set, a plan followed";

// The planner thread needs some time.
void RunUntilLearned(const Driver& driver, ArgumentSets::element_type& sets) {
  constexpr timespec kPause{0, 20'000'000};
  for (int batch = 0; batch < kIterationsToLearn * kIterationBatches; ++batch) {
    BatchNs(driver.hooked_launch, sets, static_cast<unsigned>(batch) * kLaunchesPerBatch);
    if (batch % kIterationBatches == 0) nanosleep(&kPause, nullptr);
  }
}

// Prints the row's figures on standard output.
int FollowAPlan(const Driver& driver, ArgumentSets::element_type& sets, int batches) {
  RunUntilLearned(driver, sets);
  const Figures row = Measure(kFollowed, driver, sets, batches);
  std::printf("%f %f %f %f\n", row.bare_median_ns, row.bare_p99_ns, row.hooked_median_ns,
              row.hooked_p99_ns);
  return 0;
}

long NumberIn(const std::string& report, const char* name) {
  const size_t at = report.find('"' + std::string(name) + "\":");
  return at == std::string::npos ? 0 : std::atol(report.c_str() + report.find(':', at) + 1);
}

std::string ContentsOf(const std::string& path) {
  std::string contents;
  FILE* const file = std::fopen(path.c_str(), "r");
  if (file == nullptr) Die("cannot read " + path);
  for (int byte = std::fgetc(file); byte != EOF; byte = std::fgetc(file))
    contents += static_cast<char>(byte);
  std::fclose(file);
  return contents;
}

// Restarted as a job that is learned although it fits.
Figures MeasureFollowed(const char* size_option) {
  const std::string report = "/tmp/hook_cost." + std::to_string(getpid()) + ".json";
  char self[4096] = {};
  if (readlink("/proc/self/exe", self, sizeof self - 1) < 0) Die("cannot find itself");
  const std::string command = "SPILLWAY_LEARN=always SPILLWAY_PARK=off SPILLWAY_REPORT='" + report +
                              "' '" + self + "' --followed " + size_option;
  FILE* const child = popen(command.c_str(), "r");
  Figures row{kFollowed, 0, 0, 0, 0};
  if (child == nullptr ||
      std::fscanf(child, "%lf %lf %lf %lf", &row.bare_median_ns, &row.bare_p99_ns,
                  &row.hooked_median_ns, &row.hooked_p99_ns) != 4)
    Die("the process that follows a plan tells nothing");
  if (pclose(child) != 0) Die("the process that follows a plan fails");
  const std::string said = ContentsOf(report);
  unlink(report.c_str());
  if (NumberIn(said, "recorded_events") >= NumberIn(said, "launches"))
    Die("no plan was followed: there is nothing to measure");
  return row;
}

void PrintTable(const std::vector<Figures>& rows) {
  std::printf("ns per launch, %d parameters of which %d pointers, %d live allocations >= 1 MiB\n",
              kParameters, kPointers, kAllocations);
  std::printf("%-34s %12s %12s %12s %12s %12s\n", "pointers into", "bare median", "bare p99",
              "hook median", "hook p99", "cost median");
  for (const Figures& row : rows) {
    std::printf("%-34s %12.1f %12.1f %12.1f %12.1f %12.1f\n", row.what, row.bare_median_ns,
                row.bare_p99_ns, row.hooked_median_ns, row.hooked_p99_ns, row.CostMedianNs());
  }
}

void WriteJson(const char* path, const std::vector<Figures>& rows) {
  FILE* const file = std::fopen(path, "w");
  if (file == nullptr) Die(std::string("cannot write ") + path);
  std::fprintf(
      file,
      "{\"schema\": 1, \"parameters\": %d, \"pointers\": %d, \"allocations\": %d, \"rows\": [",
      kParameters, kPointers, kAllocations);
  const char* comma = "";
  for (const Figures& row : rows) {
    std::fprintf(
        file,
        "%s\n  {\"pointers_into\": \"%s\", \"bare_median_ns\": %.2f, \"bare_p99_ns\": %.2f, "
        "\"hook_median_ns\": %.2f, \"hook_p99_ns\": %.2f, \"cost_median_ns\": %.2f}",
        comma, row.what, row.bare_median_ns, row.bare_p99_ns, row.hooked_median_ns,
        row.hooked_p99_ns, row.CostMedianNs());
    comma = ",";
  }
  std::fprintf(file, "\n]}\n");
  std::fclose(file);
}

}  // namespace

int main(int count, char** arguments) {
  StartUnderThePreload(arguments, bench::NullDriver());
  int batches = 20000;
  bool is_to_follow = false;
  const char* json = nullptr;
  const char* size_option = "";
  for (int i = 1; i < count; ++i) {
    if (std::strcmp(arguments[i], "--quick") == 0) {
      batches = 200;
      size_option = arguments[i];
    }
    if (std::strcmp(arguments[i], "--followed") == 0) is_to_follow = true;
    if (std::strcmp(arguments[i], "--json") == 0 && i + 1 < count) json = arguments[++i];
  }

  const Driver driver = Open();
  std::mt19937_64 random(1);
  const std::vector<CUdeviceptr> addresses = Allocate(driver, &random);
  const ArgumentSets in_working_set = MakeArguments(addresses, kWorkingSet, &random);
  if (is_to_follow) return FollowAPlan(driver, *in_working_set, batches);
  const ArgumentSets anywhere = MakeArguments(addresses, kAllocations, &random);
  const std::vector<Figures> rows = {
      Measure("a working set of 320 allocations", driver, *in_working_set, batches),
      Measure("any of the 10,000 allocations", driver, *anywhere, batches),
      MeasureFollowed(size_option),
  };
  PrintTable(rows);
  if (json != nullptr) WriteJson(json, rows);
  return 0;
}
