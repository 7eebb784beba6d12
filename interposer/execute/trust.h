// Whether evicted memory may be left without a mapping: what is known of how this job's kernels come by their addresses.
//
// Called by job_memory with the state lock held. Pure: counts and findings in, decisions out.
//
// Note [Trust]
// A kernel reaches memory by its parameters, which are scanned, or by addresses that lie in memory. Those that copies
// put there are known (ledger/contents.h); those that kernels put there are not, until the memory is looked through (a
// census, execute/census.h). So a job is unproven at first: what is evicted is parked, that is its addresses are mapped
// onto the host copy, and mappings change only while the device is idle. In that state nothing can go wrong, however
// kernels come by their addresses. A census that finds only addresses that copies explain, made when no kernel was new
// for a while, proves the job: then evicted memory loses its mapping and moves while kernels run. A kernel that is seen
// for the first time, or a copy whose payload cannot be known, makes the job unproven again before it runs. A census that
// finds an address that no copy explains makes it opaque for good: its kernels build structures of their own.
//
// Where memory cannot be parked, an unproven job evicts only after a census, and an opaque one not at all. A user who
// turns parking off vouches for the job: it counts as proven, and what copies put into memory is still followed.
//
// Invariants
//  1. Opaque is for ever. A job that parks by choice is never proven.
//  2. A proven job has passed a census after which no kernel was new.
#pragma once

#include <cstdint>

namespace spillway::interposer {

// What the user chose (SPILLWAY_PARK).
enum class ParkChoice : std::uint8_t { kAuto, kHost, kOff };

enum class Opacity : std::uint8_t {
  kNone,
  kUnexplainedAddress,  // memory holds an address that no copy put there
  kTooManyAddresses,    // copies put more addresses into memory than are kept
  kDeviceHeap,          // kernels allocate memory of their own
  kReachesTooMuch,      // a launch can reach more than half of the budget through pointers in memory
  kExceedsBudget,       // a call names more memory than the budget holds
};

// What follows from all that, for the report; the worse the later.
enum class Standing : std::uint8_t {
  kVouched,   // the user has turned parking off
  kProven,    // evicted memory has no mapping
  kUnproven,  // nothing was evicted yet, or evicted memory is parked until a census
  kOpaque,    // evicted memory is parked for good: there is evidence, or the user chose that
  kStays,     // nothing is evicted
};

const char* NameOf(Standing standing);
const char* NameOf(Opacity opacity);  // a sentence's end; empty for none

class Trust {
 public:
  Trust(ParkChoice choice, bool can_park) : choice_(choice), can_park_(can_park) {}

  // What is evicted stays mapped, and mappings change only while the device is idle.
  bool MustPark() const { return MayPark() && !proven_; }
  // Memory on the host can take the place of memory on the device where a kernel looks for it.
  bool MayPark() const { return can_park_ && choice_ != ParkChoice::kOff; }
  // Nothing that is on the device may leave.
  bool MustStay() const {
    if (can_park_ || choice_ == ParkChoice::kOff) return false;
    return choice_ == ParkChoice::kHost || opacity_ != Opacity::kNone;
  }
  // Mappings do not change while the device is busy, whatever it costs.
  bool MustWait() const { return MustPark() && (choice_ == ParkChoice::kHost || opacity_ != Opacity::kNone); }
  // The driver has refused memory that can be mapped.
  void CannotPark() { can_park_ = false; }
  bool IsProven() const { return proven_; }
  Standing standing() const;
  Opacity opacity() const { return opacity_; }

  // Something was enqueued of which it is not known what addresses it reads or writes. True when the job was proven
  // until now: then what is away must be mapped before the call is made.
  bool SomethingNew() {
    is_new_ = true;
    const bool was_proven = proven_;
    proven_ = false;
    return was_proven;
  }
  // What is granted beyond the budget could not be used if the first census says that nothing may leave: it comes before.
  bool MustAskBeforeGranting() const {
    return choice_ == ParkChoice::kAuto && !can_park_ && !proven_ && opacity_ == Opacity::kNone;
  }
  // Whether to look through memory now that the device is idle and something is about to be evicted.
  bool WantsCensus(std::uint64_t launches);
  // The census is over; it found an address that nothing explains, or none.
  void CensusMade(std::uint64_t launches, bool found_address);
  void Opaque(Opacity why) {
    if (opacity_ == Opacity::kNone) opacity_ = why;
    proven_ = false;
  }

 private:
  // So many launches without a new kernel before a census is worth its price.
  static constexpr std::uint64_t kSettledLaunches = 64;

  const ParkChoice choice_;
  bool can_park_;
  Opacity opacity_ = Opacity::kNone;
  bool proven_ = false;
  bool is_new_ = true;
  std::uint64_t new_at_launch_ = 0;     // the launches when something new was last taken note of
  std::uint64_t census_at_launch_ = 0;  // a proven job's next
};

}  // namespace spillway::interposer
