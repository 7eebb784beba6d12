#include "tests/bench/planner/pieces.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace spillway::papers {

using namespace scheduler;

namespace {

bool BelongsToSamples(const Buffer& buffer) {
  return !buffer.persistent &&
         (buffer.kind == BufferKind::kActivation || buffer.kind == BufferKind::kAuxiliary ||
          buffer.kind == BufferKind::kGradient);
}

class Cutting {
 public:
  Cutting(const IterationProfile& whole, int32_t pieces) : whole_(whole), pieces_(pieces) {}

  IterationProfile Run() {
    for (const Buffer& buffer : whole_.buffers) CutBuffer(buffer);
    for (const Operation& operation : whole_.operations) CutOperation(operation);
    SetLifetimesToTouches(result_);
    result_.name = whole_.name;
    result_.batch_size = whole_.batch_size;
    return std::move(result_);
  }

 private:
  bool IsCut(BufferId id) const { return BelongsToSamples(whole_.at(id)); }

  BufferId PieceOf(BufferId id, int32_t piece) const {
    return {first_of_[static_cast<size_t>(id.index)] + (IsCut(id) ? piece : 0)};
  }

  void CutBuffer(const Buffer& buffer) {
    first_of_.push_back(static_cast<int32_t>(result_.buffers.size()));
    Buffer piece = buffer;
    const int32_t count = BelongsToSamples(buffer) ? pieces_ : 1;
    piece.size_bytes = std::max<int64_t>(1, buffer.size_bytes / count);
    for (int32_t i = 0; i < count; ++i) result_.buffers.push_back(piece);
  }

  void CutOperation(const Operation& operation) {
    const auto is_cut = [&](BufferId id) { return IsCut(id); };
    const bool any = std::any_of(operation.reads.begin(), operation.reads.end(), is_cut) ||
                     std::any_of(operation.writes.begin(), operation.writes.end(), is_cut);
    const int32_t count = any ? pieces_ : 1;
    for (int32_t i = 0; i < count; ++i) result_.operations.push_back(PieceOf(operation, i, count));
  }

  Operation PieceOf(const Operation& operation, int32_t index, int32_t count) const {
    Operation piece = operation;
    piece.duration_ns /= count;
    for (WorkspaceChoice& choice : piece.workspaces) {
      choice.duration_ns /= count;
      choice.size_bytes /= count;
    }
    for (BufferId& id : piece.reads) id = PieceOf(id, index);
    for (BufferId& id : piece.writes) {
      const bool adds = index > 0 && !IsCut(id);
      id = PieceOf(id, index);
      if (!adds) continue;
      piece.replayable = false;
      if (std::find(piece.reads.begin(), piece.reads.end(), id) == piece.reads.end())
        piece.reads.push_back(id);
    }
    return piece;
  }

  const IterationProfile& whole_;
  const int32_t pieces_;
  std::vector<int32_t> first_of_;  // by whole buffer
  IterationProfile result_;
};

}  // namespace

IterationProfile InPieces(const IterationProfile& whole, int32_t pieces) {
  return Cutting(whole, pieces).Run();
}

}  // namespace spillway::papers
