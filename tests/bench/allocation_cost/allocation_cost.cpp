// Measures a pair of cuMemAlloc and cuMemFree in a steady state, through the preload library and
// with the simulated driver alone. Counts the driver calls that the library makes.
//
// Three states of the device. Idle. With a launch on one stream between allocation and free, behind
// which the memory's next user must be ordered. With launches on two streams in turn, each ordered
// behind the other's: these driver calls (an event, a wait) are counted with the pair.
#include "tests/bench/bench.h"

namespace {

using bench::Die;
using bench::NowNs;
using bench::OpenDriver;

struct Calls {
  decltype(&::cuMemAlloc_v2) allocate;
  decltype(&::cuMemFree_v2) release;
  decltype(&::cuLaunchKernel) launch;
  decltype(&::cuStreamCreate) create_stream;
  decltype(&::cuCtxSynchronize) synchronize;
};

Calls CallsOf(const OpenDriver& driver) {
  return {driver.Find<decltype(&::cuMemAlloc_v2)>("cuMemAlloc_v2"),
          driver.Find<decltype(&::cuMemFree_v2)>("cuMemFree_v2"),
          driver.Find<decltype(&::cuLaunchKernel)>("cuLaunchKernel"),
          driver.Find<decltype(&::cuStreamCreate)>("cuStreamCreate"),
          driver.Find<decltype(&::cuCtxSynchronize)>("cuCtxSynchronize")};
}

constexpr int kBatch = 1000;

// `between(address)` runs between the two calls; its time does not count.
template <class Between>
double PairNs(const Calls& calls, size_t bytes, Between between) {
  double spent_ns = 0;
  for (int i = 0; i < kBatch; ++i) {
    CUdeviceptr address;
    const double begin_ns = NowNs();
    if (calls.allocate(&address, bytes) != CUDA_SUCCESS) Die("an allocation failed");
    const double between_ns = NowNs();
    between(address);
    const double release_ns = NowNs();
    if (calls.release(address) != CUDA_SUCCESS) Die("a free failed");
    spent_ns += NowNs() - release_ns + between_ns - begin_ns;
  }
  return spent_ns / kBatch;
}

template <class Between>
double MedianNs(const Calls& calls, size_t bytes, int batches, Between between) {
  PairNs(calls, bytes, between);
  std::vector<double> pairs_ns;
  for (int batch = 0; batch < batches; ++batch) {
    pairs_ns.push_back(PairNs(calls, bytes, between));
    calls.synchronize();
  }
  return bench::Quantile(&pairs_ns, 0.5);
}

void Launch(const Calls& calls, CUstream stream, CUdeviceptr address) {
  uint64_t values[20] = {address};
  void* addresses[20];
  for (int i = 0; i < 20; ++i) addresses[i] = &values[i];
  const auto kernel = reinterpret_cast<CUfunction>(uintptr_t{0x100000});
  calls.launch(kernel, 1, 1, 1, 1, 1, 1, 0, stream, addresses, nullptr);
}

struct Size {
  const char* name;
  size_t bytes;
};
constexpr Size kSizes[] = {
    {"4 KiB", 4 << 10}, {"1 MiB", 1 << 20}, {"64 MiB", 64 << 20}, {"1 GiB", 1 << 30}};

void MeasureHooked(const OpenDriver& driver, int batches) {
  const Calls calls = CallsOf(driver);
  const auto count = driver.Find<long (*)()>("null_driver_working_calls");
  CUstream streams[2];
  for (CUstream& stream : streams) calls.create_stream(&stream, CU_STREAM_NON_BLOCKING);
  for (const Size& size : kSizes) {
    const auto print = [&](const char* state, auto between) {
      PairNs(calls, size.bytes, between);
      const long before = count();
      PairNs(calls, size.bytes, between);
      const double calls_per_pair = static_cast<double>(count() - before) / kBatch;
      const double pair_ns = MedianNs(calls, size.bytes, batches, between);
      std::printf("%-8s %-36s %10.0f %18.3f\n", size.name, state, pair_ns, calls_per_pair);
    };
    print("idle", [](CUdeviceptr) {});
    print("launches on one stream",
          [&](CUdeviceptr address) { Launch(calls, streams[0], address); });
    int turn = 0;
    print("launches on two streams",
          [&](CUdeviceptr address) { Launch(calls, streams[++turn % 2], address); });
  }
}

void MeasureBare(const Calls& calls, int batches) {
  for (const Size& size : kSizes)
    std::printf("%-8s %-36s %10.0f %18s\n", size.name, "idle, the simulated driver's own",
                MedianNs(calls, size.bytes, batches, [](CUdeviceptr) {}), "-");
}

}  // namespace

int main(int count, char** arguments) {
  bench::StartUnderThePreload(arguments, bench::NullDriver());
  const int batches = count > 1 && std::string(arguments[1]) == "--quick" ? 2 : 100;
  std::printf("ns per cuMemAlloc + cuMemFree, median of %d batches of %d\n", batches, kBatch);
  std::printf("%-8s %-36s %10s %18s\n", "size", "the device", "ns", "driver calls/pair");
  MeasureHooked(OpenDriver(), batches);
  MeasureBare(CallsOf(OpenDriver(spillway::test::SimulatedDriver().c_str())), batches);
  return 0;
}
