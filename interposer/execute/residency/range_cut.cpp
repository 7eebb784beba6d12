#include "interposer/execute/residency/range_cut.h"

namespace spillway::interposer {
namespace {

bool AreNeighbours(const Range* a, const Range* b) { return a->base + a->size_bytes == b->base; }

// A place between chunks: before chunk `chunk` of range `range`.
struct Position {
  size_t range = 0, chunk = 0;
};

size_t TakeChunk(std::span<Range* const> ranges, Position* position) {
  const Chunks& chunks = ranges[position->range]->chunks;
  const size_t bytes = chunks[position->chunk].bytes;
  if (++position->chunk == chunks.size()) *position = {position->range + 1, 0};
  return bytes;
}

// The stretch ends before `end`, which may be the beginning of the range behind its last.
RangeCut CutOf(std::span<Range* const> ranges, Position begin, Position end) {
  if (end.chunk == 0) end = {end.range - 1, ranges[end.range - 1]->chunks.size()};
  return {begin.range, end.range, begin.chunk, end.chunk};
}

// Within one run of neighbours.
std::optional<RangeCut> FindStretch(std::span<Range* const> run, size_t bytes) {
  std::optional<RangeCut> inside;
  Position begin, end;
  size_t sum = 0;
  while (end.range < run.size()) {
    sum += TakeChunk(run, &end);
    while (sum > bytes) sum -= TakeChunk(run, &begin);
    if (sum != bytes) continue;
    const bool is_at_an_end = (begin.range == 0 && begin.chunk == 0) || end.range == run.size();
    if (is_at_an_end) return CutOf(run, begin, end);
    if (!inside) inside = CutOf(run, begin, end);
  }
  return inside;
}

}  // namespace

std::optional<RangeCut> FindCut(std::span<Range* const> ranges, size_t bytes) {
  std::optional<RangeCut> best;
  size_t best_bytes = 0;
  for (size_t begin = 0, end = 0; begin < ranges.size(); begin = end) {
    size_t run_bytes = ranges[begin]->size_bytes;
    for (end = begin + 1; end < ranges.size() && AreNeighbours(ranges[end - 1], ranges[end]); ++end)
      run_bytes += ranges[end]->size_bytes;
    if (run_bytes < bytes || (best && run_bytes >= best_bytes)) continue;
    std::optional<RangeCut> cut = FindStretch(ranges.subspan(begin, end - begin), bytes);
    if (!cut) continue;
    cut->first += begin;
    cut->last += begin;
    best = cut;
    best_bytes = run_bytes;
  }
  return best;
}

}  // namespace spillway::interposer
