#include "interposer/planning/stored_iterations.h"

#include <algorithm>
#include <utility>

namespace spillway::interposer {
namespace {

using scheduler::IterationPattern;

// A stored iteration is recognised after this many of its events.
constexpr std::int64_t kLeastRecognised = 8;
constexpr std::int64_t kRecognisedShare = 2;
// It is given up after this multiple of its events.
constexpr std::int64_t kPatience = 4;

}  // namespace

void StoredIterations::Begin(std::vector<scheduler::StoredPlan> plans) {
  for (scheduler::StoredPlan& stored : plans) {
    auto pattern = std::make_shared<const IterationPattern>(stored.pattern);
    candidates_.push_back({std::move(stored), pattern, scheduler::IterationFollower(pattern)});
  }
}

std::optional<StoredIterations::Recognised> StoredIterations::Observe(
    const scheduler::JobEvent& event) {
  if (scheduler::HasToken(event.kind)) ++events_;
  for (Candidate& candidate : candidates_) {
    if (!IsRecognised(&candidate, event)) continue;
    Recognised recognised = AsOfThisProcess(std::move(candidate));
    candidates_.clear();
    return recognised;
  }
  std::erase_if(candidates_, [this](const Candidate& candidate) {
    return events_ > kPatience * candidate.pattern->size();
  });
  return std::nullopt;
}

bool StoredIterations::IsRecognised(Candidate* candidate, const scheduler::JobEvent& event) {
  const scheduler::Followed followed = candidate->follower.Observe(event);
  if (followed.began_iteration) candidate->recognised = 0;
  if (followed.position >= 0) ++candidate->recognised;
  const std::int64_t wanted =
      std::max(kLeastRecognised, std::int64_t{candidate->pattern->size()} / kRecognisedShare);
  return followed.position >= 0 && candidate->recognised >= wanted;
}

StoredIterations::Recognised StoredIterations::AsOfThisProcess(Candidate candidate) {
  auto pattern = std::make_shared<IterationPattern>(*candidate.pattern);
  for (std::size_t i = 0; i < pattern->buffers.size(); ++i) {
    if (pattern->buffers[i].persistent)
      pattern->buffers[i].allocation =
          candidate.follower.AllocationOf(static_cast<std::int32_t>(i));
  }
  return {std::move(candidate.stored), std::move(pattern)};
}

bool StoredIterations::MayContain(const IterationPattern& pattern) const {
  return std::any_of(candidates_.begin(), candidates_.end(), [&](const Candidate& candidate) {
    return scheduler::Contains(*candidate.pattern, pattern);
  });
}

}  // namespace spillway::interposer
