// Measures recording one operation on the calling thread: an event with its touches into the
// thread's ring.
//
// Times batches of events while another thread drains the rings, like the planner thread. Several
// threads share one recorder's ticket counter. Printed are the median and the 99th percentile of
// the batches' means, and the events dropped because the reader was behind.
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "interposer/record/recorder.h"

namespace {

using spillway::interposer::LearnChoice;
using spillway::interposer::RecordedTouch;
using spillway::interposer::Recorder;

constexpr int kEventsPerBatch = 256;
double NowNs() { return static_cast<double>(spillway::base::MonotonicNs()); }

double Quantile(std::vector<double>* values, double share) {
  const auto place = values->begin() +
                     static_cast<std::ptrdiff_t>(share * static_cast<double>(values->size() - 1));
  std::nth_element(values->begin(), place, values->end());
  return *place;
}

// The reader's backlog stays within a ring, whatever else the machine does.
void AwaitReader(const Recorder& recorder, const std::atomic<std::uint64_t>& drained) {
  constexpr std::uint64_t kBehind = 1'000;
  while (recorder.recorded_events() > drained.load() + kBehind) sched_yield();
}

std::vector<double> TimeBatches(Recorder* recorder, const std::vector<RecordedTouch>& touches,
                                int batches, const std::atomic<std::uint64_t>& drained) {
  std::vector<double> costs_ns;
  for (int batch = 0; batch < batches; ++batch) {
    const double began_ns = NowNs();
    for (int i = 0; i < kEventsPerBatch; ++i) {
      if (recorder->IsRecording()) recorder->Enqueued(static_cast<std::uint64_t>(i), touches);
    }
    costs_ns.push_back((NowNs() - began_ns) / kEventsPerBatch);
    AwaitReader(*recorder, drained);
  }
  return costs_ns;
}

void Measure(int thread_count, std::size_t touch_count, int batches) {
  Recorder recorder(LearnChoice::kAlways);
  recorder.Begin({});
  const std::vector<RecordedTouch> touches(touch_count, RecordedTouch{1000, true});
  std::atomic<bool> done{false};
  std::atomic<std::uint64_t> drained{0};
  std::thread reader([&] {
    Recorder::Drained event;
    while (!done.load()) {
      recorder.Next(&event) ? static_cast<void>(drained.fetch_add(1))
                            : static_cast<void>(sched_yield());
    }
  });
  std::vector<std::vector<double>> costs_ns(static_cast<std::size_t>(thread_count));
  std::vector<std::thread> threads;
  for (auto& costs : costs_ns)
    threads.emplace_back([&] { costs = TimeBatches(&recorder, touches, batches, drained); });
  for (std::thread& thread : threads) thread.join();
  done = true;
  reader.join();
  std::vector<double> all;
  for (const auto& costs : costs_ns) all.insert(all.end(), costs.begin(), costs.end());
  std::printf(
      "%d thread%s, %2zu touches: median %5.1f ns, p99 %6.1f ns, %llu of %llu events dropped\n",
      thread_count, thread_count == 1 ? "" : "s", touch_count, Quantile(&all, 0.5),
      Quantile(&all, 0.99), static_cast<unsigned long long>(recorder.dropped_events()),
      static_cast<unsigned long long>(recorder.dropped_events() + recorder.recorded_events()));
}

}  // namespace

int main(int count, char** arguments) {
  const bool quick = count > 1 && std::strcmp(arguments[1], "--quick") == 0;
  const int batches = quick ? 20 : 2'000;
  for (const int threads : {1, 4}) {
    for (const std::size_t touches : {1, 4, 16}) Measure(threads, touches, batches);
  }
  return 0;
}
