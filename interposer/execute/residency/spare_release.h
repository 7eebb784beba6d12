// Without a budget, memory that no allocation has goes back to the device, where others may need
// it. How much is kept is spare_memory.h's decision.
//
// Called by residency and eviction with the state lock held. Off until TurnOn: with a budget, the
// job keeps what it holds. Never: waits.
#pragma once

#include "interposer/driver/chunk_pool.h"
#include "interposer/execute/residency/freed_memory.h"
#include "interposer/execute/residency/spare_memory.h"
#include "interposer/execute/state/counters.h"

namespace spillway::interposer {

class SpareRelease {
 public:
  SpareRelease(ChunkPool* chunks, FreedMemory* freed, const Counters* counters)
      : chunks_(chunks), freed_(freed), counters_(counters) {}

  // Before the first allocation.
  void TurnOn() { is_on_ = true; }

  // The program frees in the order of a stream, so its memory is a pool's. The driver's pools keep
  // freed memory, too: more may be held.
  void NotePooled() { is_pooled_ = true; }

  // Before memory for an allocation is taken: lets freed ranges of other sizes serve it.
  void BeforeTaking(size_t bytes);
  // After it: so much was held before.
  void Took(size_t held_before_bytes);
  // An allocation was made. Not all of it is in use yet.
  void NoteAllocation(size_t bytes);
  // After a free (not after each) or a wait: gives back idle memory beyond what is kept.
  enum class After : bool { kFree, kWait };
  void GiveBack(After after);
  // Whether an allocation would get new memory although much freed memory is busy.
  bool MustAwait(size_t bytes);
  bool IsMoreThanKept(size_t unused_bytes) const { return unused_bytes > spare_.keep_bytes(); }

 private:
  size_t UnusedBytes() const;
  void RetireBeforeCreating(size_t bytes);
  bool WouldHoldTooMuch(size_t bytes, size_t more_bytes) const;
  bool Release();

  ChunkPool* const chunks_;
  FreedMemory* const freed_;
  const Counters* const counters_;
  bool is_on_ = false;
  bool is_pooled_ = false;
  SpareMemory spare_;
  int pause_ = 0;  // calls until the next try to give back what was busy
};

}  // namespace spillway::interposer
