// All recompute records of a job, and which operations are proved repeatable.
//
// Called by the classes behind JobMemory with the state lock held.
//
// Invariants
//  1. A range has at most one record, range->record. Memory that records read knows them by
//     Tracked::readers. Meanwhile the fast paths of both are closed.
//  2. A range in Place::kDropped has a live record.
// Never: launches, moves memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "interposer/execute/state/recompute_record.h"

namespace spillway::interposer {

class RecomputeRecords {
 public:
  bool empty() const { return count_.load(std::memory_order_relaxed) == 0; }

  RecomputeRecord* Keep(std::unique_ptr<RecomputeRecord> record);
  void Forget(const RecomputeRecord* record);
  // The two inputs hold equal bytes: from now on the record reads the second.
  static void Exchange(RecomputeRecord* record, Tracked* from, Tracked* to);
  RecomputeRecord* Find(std::uint64_t id) const;

  using Ids = base::InlineVector<std::uint64_t, 8>;
  static Ids Of(const Tracked* memory);
  Ids All() const;

  enum class Verdict : std::uint8_t { kUnknown, kProved, kRefuted };
  Verdict VerdictOn(std::uint64_t token) const;
  void Judge(std::uint64_t token, Verdict verdict) { verdicts_[token] = verdict; }

  // Of operations that only experiments know, the first drops of each token keep a host copy.
  bool MustInsure(std::uint64_t token) const;
  void Insured(std::uint64_t token) { ++insured_[token]; }  // one was made again, rightly
  void InsureFirst(unsigned drops) { must_insure_ = drops; }

 private:
  using Places = std::vector<std::unique_ptr<RecomputeRecord>>;
  Places::const_iterator PlaceOf(std::uint64_t id) const;

  std::atomic<std::size_t> count_{0};
  Places records_;
  std::unordered_map<std::uint64_t, Verdict> verdicts_;
  // Two iterations of a network of some ten equal layers.
  static constexpr unsigned kInsuredDrops = 24;
  unsigned must_insure_ = kInsuredDrops;
  std::unordered_map<std::uint64_t, unsigned> insured_;  // by token
  std::uint64_t last_id_ = 0;
};

}  // namespace spillway::interposer
