// What launches of kernels that nobody documents do to the memory that they name, as seen.
//
// Called by the classes behind JobMemory with the state lock held.
//
// Note [Learned effects]
// A kernel's effect is measured, never believed. An *exact kind* is a function with dimensions, the
// sizes of what it names, and every parameter byte that is read and no address. In the first
// experiment (observe) fingerprints before and after a launch say which memory it changed. A launch
// that changed only memory without content (fresh since its allocation) may be repeated: behind it,
// once it has shown to have changed nothing else itself, and over its output filled with a pattern
// (repeat_proofs.h). Equal results mean that it overwrites the output whole, reads none of its old
// bytes, and repeats itself. Learned roles are hints. They keep host copies that a fingerprint
// checks before they count as clean, and records across reads that a fingerprint checks as well
// (presumed_reads.h); they let records begin whose replays are checked. They never make old bytes
// dead. Exact kinds of one function may differ in a number that changes with each launch, such as a
// random offset. So after some of its exact kinds were proved, and none refuted, the others count
// as proved. Their replays are checked like all. Plans know a token alone (scheduler::TokenOf).
//
// Invariants
//  1. Roles stand in the order in which a launch names its memory (launch_kind.h).
//  2. A token without a proved exact kind is never proved.
// Never: launches, reads memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <unordered_map>

#include "base/inline_vector.h"
#include "interposer/ledger/claims.h"

namespace spillway::interposer {

struct LaunchKind {
  std::uint64_t token = 0;
  std::uint64_t family = 0;  // the token and the function: two may have one name
  std::uint64_t exact = 0;
};

struct LearnedRole {
  Role role = Role::kReadsAndWrites;
  bool is_range = false;  // otherwise a small allocation, which plans do not know

  bool operator==(const LearnedRole&) const = default;
};
using LearnedRoles = base::InlineVector<LearnedRole, 8>;

class LaunchEffects {
 public:
  // What experiments have shown of an exact kind, in this order.
  enum class Stage : std::uint8_t {
    kUnseen,
    kObserved,  // what it changes
    kProved,    // that it makes the same bytes over other old ones
  };
  struct Effect {
    Stage stage = Stage::kUnseen;
    bool is_final = false;  // no further experiment
    bool is_under_way = false;
    bool is_noted = false;         // as not to be repeated (unrepeated_kernels.h)
    bool reads_constants = false;  // perhaps: its module has some
    unsigned tries = 0;
    LearnedRoles roles;
  };

  // Any thread: whether nothing was learned so far.
  bool empty() const { return count_.load(std::memory_order_relaxed) == 0; }

  // The effect for an experiment to fill in. Null where the kind needs none.
  Effect* ForExperiment(const LaunchKind& kind);
  Effect* Find(const LaunchKind& kind);
  void Learned(const LaunchKind& kind);

  // What a launch of the kind that names so many allocations is expected to do; null: unknown.
  const Effect* Expected(const LaunchKind& kind, std::size_t named) const;
  // A replay of the token made other bytes: none of its kinds is proved any more.
  void Refute(std::uint64_t token);
  // Functions are being unloaded: their handles may become others'.
  void Forget();
  // Of the ranges of all its launches; empty: unknown.
  LearnedRoles RangeRolesOf(std::uint64_t token) const;
  bool IsProved(std::uint64_t token) const;

 private:
  static constexpr unsigned kMostExactKinds = 4;  // that get experiments
  struct Family {
    base::InlineVector<std::uint64_t, kMostExactKinds> exact_kinds;
    std::uint64_t token = 0;
    unsigned proved = 0, refuted = 0;
    bool is_refuted = false;  // as a whole
    Effect merged;            // of those that were observed
  };
  void Merge(Family* family);
  template <class Visit>
  void ForEachFamilyOf(std::uint64_t token, Visit visit) const;

  std::atomic<std::size_t> count_{0};
  std::unordered_map<std::uint64_t, Effect> effects_;
  std::unordered_map<std::uint64_t, Family> families_;
  std::unordered_multimap<std::uint64_t, std::uint64_t> families_of_;
};

}  // namespace spillway::interposer
