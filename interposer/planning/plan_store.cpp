#include "interposer/planning/plan_store.h"

#include <stdio.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/units.h"

namespace spillway::interposer {
namespace {

constexpr std::int64_t kMostFileBytes = std::int64_t{64} << 20;
constexpr std::int64_t kStaleNs = std::int64_t{3600} * base::kNanosPerSecond;

base::Result<StoredPlan> Parse(const std::string& bytes) {
  return scheduler::Decode(std::as_bytes(std::span(bytes)));
}

std::string PrefixOf(std::uint64_t job) { return base::FileStore::PrefixOf({&job, 1}); }

}  // namespace

PlanStore::PlanStore(std::string folder, std::int64_t most_bytes)
    : files_(std::move(folder), {.ending = ".plan", .most_file_bytes = kMostFileBytes}),
      most_bytes_(most_bytes),
      works_(!files_.folder().empty()) {}

bool PlanStore::Has(std::uint64_t job) const {
  return works_ && !files_.List(PrefixOf(job)).empty();
}

std::vector<StoredPlan> PlanStore::Find(std::uint64_t job) const {
  std::vector<StoredPlan> found;
  if (!works_) return found;
  for (const base::FileStore::Entry& entry : files_.List(PrefixOf(job))) {
    base::Result<StoredPlan> plan = files_.Read(entry.name, Parse);
    if (!plan) {
      fprintf(stderr, "spillway: %s\n", plan.text().c_str());
      continue;
    }
    found.push_back(*std::move(plan));
    if (found.size() == kMostFound) break;
  }
  return found;
}

void PlanStore::NoteUse(std::uint64_t job, std::uint64_t fingerprint) const {
  if (works_) files_.MarkUsed(files_.NameOf(std::array{job, fingerprint}));
}

void PlanStore::Keep(std::uint64_t job, const StoredPlan& plan) {
  if (!works_) return;
  const std::vector<std::byte> encoded = Encode(plan);
  if (static_cast<std::int64_t>(encoded.size()) > std::min(most_bytes_, kMostFileBytes)) return;
  const std::string_view bytes(reinterpret_cast<const char*>(encoded.data()), encoded.size());
  const base::Status written =
      files_.Write(files_.NameOf(std::array{job, plan.pattern.fingerprint}), bytes);
  works_ = written.ok();
  if (works_) {
    files_.RemoveUnfinished(kStaleNs);
    files_.RemoveLongestUnused(most_bytes_);
  } else {
    fprintf(stderr, "spillway: %s: %s; plans of this run are not kept\n", files_.folder().c_str(),
            written.error().why.c_str());
  }
}

}  // namespace spillway::interposer
