#include "interposer/execute/state/recompute_records.h"

#include <algorithm>
#include <utility>

#include "interposer/execute/state/ordering_rules.h"

namespace spillway::interposer {
namespace {

void EndReading(Tracked* memory, const RecomputeRecord* record) {
  memory->readers.EraseIf([record](const RecomputeRecord* reader) { return reader == record; });
}

}  // namespace

RecomputeRecord* RecomputeRecords::Keep(std::unique_ptr<RecomputeRecord> record) {
  record->id = ++last_id_;
  record->output->record = record.get();
  if (ordering_rules::kRecordsCloseFastPaths) record->output->fast_path.Close();
  for (Tracked* input : record->inputs) {
    input->readers.push_back(record.get());
    if (ordering_rules::kRecordsCloseFastPaths) input->fast_path.Close();
  }
  records_.push_back(std::move(record));
  count_.store(records_.size(), std::memory_order_relaxed);
  return records_.back().get();
}

// Fast paths reopen with the next call that names the memory and takes the lock.
void RecomputeRecords::Forget(const RecomputeRecord* record) {
  const auto at = PlaceOf(record->id);
  record->output->record = nullptr;
  for (Tracked* input : record->inputs) EndReading(input, record);
  records_.erase(at);
  count_.store(records_.size(), std::memory_order_relaxed);
}

void RecomputeRecords::Exchange(RecomputeRecord* record, Tracked* from, Tracked* to) {
  std::replace(record->inputs.begin(), record->inputs.end(), from, to);
  EndReading(from, record);
  to->readers.push_back(record);
  to->fast_path.Close();
}

RecomputeRecords::Places::const_iterator RecomputeRecords::PlaceOf(std::uint64_t id) const {
  return std::lower_bound(
      records_.begin(), records_.end(), id,
      [](const auto& known, std::uint64_t wanted) { return known->id < wanted; });
}

RecomputeRecord* RecomputeRecords::Find(std::uint64_t id) const {
  const auto at = PlaceOf(id);
  return at == records_.end() || (*at)->id != id ? nullptr : at->get();
}

RecomputeRecords::Ids RecomputeRecords::Of(const Tracked* memory) {
  Ids ids;
  const RecomputeRecord* const its_own =
      IsBlock(memory) ? nullptr : static_cast<const Range*>(memory)->record;
  if (its_own) ids.push_back(its_own->id);
  for (const RecomputeRecord* reader : memory->readers) ids.push_back(reader->id);
  return ids;
}

RecomputeRecords::Ids RecomputeRecords::All() const {
  Ids ids;
  for (const auto& record : records_) ids.push_back(record->id);
  return ids;
}

RecomputeRecords::Verdict RecomputeRecords::VerdictOn(std::uint64_t token) const {
  const auto at = verdicts_.find(token);
  return at == verdicts_.end() ? Verdict::kUnknown : at->second;
}

bool RecomputeRecords::MustInsure(std::uint64_t token) const {
  const auto at = insured_.find(token);
  return (at == insured_.end() ? 0 : at->second) < must_insure_;
}

}  // namespace spillway::interposer
