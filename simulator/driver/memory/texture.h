// Texture and surface objects: the documented rules of their descriptors, and the kernels' views.
//
// The table owns objects; the program owns the memory behind them, and may free it first. A
// destroyed object's view keeps its texels until earlier work is done: programs destroy textures
// behind their launches. Then it stays for a while without texels: a kernel that uses it faults.
//
// Invariants
//  1. A handle is the address of the object's view (texture_view.h), unique while the object lives.
//  2. The Get functions return the program's descriptors unchanged.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>

#include "simulator/driver/memory/array.h"
#include "simulator/kernels/texture_view.h"

namespace spillway::simulator {

// In linear memory of one dimension.
inline constexpr std::size_t kMostLinearTexels = std::size_t{1} << 28;

struct TextureObject {
  CUDA_RESOURCE_DESC resource = {};
  CUDA_TEXTURE_DESC texture = {};
  std::optional<CUDA_RESOURCE_VIEW_DESC> view_descriptor;
  TextureView view = {};
  std::uint64_t size_bytes = 0;  // from the first texel on; 0 for arrays
};

class TextureTable {
 public:
  // CUDA_ERROR_NOT_SUPPORTED for views that change the format, else CUDA_ERROR_INVALID_VALUE.
  CUtexObject CreateTexture(const ArrayTable& arrays, const CUDA_RESOURCE_DESC& resource,
                            const CUDA_TEXTURE_DESC& texture, const CUDA_RESOURCE_VIEW_DESC* view);
  CUsurfObject CreateSurface(const ArrayTable& arrays, const CUDA_RESOURCE_DESC& resource);

  const TextureObject& Texture(CUtexObject handle) const;
  const TextureObject& Surface(CUsurfObject handle) const;
  // Operations below `next_sequence` may still use the object.
  void DestroyTexture(CUtexObject handle, std::uint64_t next_sequence);
  void DestroySurface(CUsurfObject handle, std::uint64_t next_sequence);

  // Takes the texels that no operation from `first_unfinished` on may use.
  void ClearDestroyed(std::uint64_t first_unfinished);

  const TextureObject* OverLinearMemory(std::uint64_t word) const;

 private:
  using Objects = std::map<std::uint64_t, std::unique_ptr<TextureObject>>;

  struct Destroyed {
    std::unique_ptr<TextureObject> object;
    std::uint64_t next_sequence;
  };

  void Bury(Objects& objects, std::uint64_t handle, std::uint64_t next_sequence);

  Objects textures_;
  Objects surfaces_;
  std::deque<Destroyed> in_use_;                          // destroyed, with texels
  std::deque<std::unique_ptr<TextureObject>> destroyed_;  // the last ones, without
};

}  // namespace spillway::simulator
