// A caching allocator in miniature: large segments from the driver, tensors carved out of them,
// nothing given back. Or one segment for everything, as programs have it that plan their memory
// themselves.
//
// Used by: ArenaAllocator, on the main thread.
// Ownership: the arena owns its segments until it is destroyed; callers own blocks between allocate
// and free. Invariants
//  1. A segment is tiled by its blocks without gaps; two neighbouring blocks are never both free.
//  2. Blocks up to 1 MiB live in segments of 2 MiB, those below 4 MiB in segments of 8 MiB, larger
//  ones
//     have a segment of their own, rounded up to 2 MiB, which serves later requests of about its
//     size.
//     With one segment for everything, requests beyond it fail.
//  3. A request takes the smallest free block of its class that fits, at the lowest address among
//  equals of
//     one segment's age: the choice follows from the sequence of requests alone.
// Never does: call the driver while a cached block fits.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "check.cuh"

namespace workloads {

class Arena {
 public:
  // `whole_bytes`: of the one segment; 0: as many as it takes.
  explicit Arena(std::size_t whole_bytes) : whole_bytes_(whole_bytes) {
    if (whole_bytes > 0) add_segment(kMedium, whole_bytes);
  }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena() {
    for (const Segment& segment : segments_) CHECK(cudaFree(segment.base));
  }

  void* allocate(std::size_t size_bytes) {
    const std::size_t rounded_bytes = round_up(size_bytes == 0 ? 1 : size_bytes, kBlockBytes);
    const SizeClass size_class = whole_bytes_ > 0 ? kMedium : class_of(rounded_bytes);
    auto found = free_[size_class].lower_bound(Key{rounded_bytes, 0, 0});
    if (found == free_[size_class].end() ||
        wasteful(size_class, found->size_bytes, rounded_bytes)) {
      if (whole_bytes_ > 0) fail(1, "--arena=%zu is too small", whole_bytes_);
      add_segment(size_class, rounded_bytes);
      found = free_[size_class].lower_bound(Key{rounded_bytes, 0, 0});
    }
    return take(*found, rounded_bytes);
  }

  void free(void* address) {
    const auto used = used_.find(address);
    Block block = used->second;
    used_.erase(used);
    merge_with_neighbours(&block);
    insert_free(block);
  }

  std::size_t reserved_bytes() const { return reserved_bytes_; }

 private:
  enum SizeClass { kSmall, kMedium, kLarge, kClasses };

  struct Segment {
    char* base;
    std::size_t size_bytes;
    SizeClass size_class;
  };
  struct Block {
    int segment;
    std::size_t offset_bytes;
    std::size_t size_bytes;
  };
  struct Key {
    std::size_t size_bytes;
    int segment;
    std::size_t offset_bytes;
    bool operator<(const Key& other) const {
      return std::tie(size_bytes, segment, offset_bytes) <
             std::tie(other.size_bytes, other.segment, other.offset_bytes);
    }
  };
  using Place = std::pair<int, std::size_t>;  // segment, offset

  static constexpr std::size_t kBlockBytes = 512;
  static constexpr std::size_t kSmallBytes = 1 << 20, kSmallSegmentBytes = 2 << 20;
  static constexpr std::size_t kMediumBytes = 4 << 20, kMediumSegmentBytes = 8 << 20;
  static constexpr std::size_t kLargeRoundingBytes = 2 << 20;

  static std::size_t round_up(std::size_t value, std::size_t multiple) {
    return (value + multiple - 1) / multiple * multiple;
  }
  static SizeClass class_of(std::size_t size_bytes) {
    return size_bytes <= kSmallBytes ? kSmall : size_bytes < kMediumBytes ? kMedium : kLarge;
  }

  // A large segment is not split, so one much larger than the request stays for a request of its
  // own size.
  static bool wasteful(SizeClass size_class, std::size_t block_bytes, std::size_t wanted_bytes) {
    return size_class == kLarge &&
           block_bytes > round_up(wanted_bytes, kLargeRoundingBytes) + wanted_bytes / 4;
  }

  void add_segment(SizeClass size_class, std::size_t wanted_bytes) {
    const std::size_t sizes_bytes[kClasses] = {
        kSmallSegmentBytes, whole_bytes_ > 0 ? whole_bytes_ : kMediumSegmentBytes,
        round_up(wanted_bytes, kLargeRoundingBytes)};
    void* base = nullptr;
    CHECK(cudaMalloc(&base, sizes_bytes[size_class]));
    segments_.push_back({static_cast<char*>(base), sizes_bytes[size_class], size_class});
    reserved_bytes_ += sizes_bytes[size_class];
    insert_free({static_cast<int>(segments_.size()) - 1, 0, sizes_bytes[size_class]});
  }

  void* take(Key key, std::size_t size_bytes) {
    Block block{key.segment, key.offset_bytes, key.size_bytes};
    erase_free(block);
    const Segment& segment = segments_[static_cast<std::size_t>(block.segment)];
    if (segment.size_class != kLarge && block.size_bytes > size_bytes) {
      insert_free({block.segment, block.offset_bytes + size_bytes, block.size_bytes - size_bytes});
      block.size_bytes = size_bytes;
    }
    void* address = segment.base + block.offset_bytes;
    used_.emplace(address, block);
    return address;
  }

  void merge_with_neighbours(Block* block) {
    const auto after = free_at_.find({block->segment, block->offset_bytes + block->size_bytes});
    if (after != free_at_.end()) {
      const Block next{block->segment, after->first.second, after->second};
      erase_free(next);
      block->size_bytes += next.size_bytes;
    }
    const auto following = free_at_.lower_bound({block->segment, block->offset_bytes});
    if (following == free_at_.begin()) return;
    const auto before = std::prev(following);
    const Block previous{before->first.first, before->first.second, before->second};
    if (previous.segment != block->segment) return;
    if (previous.offset_bytes + previous.size_bytes != block->offset_bytes) return;
    erase_free(previous);
    block->offset_bytes = previous.offset_bytes;
    block->size_bytes += previous.size_bytes;
  }

  void insert_free(const Block& block) {
    free_[segments_[static_cast<std::size_t>(block.segment)].size_class].insert(
        Key{block.size_bytes, block.segment, block.offset_bytes});
    free_at_.emplace(Place{block.segment, block.offset_bytes}, block.size_bytes);
  }

  void erase_free(const Block& block) {
    free_[segments_[static_cast<std::size_t>(block.segment)].size_class].erase(
        Key{block.size_bytes, block.segment, block.offset_bytes});
    free_at_.erase({block.segment, block.offset_bytes});
  }

  const std::size_t whole_bytes_;
  std::vector<Segment> segments_;
  std::set<Key> free_[kClasses];
  std::map<Place, std::size_t> free_at_;
  std::unordered_map<void*, Block> used_;
  std::size_t reserved_bytes_ = 0;
};

}  // namespace workloads
