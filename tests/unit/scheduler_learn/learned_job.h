// A network's job with its pattern learned and a follower, for tests that follow events.
#pragma once

#include <memory>
#include <vector>

#include "scheduler/learn/iteration_follower.h"
#include "scheduler/learn/iteration_learner.h"
#include "scheduler/networks/catalog.h"
#include "scheduler/networks/training_step.h"
#include "tests/unit/scheduler_learn/network_job.h"

namespace spillway::scheduler::testing {

inline IterationProfile SmallGpt(int layers, int64_t sequence = 64) {
  const networks::TransformerShape shape{.name = "gpt",
                                         .width = 128,
                                         .heads = 4,
                                         .layers = layers,
                                         .vocabulary = 1000,
                                         .norm_first = true};
  return networks::MakeTrainingStep(networks::Transformer(shape, 2, sequence),
                                    networks::UpdatePlace::kAtEnd)
      .profile;
}

// An event that keeps its own touches.
struct KeptEvent {
  JobEvent event;
  std::vector<JobTouch> touches;

  explicit KeptEvent(const JobEvent& of)
      : event(of), touches(of.touches.begin(), of.touches.end()) {}
  JobEvent Get() const {
    JobEvent copy = event;
    copy.touches = touches;
    return copy;
  }
};

// The last pattern learned from `iterations` of a job, and the events of later iterations.
struct LearnedJob {
  IterationLearner learner;
  std::shared_ptr<const IterationPattern> pattern;
  std::vector<KeptEvent> events;
  bool keeps = false;
  NetworkJob job;

  explicit LearnedJob(IterationProfile profile, Habits habits = {})
      : job(std::move(profile), habits, [this](const JobEvent& event) {
          if (auto learned = learner.Add(event)) pattern = std::move(learned);
          if (keeps) events.emplace_back(event);
        }) {
    job.SetUp();
    for (int i = 0; i < 4; ++i) job.Iterate();
    keeps = true;
  }
  std::vector<KeptEvent> Next() {
    events.clear();
    job.Iterate();
    return std::move(events);
  }
};

}  // namespace spillway::scheduler::testing
