#include "tests/fuzz/differential/transfers.h"

#include <algorithm>

#include "tests/fuzz/differential/random.h"
#include "tests/support/driver_check.h"

namespace spillway::fuzz {
namespace {

// At the 60 TFLOP/s of an H200 these take 16 ns, 1 ms and 5 ms.
constexpr std::uint64_t kQuickestFlops = 1'000'000;
constexpr std::uint64_t kSlowFlops = 60'000'000'000;
constexpr std::uint64_t kSlowestFlops = 300'000'000'000;

std::uint64_t AddressOf(const View& view, const Table& table) {
  return table.slots[view.buffer].address + view.offset_bytes;
}
void* HostAddressOf(const View& view, const Table& table) {
  return reinterpret_cast<void*>(AddressOf(view, table));
}

// One side of a 2D or 3D copy: a base before the first byte, and the distance from there.
struct Corner {
  CUmemorytype type;
  std::uint64_t base;
  std::uint64_t x_bytes;
  std::uint64_t y_rows;
  std::uint64_t z_slices;
};

Corner CornerOf(const View& view, const Table& table, const Operation& operation) {
  const Slot& slot = table.slots[view.buffer];
  Corner corner{};
  const std::uint64_t dice = Scramble(operation.salt + static_cast<std::uint64_t>(view.buffer));
  const std::uint64_t spare_bytes =
      std::min(view.pitch_bytes - operation.box.row_bytes, view.offset_bytes);
  corner.x_bytes = dice % (spare_bytes + 1);
  const std::uint64_t before_bytes = view.offset_bytes - corner.x_bytes;
  const std::uint64_t slice_bytes = view.pitch_bytes * view.slice_rows;
  if (static_cast<CopyForm>(operation.form) == CopyForm::k3D) {
    corner.z_slices = std::min<std::uint64_t>(before_bytes / slice_bytes, (dice >> 20) % 3);
  } else {
    corner.y_rows = std::min<std::uint64_t>(before_bytes / view.pitch_bytes, (dice >> 20) % 4);
  }
  const std::uint64_t way_bytes =
      corner.x_bytes + corner.y_rows * view.pitch_bytes + corner.z_slices * slice_bytes;
  corner.base = slot.address + view.offset_bytes - way_bytes;
  corner.type = slot.InHostMemory() ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
  if ((dice >> 30) % 3 == 0) corner.type = CU_MEMORYTYPE_UNIFIED;
  return corner;
}

template <typename Description>
Description Describe(const Operation& operation, const Table& table) {
  const View& in = operation.in.front();
  const View& out = operation.out;
  const Corner from = CornerOf(in, table, operation);
  const Corner to = CornerOf(out, table, operation);
  Description description{};
  description.srcMemoryType = from.type;
  description.srcHost = reinterpret_cast<const void*>(from.base);
  description.srcDevice = from.base;
  description.srcXInBytes = from.x_bytes;
  description.srcY = from.y_rows;
  description.srcPitch = in.pitch_bytes;
  description.dstMemoryType = to.type;
  description.dstHost = reinterpret_cast<void*>(to.base);
  description.dstDevice = to.base;
  description.dstXInBytes = to.x_bytes;
  description.dstY = to.y_rows;
  description.dstPitch = out.pitch_bytes;
  description.WidthInBytes = operation.box.row_bytes;
  description.Height = operation.box.rows;
  if constexpr (requires { description.Depth; }) {
    description.srcZ = from.z_slices;
    description.srcHeight = in.slice_rows;
    description.dstZ = to.z_slices;
    description.dstHeight = out.slice_rows;
    description.Depth = operation.box.slices;
  }
  return description;
}

void CopyRows(const Operation& operation, const Table& table) {
  const auto form = static_cast<CopyForm>(operation.form);
  if (form == CopyForm::k3D) {
    const auto box = Describe<CUDA_MEMCPY3D>(operation, table);
    if (operation.on_stream) {
      SPILLWAY_DRIVER_CALL(cuMemcpy3DAsync(&box, table.StreamOf(operation)));
    } else {
      SPILLWAY_DRIVER_CALL(cuMemcpy3D(&box));
    }
    return;
  }
  const auto rows = Describe<CUDA_MEMCPY2D>(operation, table);
  if (operation.on_stream) {
    SPILLWAY_DRIVER_CALL(cuMemcpy2DAsync(&rows, table.StreamOf(operation)));
  } else if (form == CopyForm::k2DUnaligned) {
    SPILLWAY_DRIVER_CALL(cuMemcpy2DUnaligned(&rows));
  } else {
    SPILLWAY_DRIVER_CALL(cuMemcpy2D(&rows));
  }
}

void CopyLine(const Operation& operation, const Table& table) {
  const View& in = operation.in.front();
  const View& out = operation.out;
  const std::uint64_t from = AddressOf(in, table);
  const std::uint64_t to = AddressOf(out, table);
  if (static_cast<CopyForm>(operation.form) == CopyForm::kUnified) {
    SPILLWAY_DRIVER_CALL(cuMemcpy(to, from, out.bytes));
  } else if (table.slots[in.buffer].InHostMemory()) {
    SPILLWAY_DRIVER_CALL(cuMemcpyHtoD(to, HostAddressOf(in, table), out.bytes));
  } else if (table.slots[out.buffer].InHostMemory()) {
    SPILLWAY_DRIVER_CALL(cuMemcpyDtoH(HostAddressOf(out, table), from, out.bytes));
  } else {
    SPILLWAY_DRIVER_CALL(cuMemcpyDtoD(to, from, out.bytes));
  }
}

void CopyLineOnStream(const Operation& operation, const Table& table) {
  const View& in = operation.in.front();
  const View& out = operation.out;
  const std::uint64_t from = AddressOf(in, table);
  const std::uint64_t to = AddressOf(out, table);
  const CUstream stream = table.StreamOf(operation);
  if (static_cast<CopyForm>(operation.form) == CopyForm::kUnified) {
    SPILLWAY_DRIVER_CALL(cuMemcpyAsync(to, from, out.bytes, stream));
  } else if (table.slots[in.buffer].InHostMemory()) {
    SPILLWAY_DRIVER_CALL(cuMemcpyHtoDAsync(to, HostAddressOf(in, table), out.bytes, stream));
  } else if (table.slots[out.buffer].InHostMemory()) {
    SPILLWAY_DRIVER_CALL(cuMemcpyDtoHAsync(HostAddressOf(out, table), from, out.bytes, stream));
  } else {
    SPILLWAY_DRIVER_CALL(cuMemcpyDtoDAsync(to, from, out.bytes, stream));
  }
}

// The pointer lies anywhere in the buffer; the kernel is told the way to its bytes.
ViewArgument ArgumentFor(const View& view, const Table& table, std::uint64_t dice) {
  const Slot& slot = table.slots[view.buffer];
  const std::uint64_t meant = AddressOf(view, table);
  const std::uint64_t passed = dice % 3 == 0 ? slot.address + (dice >> 8) % slot.bytes : meant;
  return {passed, static_cast<std::int64_t>(meant - passed), view.bytes, view.stride_bytes};
}

MixArguments ArgumentsFor(const Operation& operation, const Table& table,
                          std::uint64_t timing_salt) {
  MixArguments arguments;
  arguments.input_count = static_cast<std::uint32_t>(operation.in.size());
  arguments.out = ArgumentFor(operation.out, table, Scramble(operation.salt + 1));
  for (std::size_t i = 0; i < operation.in.size(); ++i) {
    arguments.in[i] = ArgumentFor(operation.in[i], table, Scramble(operation.salt + 2 + i));
  }
  if (operation.decoy != kNone) arguments.decoy = table.slots[operation.decoy].address;
  arguments.seed = Scramble(operation.salt);
  Random duration(operation.salt ^ timing_salt);
  arguments.flops = duration.Magnitude(operation.slow ? kSlowFlops : kQuickestFlops, kSlowestFlops);
  return arguments;
}

void LaunchWith(CUfunction kernel, CUstream stream, void** parameters, void** extra,
                std::uint64_t salt) {
  if (salt & 64) {
    SPILLWAY_DRIVER_CALL(cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, stream, parameters, extra));
    return;
  }
  CUlaunchConfig configuration{};
  configuration.gridDimX = configuration.gridDimY = configuration.gridDimZ = 1;
  configuration.blockDimX = 32;
  configuration.blockDimY = configuration.blockDimZ = 1;
  configuration.hStream = stream;
  SPILLWAY_DRIVER_CALL(cuLaunchKernelEx(&configuration, kernel, parameters, extra));
}

void FillLine(const Operation& operation, std::uint64_t address, CUstream stream) {
  const auto value = static_cast<unsigned>(Scramble(operation.salt));
  const std::uint64_t bytes = operation.out.bytes;
  const bool on_stream = operation.on_stream;
  switch (static_cast<FillForm>(operation.form)) {
    case FillForm::kD8:
      SPILLWAY_DRIVER_CALL(
          on_stream ? cuMemsetD8Async(address, static_cast<unsigned char>(value), bytes, stream)
                    : cuMemsetD8(address, static_cast<unsigned char>(value), bytes));
      break;
    case FillForm::kD16:
      SPILLWAY_DRIVER_CALL(
          on_stream
              ? cuMemsetD16Async(address, static_cast<unsigned short>(value), bytes / 2, stream)
              : cuMemsetD16(address, static_cast<unsigned short>(value), bytes / 2));
      break;
    default:
      SPILLWAY_DRIVER_CALL(on_stream ? cuMemsetD32Async(address, value, bytes / 4, stream)
                                     : cuMemsetD32(address, value, bytes / 4));
  }
}

void FillRows(const Operation& operation, std::uint64_t address, CUstream stream) {
  const auto value = static_cast<unsigned>(Scramble(operation.salt));
  const std::uint64_t pitch = operation.out.pitch_bytes;
  const std::uint64_t width = operation.box.row_bytes;
  const std::uint64_t rows = operation.box.rows;
  const bool on_stream = operation.on_stream;
  const auto byte = static_cast<unsigned char>(value);
  const auto half = static_cast<unsigned short>(value);
  switch (static_cast<FillForm>(operation.form)) {
    case FillForm::k2D8:
      SPILLWAY_DRIVER_CALL(on_stream ? cuMemsetD2D8Async(address, pitch, byte, width, rows, stream)
                                     : cuMemsetD2D8(address, pitch, byte, width, rows));
      break;
    case FillForm::k2D16:
      SPILLWAY_DRIVER_CALL(on_stream
                               ? cuMemsetD2D16Async(address, pitch, half, width / 2, rows, stream)
                               : cuMemsetD2D16(address, pitch, half, width / 2, rows));
      break;
    default:
      SPILLWAY_DRIVER_CALL(on_stream
                               ? cuMemsetD2D32Async(address, pitch, value, width / 4, rows, stream)
                               : cuMemsetD2D32(address, pitch, value, width / 4, rows));
  }
}

}  // namespace

void Copy(const Operation& operation, const Table& table) {
  if (operation.box.rows != 0) {
    CopyRows(operation, table);
  } else if (operation.on_stream) {
    CopyLineOnStream(operation, table);
  } else {
    CopyLine(operation, table);
  }
}

void Fill(const Operation& operation, const Table& table) {
  const std::uint64_t address = AddressOf(operation.out, table);
  const CUstream stream = table.StreamOf(operation);
  if (operation.box.rows != 0) {
    FillRows(operation, address, stream);
  } else {
    FillLine(operation, address, stream);
  }
}

void Launch(const Operation& operation, const Table& table, const Device& device,
            std::uint64_t timing_salt) {
  MixArguments arguments = ArgumentsFor(operation, table, timing_salt);
  const auto form = static_cast<LaunchForm>(operation.form);
  const CUfunction kernel = device.Kernel(form, operation.salt);
  const CUstream stream = table.StreamOf(operation);
  auto* const bytes = reinterpret_cast<std::uint8_t*>(&arguments);
  std::size_t size_bytes = sizeof(arguments);
  if (form == LaunchForm::kFlatExtra || form == LaunchForm::kStructExtra) {
    void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, bytes, CU_LAUNCH_PARAM_BUFFER_SIZE,
                     &size_bytes, CU_LAUNCH_PARAM_END};
    LaunchWith(kernel, stream, nullptr, extra, operation.salt);
    return;
  }
  void* parameters[kFlatParameters];
  for (int i = 0; i < kFlatParameters; ++i) parameters[i] = bytes + 8 * i;
  LaunchWith(kernel, stream, parameters, nullptr, operation.salt);
}

}  // namespace spillway::fuzz
