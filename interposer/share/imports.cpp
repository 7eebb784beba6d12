#include "interposer/share/imports.h"

#include <unistd.h>

#include <iterator>
#include <utility>
#include <vector>

#include "interposer/driver/driver_api.h"
#include "interposer/driver/mapping_calls.h"

namespace spillway::interposer::share {

using base::MutexLock;
using driver::Driver;

namespace {

// How long an exporter may take: it may first have to make room.
constexpr timeval kPatience{20, 0};

Handle Unpack(const CUipcMemHandle& handle) {
  Handle unpacked;
  memcpy(&unpacked, &handle, sizeof unpacked);
  return unpacked;
}

int Connect(const Handle& handle) {
  const int connection = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (connection < 0) return -1;
  setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
  const base::UnixAddress address = AddressOf(handle.socket);
  const Request request{handle.token};
  if (connect(connection, address.get(), address.size) == 0 &&
      send(connection, &request, sizeof request, MSG_NOSIGNAL) == sizeof request) {
    return connection;
  }
  close(connection);
  return -1;
}

struct Received {
  base::UniqueFd file;
  std::size_t bytes;
};

bool ReceivePart(int connection, std::vector<Received>* out) {
  Part part{};
  std::vector<base::UniqueFd> files;
  const ssize_t size =
      base::ReceiveWithFiles(connection, base::PlaceOf(part), kChunksPerPart, &files);
  if (size != sizeof part || part.count == 0 || part.count != files.size()) return false;
  for (std::size_t i = 0; i < files.size(); ++i)
    out->push_back({std::move(files[i]), part.bytes[i]});
  return true;
}

CUresult MapAll(CUdeviceptr base, const std::vector<Received>& chunks) {
  CUresult result = CUDA_SUCCESS;
  std::size_t done_bytes = 0;
  for (const Received& chunk : chunks) {
    CUmemGenericAllocationHandle handle = 0;
    auto* const shareable = reinterpret_cast<void*>(static_cast<std::intptr_t>(chunk.file.get()));
    result = Driver().cuMemImportFromShareableHandle(&handle, shareable,
                                                     CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    if (result != CUDA_SUCCESS) break;
    result = driver::MemMap(base + done_bytes, chunk.bytes, handle);
    driver::MemRelease(handle);  // the mapping holds the memory
    if (result != CUDA_SUCCESS) break;
    done_bytes += chunk.bytes;
  }
  CUmemAccessDesc access{};
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  if (result == CUDA_SUCCESS) result = Driver().cuCtxGetDevice(&access.location.id);
  if (result == CUDA_SUCCESS) result = driver::MemSetAccess(base, done_bytes, &access, 1);
  if (result != CUDA_SUCCESS && done_bytes != 0) driver::MemUnmap(base, done_bytes);
  return result;
}

}  // namespace

Imports& Imports::Instance() {
  static Imports* const imports = new Imports;
  return *imports;
}

bool Imports::Knows(const CUipcMemHandle& handle) { return Unpack(handle).magic == kMagic; }

CUresult Imports::Open(const CUipcMemHandle& packed, CUdeviceptr* out) {
  const Handle handle = Unpack(packed);
  CUcontext context = nullptr;
  if (Driver().cuCtxGetCurrent(&context) != CUDA_SUCCESS || !context)
    return CUDA_ERROR_INVALID_CONTEXT;
  if (handle.pid == getpid())
    return CUDA_ERROR_INVALID_CONTEXT;  // the driver's answer for own handles
  {
    const MutexLock lock(mutex_);
    const std::optional<CUdeviceptr> known = OpenAgain(handle.token, context);
    if (known) return *out = *known, CUDA_SUCCESS;
  }
  Opening opening{};
  const CUresult result = Ask(handle, context, &opening);
  if (result != CUDA_SUCCESS) return result;
  std::optional<CUdeviceptr> opened_meanwhile;
  {
    const MutexLock lock(mutex_);
    opened_meanwhile = OpenAgain(handle.token, context);
    *out = opened_meanwhile.value_or(opening.mapped + opening.offset_bytes);
    if (!opened_meanwhile) openings_[*out] = opening;
    count_ = openings_.size();
  }
  if (opened_meanwhile) End(opening);
  return CUDA_SUCCESS;
}

std::optional<CUdeviceptr> Imports::OpenAgain(std::uint64_t token, CUcontext context) {
  for (auto& [address, opening] : openings_) {
    if (opening.token != token || opening.context != context) continue;
    ++opening.references;
    return address;
  }
  return std::nullopt;
}

CUresult Imports::Ask(const Handle& handle, CUcontext context, Opening* out) {
  base::UniqueFd connection(Connect(handle));
  if (!connection) return CUDA_ERROR_MAP_FAILED;
  Answer answer{};
  if (recv(connection.get(), &answer, sizeof answer, 0) != sizeof answer)
    return CUDA_ERROR_MAP_FAILED;
  if (answer.result != CUDA_SUCCESS) return static_cast<CUresult>(answer.result);
  std::vector<Received> chunks;
  while (chunks.size() < answer.chunk_count) {
    if (!ReceivePart(connection.get(), &chunks)) return CUDA_ERROR_MAP_FAILED;
  }
  CUdeviceptr mapped = 0;
  CUresult result = Driver().cuMemAddressReserve(&mapped, answer.chunk_bytes, 0, 0, 0);
  if (result != CUDA_SUCCESS) return result;
  result = MapAll(mapped, chunks);
  if (result != CUDA_SUCCESS) {
    Driver().cuMemAddressFree(mapped, answer.chunk_bytes);
    return result;
  }
  *out = {handle.token,      context,           mapped, answer.chunk_bytes, answer.offset_bytes,
          answer.size_bytes, connection.Take(), 1};
  return CUDA_SUCCESS;
}

void Imports::End(const Opening& opening) {
  driver::MemUnmap(opening.mapped, opening.mapped_bytes);
  Driver().cuMemAddressFree(opening.mapped, opening.mapped_bytes);
  close(opening.connection);
}

bool Imports::Close(CUdeviceptr address, CUresult* result) {
  Opening opening;
  {
    const MutexLock lock(mutex_);
    const auto found = openings_.find(address);
    if (found == openings_.end()) return false;
    *result = CUDA_SUCCESS;
    if (--found->second.references > 0) return true;
    opening = found->second;
    openings_.erase(found);
    count_ = openings_.size();
  }
  // cuMemUnmap does not wait, but work may still use the memory. Without the lock: that work may
  // wait for a thread that asks about memory.
  *result = Driver().cuCtxSynchronize();
  End(opening);
  return true;
}

std::optional<Extent> Imports::ExtentOf(CUdeviceptr address) {
  if (count_ == 0) return std::nullopt;
  const MutexLock lock(mutex_);
  const auto next = openings_.upper_bound(address);
  if (next == openings_.begin()) return std::nullopt;
  const auto& [start, opening] = *std::prev(next);
  if (address - start >= opening.size_bytes) return std::nullopt;
  return Extent{start, opening.size_bytes};
}

}  // namespace spillway::interposer::share
