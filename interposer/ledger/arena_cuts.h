// Where calls' addresses cut an arena into tensors: how far the memory behind an address reaches.
//
// Pure. The state lock guards it (execute/arenas.h).
//
// Note [Cuts]
// A program that cuts up an allocation itself gives its kernels addresses inside it, and nobody
// tells us how much lies behind one. So a tensor is taken to reach from the address that a call
// names to the next address that any call has named. What does not matter is left out: of each
// part the lowest and the highest named address are kept, so addresses that change with every call
// cost no more than others. While new cuts still come, an address with none behind it stands for
// its own part alone: the tensors behind it were not named yet. Later it reaches to the arena's
// end.
//
// Invariant: an extent begins at the address, ends behind it, and lies in the arena. It is a guess.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "interposer/driver/cuda_abi.h"

namespace spillway::interposer {

class ArenaCuts {
 public:
  // `bytes` may end within the last part.
  ArenaCuts(CUdeviceptr base, size_t bytes, size_t part_bytes)
      : base_(base),
        bytes_(bytes),
        part_bytes_(part_bytes),
        of_part_((bytes + part_bytes - 1) / part_bytes) {}

  // A call names the address, which lies in the arena.
  void Note(CUdeviceptr address) {
    ++uses_;
    OfPart& cuts = of_part_[PartOf(address)];
    if (address >= cuts.lowest && address <= cuts.highest) return;
    cuts.lowest = std::min(cuts.lowest, address);
    cuts.highest = std::max(cuts.highest, address);
    last_cut_at_ = uses_;
  }

  // One past the memory that a call with this address uses.
  CUdeviceptr EndOf(CUdeviceptr address) const {
    const size_t part = PartOf(address);
    if (of_part_[part].highest > address) return EndOfPart(part);
    const auto behind =
        std::find_if(of_part_.begin() + static_cast<std::ptrdiff_t>(part) + 1, of_part_.end(),
                     [](const OfPart& cuts) { return !cuts.empty(); });
    if (behind != of_part_.end()) return behind->lowest;
    return is_settled() ? base_ + bytes_ : EndOfPart(part);
  }

  size_t PartOf(CUdeviceptr address) const { return (address - base_) / part_bytes_; }
  // As many calls again as it took have brought no new cut.
  bool is_settled() const { return uses_ >= 2 * last_cut_at_; }

 private:
  struct OfPart {
    CUdeviceptr lowest = ~CUdeviceptr{0}, highest = 0;
    bool empty() const { return highest == 0; }
  };

  CUdeviceptr EndOfPart(size_t part) const {
    return base_ + std::min(bytes_, (part + 1) * part_bytes_);
  }

  CUdeviceptr base_;
  size_t bytes_, part_bytes_;
  std::vector<OfPart> of_part_;
  std::uint64_t uses_ = 0, last_cut_at_ = 0;
};

}  // namespace spillway::interposer
