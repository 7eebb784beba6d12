#include "scheduler/learn/period_candidates.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace spillway::scheduler {
namespace {

constexpr uint64_t kBase = 0x9e3779b97f4a7c15u;
constexpr size_t kFirstPlaces = 4096;
constexpr int64_t kCreditPerToken = 16;
constexpr int64_t kMostCredit = int64_t{1} << 20;
constexpr int64_t kMostPaid = 4 * kTokensPerStray;

constexpr uint64_t Power(uint64_t base, int exponent) {
  uint64_t power = 1;
  for (int i = 0; i < exponent; ++i) power *= base;
  return power;
}

}  // namespace

PeriodCandidates::PeriodCandidates(int64_t longest)
    : longest_(longest),
      places_(kFirstPlaces),
      most_places_(std::max(kFirstPlaces, 4 * std::bit_ceil(static_cast<size_t>(longest)))) {
  candidates_.reserve(kMost);
}

void PeriodCandidates::Clear() {
  candidates_.clear();
  begin_ = -1;
}

void PeriodCandidates::Add(const EventHistory& history) {
  if (begin_ < 0) {
    begin_ = history.end() - 1;
    context_hash_ = 0;
  }
  credit_ = std::min(credit_ + kCreditPerToken, kMostCredit);
  Extend(history);
  HashContext(history);
  if (history.end() - begin_ < kContext) return;
  const int64_t last = ExchangePlace(MixToken(1, context_hash_), history.end());
  const int64_t distance = history.end() - last;
  if (last < begin_ + kContext || distance > longest_) return;
  const bool is_known =
      std::any_of(candidates_.begin(), candidates_.end(),
                  [&](const PeriodCandidate& known) { return known.distance == distance; });
  if (!is_known) Propose(distance, RunAt(history, distance));
}

bool PeriodCandidates::Forgive(const EventHistory& history, PeriodCandidate* candidate) const {
  const int64_t position = history.end() - 1;
  const bool are_operations =
      history.kind(position) == JobEventKind::kOperation &&
      history.kind(position - candidate->distance) == JobEventKind::kOperation;
  const bool is_long = candidate->distance >= kShortestWithStrays;
  if (!is_long || !are_operations || candidate->paid < kTokensPerStray) return false;
  candidate->paid -= kTokensPerStray;
  return true;
}

void PeriodCandidates::Extend(const EventHistory& history) {
  const int64_t position = history.end() - 1;
  const uint64_t token = history.token(position);
  std::erase_if(candidates_, [&](PeriodCandidate& candidate) {
    const int64_t before = position - candidate.distance;
    if (before < history.begin()) return true;
    return history.token(before) != token && !Forgive(history, &candidate);
  });
  for (PeriodCandidate& candidate : candidates_) {
    ++candidate.run;
    candidate.paid = std::min(candidate.paid + 1, kMostPaid);
  }
}

void PeriodCandidates::HashContext(const EventHistory& history) {
  context_hash_ = context_hash_ * kBase + history.token(history.end() - 1);
  const int64_t leaves = history.end() - 1 - kContext;
  if (leaves >= std::max(begin_, history.begin()))
    context_hash_ -= history.token(leaves) * Power(kBase, kContext);
}

// Returns where that context last ended; 0: nowhere.
int64_t PeriodCandidates::ExchangePlace(uint64_t hash, int64_t end) {
  if (2 * places_taken_ > places_.size() && places_.size() < most_places_) GrowPlaces();
  Place* const bucket =
      &places_[(static_cast<size_t>(hash >> 20) & (places_.size() / kPlacesPerBucket - 1)) *
               kPlacesPerBucket];
  Place* oldest = bucket;
  for (Place* place = bucket; place < bucket + kPlacesPerBucket; ++place) {
    if (place->hash == hash && place->end != 0) return std::exchange(place->end, end);
    if (place->end < oldest->end) oldest = place;
  }
  places_taken_ += oldest->end == 0 ? 1 : 0;
  *oldest = {hash, end};
  return 0;
}

void PeriodCandidates::GrowPlaces() {
  std::vector<Place> old(4 * places_.size());
  old.swap(places_);
  places_taken_ = 0;
  for (const Place& place : old) {
    if (place.end != 0) ExchangePlace(place.hash, place.end);
  }
}

int64_t PeriodCandidates::RunAt(const EventHistory& history, int64_t distance) {
  int64_t run = 0;
  for (int64_t position = history.end() - 1;
       position - distance >= std::max(begin_, history.begin()); --position) {
    if (run >= distance || credit_ == 0 ||
        history.token(position) != history.token(position - distance))
      break;
    --credit_;
    ++run;
  }
  return run;
}

void PeriodCandidates::Propose(int64_t distance, int64_t run) {
  const PeriodCandidate candidate{.distance = distance,
                                  .run = run,
                                  .paid = std::min(run, kMostPaid),
                                  .compare_at_run = distance};
  if (candidates_.size() < kMost) {
    candidates_.push_back(candidate);
    return;
  }
  const auto shortest =
      std::min_element(candidates_.begin(), candidates_.end(),
                       [](const auto& a, const auto& b) { return a.run < b.run; });
  if (shortest->run < run) *shortest = candidate;
}

}  // namespace spillway::scheduler
