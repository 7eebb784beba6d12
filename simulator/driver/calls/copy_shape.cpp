#include "simulator/driver/calls/copy_shape.h"

namespace spillway::simulator {
namespace {

std::uintptr_t Address(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

ShapedMemory ShapedMemoryOf(Call& call, const Linear3D& end, const Corner& corner, const Box& box) {
  if (end.type == CU_MEMORYTYPE_ARRAY) return ShapedMemoryOf(call.sim.arrays.Find(end.array));
  Require(end.type == CU_MEMORYTYPE_HOST || end.type == CU_MEMORYTYPE_DEVICE ||
          end.type == CU_MEMORYTYPE_UNIFIED);
  const std::size_t pitch =
      end.pitch_bytes != 0 ? end.pitch_bytes : box.width_bytes + corner.x_bytes;
  const std::size_t rows = end.rows != 0 ? end.rows : box.rows + corner.y;
  const std::uintptr_t base = end.type == CU_MEMORYTYPE_HOST ? Address(end.host) : end.device;
  return {base, pitch, rows, pitch, corner.z + box.slices};
}

template <class Copy3DType>
CopyRequest RequestFrom(Call& call, const Copy3DType& copy) {
  Require(copy.srcLOD == 0 && copy.dstLOD == 0);
  const Box box{copy.WidthInBytes, copy.Height, copy.Depth};
  const Linear3D source{copy.srcMemoryType, copy.srcHost,  copy.srcDevice,
                        copy.srcArray,      copy.srcPitch, copy.srcHeight};
  const Linear3D target{copy.dstMemoryType, copy.dstHost,  copy.dstDevice,
                        copy.dstArray,      copy.dstPitch, copy.dstHeight};
  return {SideOf(call, target, {copy.dstXInBytes, copy.dstY, copy.dstZ}, box),
          SideOf(call, source, {copy.srcXInBytes, copy.srcY, copy.srcZ}, box), box};
}

}  // namespace

ShapedMemory ShapedMemoryOf(const Array& array) {
  return {array.base, array.pitch_bytes, array.rows, array.row_bytes(), array.slices};
}

Side SideAt(const ShapedMemory& ground, const Corner& corner, const Box& box) {
  Require(corner.x_bytes + box.width_bytes <= ground.width_bytes);
  Require(corner.y + box.rows <= ground.rows && corner.z + box.slices <= ground.slices);
  return Side{
      ground.base + (corner.z * ground.rows + corner.y) * ground.pitch_bytes + corner.x_bytes,
      ground.pitch_bytes, ground.pitch_bytes * ground.rows};
}

Side SideOf(Call& call, const Linear3D& end, const Corner& corner, const Box& box) {
  return SideAt(ShapedMemoryOf(call, end, corner, box), corner, box);
}

CopyRequest RequestOf(Call& call, const CUDA_MEMCPY3D& copy) { return RequestFrom(call, copy); }
CopyRequest RequestOf(Call& call, const CUDA_MEMCPY3D_PEER& copy) {
  return RequestFrom(call, copy);
}

}  // namespace spillway::simulator
