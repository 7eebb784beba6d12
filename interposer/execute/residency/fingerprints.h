// Fingerprints of device memory: 128 bits of a keyed hash, computed on the device at about the
// speed of its memory.
//
// Called by execute with the job's state lock held; owns a kernel, its accumulators' content and
// pinned memory for results. What is computed: base/fingerprint_kernel.h.
//
// Invariants
//  1. Equal bytes have equal fingerprints, at any address. The length counts.
//  2. Different bytes have different fingerprints, except by accident. That is heuristic: against
//     contents that do not depend on the key, two fingerprints agree with a probability of about
//     2^-128, as if both halves were random functions. It is not proven: a half is a sum of folded
//     products (as in wyhash), which has no known bound. A product whose one factor meets its key
//     (2^-64 per word and half) does not show its other factor. The key is of getrandom, new in
//     each process, and not secret from kernels that read the parameters of others. So fingerprints
//     detect what programs do, not what an attacker in the job's own process makes of them.
//  3. Memory of a slot has one writer: at most one unfinished Compute writes to it, and none reads
//     it as `expected` unless stream order or events separate them.
//  4. Reads only aligned 16-byte words that hold a byte of the piece.
// Never: waits, except that Prepare loads a module: the driver compiles it, and may synchronise the
// context (CUDA C++ Programming Guide, "Lazy Loading"). So call it early.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/fingerprint_kernel.h"
#include "interposer/driver/cuda_abi.h"

namespace spillway::interposer {

struct Fingerprint {
  std::uint64_t words[2];
  bool operator==(const Fingerprint&) const = default;
};

class Fingerprints {
 public:
  using Slot = std::uint32_t;  // a place for one fingerprint
  static constexpr Slot kNoSlot = ~Slot{0};
  using Key = fingerprint_kernel::Key;

  // Any alignment and length. `expected` may be `to`: then the former fingerprint is compared.
  struct Piece {
    CUdeviceptr begin;
    std::size_t bytes;
    Slot to;
    Slot expected = kNoSlot;
  };

  Fingerprints() = default;
  explicit Fingerprints(const Key& key) : key_(key), has_key_(true) {}
  Fingerprints(const Fingerprints&) = delete;
  Fingerprints& operator=(const Fingerprints&) = delete;

  // The accumulators are device memory that nobody else uses, a multiple of 64 bytes, zeroed here.
  // They limit the number of slots: 64 bytes each. Loads the kernel into the current context.
  // False: the driver refuses; then nothing below may be used, and a later call may try again.
  bool Prepare(CUdeviceptr accumulators, std::size_t bytes);
  bool is_ready() const { return function_ != nullptr; }
  // Gives all but the accumulators back. No work may be in flight.
  void Release();

  Slot TakeSlot();  // kNoSlot when all are taken
  // No work in flight may use it any more.
  void GiveSlot(Slot slot) { free_slots_.push_back(slot); }

  // Enqueues one launch, more only beyond fingerprint_kernel::kMostPieces pieces: each piece's
  // fingerprint, and whether it differs from that in `expected` as of then. The stream must not be
  // capturing.
  bool Compute(CUstream stream, std::span<const Piece> pieces);

  // Once the work is complete.
  Fingerprint Read(Slot slot) const;
  bool Differs(Slot slot) const;  // the comparison of the last Compute into it
  // How many comparisons differed since the start; never falls. One load from pinned memory.
  std::uint32_t Mismatches() const;

 private:
  using Launch = fingerprint_kernel::Launch;
  using HostRecord = fingerprint_kernel::HostRecord;

  bool TakeKey();
  bool LoadKernel();
  bool MakeResults(std::size_t count);
  bool ZeroAccumulators(std::size_t bytes);
  void WaitForZeroes(CUstream stream);
  bool LaunchSome(CUstream stream, std::span<const Piece> pieces);

  Key key_{};
  bool has_key_ = false;
  CUmodule module_ = nullptr;
  CUfunction function_ = nullptr;
  CUdeviceptr accumulators_ = 0;
  volatile HostRecord* results_ = nullptr;  // pinned; record slot + 1, as the kernel numbers them
  CUdeviceptr results_on_device_ = 0;
  CUstream zeroing_ = nullptr;  // ours, non-blocking
  CUevent zeroed_ = nullptr;    // null: known to be complete
  std::vector<Slot> free_slots_;
};

}  // namespace spillway::interposer
