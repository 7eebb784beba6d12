// Ranges mapped onto their host copies, where kernels use them over the link.
//
// Called by residency's classes with the state lock held. Decided by Parking, above.
//
// Invariants
//  1. While it is on, every live range has a mapping, and a host copy beside device memory does not
//     count. Uses of a range are not known then: the caller moves mappings only while the device is
//     idle.
//  2. While it is off, a range is parked because a call needed that, or since it was on. Its uses
//     are known like any other's: it loses that mapping after the last of them.
// Errors: false where no host memory can be had or mapped. Then the range is as before.
#pragma once

#include "interposer/execute/residency/host_copies.h"
#include "interposer/execute/residency/mappings.h"
#include "interposer/execute/residency/range_uses.h"
#include "interposer/execute/state/counters.h"

namespace spillway::interposer {

class ParkedRanges {
 public:
  ParkedRanges(Mappings* mappings, HostCopies* copies, RangeUses* uses, Timeline* timeline,
               Counters* counters)
      : mappings_(mappings),
        copies_(copies),
        uses_(uses),
        timeline_(timeline),
        counters_(counters) {}

  bool is_on() const { return is_on_; }
  // Turned on, it parks all evicted ranges. None is leaving. False when one cannot be parked.
  bool Set(bool on, const RangeTable& ranges);

  // From the host.
  bool Park(Range* range);
  // Host memory for a range that is nowhere.
  bool ParkNew(Range* range);
  // For a call, without device memory, until the range is restored.
  bool ParkForCall(Range* range);

  // No call uses the range where it is parked. While it is on, the caller must know that.
  bool MayUnpark(Range* range);
  // Parked, and what must happen before its restore may not be waited for.
  bool StaysParked(Range* range);
  // To the host.
  void Unmap(Range* range);
  // To nowhere: its bytes are lost.
  void Discard(Range* range);

 private:
  Mappings* const mappings_;
  HostCopies* const copies_;
  RangeUses* const uses_;
  Timeline* const timeline_;
  Counters* const counters_;
  bool is_on_ = false;
};

}  // namespace spillway::interposer
