#include "scheduler/learn/iteration_learner.h"

#include <algorithm>

namespace spillway::scheduler {
namespace {

constexpr size_t kMostThreads = 8;
// More than the whole process needs, so that the process's own iteration is claimed first.
constexpr int64_t kRepetitionsOfAThread = 2;

}  // namespace

IterationLearner::IterationLearner(LearnerOptions options)
    : options_(options), all_(options.longest_iteration, 1) {}

void IterationLearner::AddAlive(uint64_t allocation, int64_t size_bytes, int64_t content_bytes) {
  all_.AddForeign(allocation, size_bytes, content_bytes, true);
}

IterationLearner::Pattern IterationLearner::Add(const JobEvent& event) {
  if (event.kind == JobEventKind::kFree)
    ForEach([&](SequenceLearner* sequence) { sequence->Free(event.allocation); });
  if (!HasToken(event.kind)) return nullptr;
  Pattern learned = all_.Add(event, true);
  const Pattern of_thread = AddToThreads(event);
  return learned ? learned : of_thread;
}

IterationLearner::Pattern IterationLearner::AddToThreads(const JobEvent& event) {
  if (!first_thread_) first_thread_ = event.thread;
  if (threads_.empty() && event.thread == *first_thread_) return nullptr;
  Thread* const own = FindThread(event.thread);
  if (event.kind == JobEventKind::kAllocate) {
    for (Thread& other : threads_) {
      if (&other == own) continue;
      other.sequence->AddForeign(event.allocation, event.size_bytes, event.content_bytes, false);
    }
  }
  if (own == nullptr) return nullptr;
  AddOlderAllocations(event, own);
  const bool does_most = std::all_of(threads_.begin(), threads_.end(), [&](const Thread& other) {
    return other.sequence->events() <= own->sequence->events() + 1;
  });
  return own->sequence->Add(event, does_most && !all_.is_following());
}

void IterationLearner::AddOlderAllocations(const JobEvent& event, Thread* to) {
  for (const JobTouch& touch : event.touches) {
    const KnownAllocation* const known = all_.Find(touch.allocation);
    if (known != nullptr && to->sequence->Find(touch.allocation) == nullptr)
      to->sequence->AddForeign(touch.allocation, known->size_bytes, known->content_bytes, true);
  }
}

IterationLearner::Thread* IterationLearner::FindThread(uint32_t number) {
  for (Thread& thread : threads_) {
    if (thread.number == number) return &thread;
  }
  if (threads_.size() == kMostThreads) return nullptr;
  threads_.push_back({number, std::make_unique<SequenceLearner>(options_.longest_iteration,
                                                                kRepetitionsOfAThread)});
  return &threads_.back();
}

void IterationLearner::AddGap() {
  ForEach([](SequenceLearner* sequence) { sequence->AddGap(); });
}

std::vector<IterationLearner::Pattern> IterationLearner::Patterns() const {
  std::vector<Pattern> patterns = all_.known().Patterns();
  for (const Thread& thread : threads_) {
    for (Pattern& pattern : thread.sequence->known().Patterns())
      patterns.push_back(std::move(pattern));
  }
  if (patterns.size() > kMostPatterns) patterns.resize(kMostPatterns);
  return patterns;
}

}  // namespace spillway::scheduler
