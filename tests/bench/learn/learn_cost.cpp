// The processor time of an event for the learner and the follower: the best of a few rounds over a
// few million events, made before the clock starts.
//
// learn_cost [--quick]

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <functional>
#include <memory>
#include <vector>

#include "base/prng.h"
#include "scheduler/learn/iteration_follower.h"
#include "scheduler/learn/iteration_learner.h"
#include "scheduler/networks/catalog.h"
#include "scheduler/networks/training_step.h"
#include "tests/unit/scheduler_learn/network_job.h"

namespace {

using namespace spillway::scheduler;

double CpuNs() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

struct Stream {
  std::vector<JobEvent> events;
  std::vector<JobTouch> touches;
  std::vector<size_t> first_touch;

  void Add(const JobEvent& event) {
    first_touch.push_back(touches.size());
    touches.insert(touches.end(), event.touches.begin(), event.touches.end());
    events.push_back(event);
  }
  void Finish() {
    for (size_t i = 0; i < events.size(); ++i)
      events[i].touches = std::span(touches).subspan(first_touch[i], events[i].touches.size());
  }
};

Stream Iterations(const IterationProfile& profile, size_t events) {
  Stream stream;
  testing::NetworkJob job(profile, {.lazy_optimizer_state = true, .late_loss = true},
                          [&](const JobEvent& event) { stream.Add(event); });
  job.SetUp();
  while (stream.events.size() < events) job.Iterate();
  stream.Finish();
  return stream;
}

// Never repeats: the learner finds nothing and keeps searching.
Stream Random(size_t events) {
  Stream stream;
  spillway::base::Prng prng(1);
  for (uint64_t id = 1; id <= 200; ++id) stream.Add(JobEvent::Allocate(id, 1 << 20));
  while (stream.events.size() < events) {
    const JobTouch touches[] = {{1 + prng.Below(100), false}, {101 + prng.Below(100), true}};
    stream.Add(JobEvent::Operation(prng.Below(40), touches));
  }
  stream.Finish();
  return stream;
}

double BestNsPerEvent(const Stream& stream, const std::function<void()>& run) {
  double best_ns = 1e300;
  for (int round = 0; round < 3; ++round) {
    const double begin_ns = CpuNs();
    run();
    best_ns = std::min(best_ns, CpuNs() - begin_ns);
  }
  return best_ns / static_cast<double>(stream.events.size());
}

void Measure(const char* name, const Stream& stream) {
  std::shared_ptr<const IterationPattern> pattern;
  int learned = 0;
  const double learner_ns = BestNsPerEvent(stream, [&] {
    IterationLearner learner;
    learned = 0;
    for (const JobEvent& event : stream.events) {
      if (auto found = learner.Add(event)) {
        pattern = std::move(found);
        ++learned;
      }
    }
  });
  std::printf("%-22s %9zu events  learner %6.1f ns/event, %d learned", name, stream.events.size(),
              learner_ns, learned);
  if (pattern != nullptr) {
    int64_t iterations = 0;
    const double follower_ns = BestNsPerEvent(stream, [&] {
      IterationFollower follower(pattern);
      for (const JobEvent& event : stream.events) follower.Observe(event);
      iterations = follower.whole_iterations();
    });
    // Every event of the twin resembles the pattern's, and none matches.
    Stream twin = stream;
    for (JobTouch& touch : twin.touches) touch.allocation += 1'000'000'000;
    for (JobEvent& event : twin.events) event.allocation += 1'000'000'000;
    twin.Finish();
    const double lost_ns = BestNsPerEvent(twin, [&] {
      IterationFollower follower(pattern);
      for (const JobEvent& event : twin.events) follower.Observe(event);
    });
    std::printf(
        ", of %d events; follower %6.1f ns/event, %lld whole iterations, lost %.1f ns/event",
        pattern->size(), follower_ns, static_cast<long long>(iterations), lost_ns);
  }
  std::printf("\n");
}

IterationProfile Network(const char* name) {
  return networks::MakeTrainingStep(*networks::MakeNetwork(name, 2), networks::UpdatePlace::kAtEnd)
      .profile;
}

// Equal layers, with more events than the processor's first cache holds.
IterationProfile LongGpt() {
  const networks::TransformerShape shape{.name = "gpt",
                                         .width = 256,
                                         .heads = 8,
                                         .layers = 200,
                                         .vocabulary = 1000,
                                         .norm_first = true};
  return networks::MakeTrainingStep(networks::Transformer(shape, 2, 64),
                                    networks::UpdatePlace::kAtEnd)
      .profile;
}

}  // namespace

int main(int argument_count, char** arguments) {
  const bool is_quick = argument_count > 1 && std::strcmp(arguments[1], "--quick") == 0;
  const size_t events = is_quick ? 50'000 : 1'000'000;
  for (const char* name : {"vgg16", "resnet152", "bert_base", "gpt2_small"})
    Measure(name, Iterations(Network(name), events));
  Measure("gpt, 200 layers", Iterations(LongGpt(), events));
  Measure("random", Random(events));
}
