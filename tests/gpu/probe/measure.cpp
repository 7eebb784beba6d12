#include "tests/gpu/probe/measure.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

namespace spillway::probe {

using contract::Abandoned;

double MicrosecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
      .count();
}

double DeviceMs(CUstream stream, const std::function<void()>& work) {
  const CUevent start = contract::MakeEvent(), end = contract::MakeEvent();
  ASSERT_OK(cuEventRecord(start, stream));
  work();
  ASSERT_OK(cuEventRecord(end, stream));
  ASSERT_OK(cuEventSynchronize(end));
  float milliseconds = 0;
  ASSERT_OK(cuEventElapsedTime(&milliseconds, start, end));
  ASSERT_OK(cuEventDestroy(start));
  ASSERT_OK(cuEventDestroy(end));
  return milliseconds;
}

void Durations::Time(const std::string& operation, const std::function<CUresult()>& call) {
  auto series = std::find_if(series_.begin(), series_.end(),
                             [&](const Series& s) { return s.operation == operation; });
  if (series == series_.end()) series = series_.insert(series_.end(), {operation, {}});
  const auto start = std::chrono::steady_clock::now();
  const CUresult result = call();
  series->microseconds.push_back(MicrosecondsSince(start));
  ASSERT_OK(result);
}

void Durations::Report(const std::string& prefix) const {
  for (Series series : series_) {
    const auto middle =
        series.microseconds.begin() + static_cast<std::ptrdiff_t>(series.microseconds.size() / 2);
    std::nth_element(series.microseconds.begin(), middle, series.microseconds.end());
    contract::ReportFigure(prefix + " " + series.operation, *middle, "us");
  }
}

void InProcessesAtOnce(int count, const std::function<void(int)>& prepare,
                       const std::function<void(int)>& body) {
  void* shared = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_TRUE(shared != MAP_FAILED);
  auto* arrived = new (shared) std::atomic<int>(0);
  std::vector<pid_t> children;
  for (int i = 0; i < count; ++i) {
    children.push_back(fork());
    if (children.back() != 0) continue;
    try {
      prepare(i);
      for (++*arrived; *arrived < count;) usleep(50);
      body(i);
      std::exit(0);
    } catch (const Abandoned&) {
      *arrived = count;  // the others need not wait for this one
      std::exit(1);
    }
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  munmap(shared, 4096);
}

double GigabytesPerSecond(double bytes, double milliseconds) {
  return milliseconds > 0 ? bytes / milliseconds / 1e6 : 0;
}

}  // namespace spillway::probe
