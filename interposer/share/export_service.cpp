#include "interposer/share/export_service.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "base/quiet_thread.h"

namespace spillway::interposer::share {

using base::MutexLock;

namespace {

// Until the program has a free descriptor again.
constexpr int kNoFilesPauseMs = 100;

std::atomic<bool> process_ends{false};

std::uint64_t RandomNumber() {
  std::uint64_t number = 0;
  while (number == 0 && getrandom(&number, sizeof number, 0) != sizeof number) {
  }
  return number;
}

bool IsOfThisUser(int connection) {
  ucred other{};
  socklen_t length = sizeof other;
  return getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &other, &length) == 0 &&
         other.uid == geteuid();
}

template <class T>
bool SendMessage(int connection, const T& message, std::span<const int> files = {}) {
  return base::SendWithFiles(connection, base::BytesOf(message), files) ==
         static_cast<ssize_t>(sizeof message);
}

}  // namespace

ExportService& ExportService::Instance() {
  static ExportService* const service = new ExportService;
  return *service;
}

CUresult ExportService::HandleOf(JobMemory* job, CUdeviceptr base, CUipcMemHandle* out) {
  std::uint64_t token = 0;
  bool fresh = false;
  Handle handle{};
  {
    const MutexLock lock(mutex_);
    if (!StartOnce()) return CUDA_ERROR_MAP_FAILED;
    handle = {kMagic, socket_name_, 0, getpid()};
    const auto known = tokens_.find(base);
    token = known == tokens_.end() ? 0 : known->second;
    fresh = token == 0;
    if (fresh) {
      token = RandomNumber();
      tokens_[base] = token;
      exports_[token] = {job, base, {}, 0};
      any_.store(true, std::memory_order_relaxed);
    }
  }
  const CUresult result = ShareAgain(token);
  if (result != CUDA_SUCCESS) {
    if (fresh) Forget(base);
    return result;
  }
  handle.token = token;
  memset(out, 0, sizeof *out);
  memcpy(out, &handle, sizeof handle);
  return CUDA_SUCCESS;
}

CUresult ExportService::ShareAgain(std::uint64_t token) {
  JobMemory* job = nullptr;
  CUdeviceptr base = 0;
  {
    const MutexLock lock(mutex_);
    const auto found = exports_.find(token);
    if (found == exports_.end()) return CUDA_ERROR_INVALID_VALUE;
    if (!found->second.memory.chunks.empty()) return CUDA_SUCCESS;
    job = found->second.job;
    base = found->second.base;
  }
  SharedMemory memory;
  const CUresult result =
      process_ends ? CUDA_ERROR_DEINITIALIZED : job->sharing().Share(token, base, &memory);
  if (result != CUDA_SUCCESS) return result;
  const MutexLock lock(mutex_);
  const auto found = exports_.find(token);
  if (found == exports_.end() || !found->second.memory.chunks.empty()) {
    Close(&memory);
  } else {
    found->second.memory = std::move(memory);
  }
  return found == exports_.end() ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

void ExportService::Close(SharedMemory* memory) {
  for (const SharedMemory::Chunk& chunk : memory->chunks) close(chunk.file);
  memory->chunks.clear();
}

void ExportService::Forget(CUdeviceptr base) {
  const MutexLock lock(mutex_);
  const auto token = tokens_.find(base);
  if (token == tokens_.end()) return;
  Close(&exports_[token->second].memory);
  exports_.erase(token->second);
  tokens_.erase(token);
}

void ExportService::ForgetAllOf(const JobMemory* job) {
  const MutexLock lock(mutex_);
  std::erase_if(tokens_, [&](const auto& known) SPILLWAY_REQUIRES(mutex_) {
    const auto found = exports_.find(known.second);
    if (found->second.job != job) return false;
    Close(&found->second.memory);
    exports_.erase(found);
    return true;
  });
}

// After the last opener has closed it, the memory may move again.
void ExportService::Closed(std::uint64_t token) {
  JobMemory* job = nullptr;
  {
    const MutexLock lock(mutex_);
    const auto found = exports_.find(token);
    if (found == exports_.end() || --found->second.openers > 0) return;
    Close(&found->second.memory);
    job = found->second.job;
  }
  job->held_ranges().EndHold(token);
}

bool ExportService::StartOnce() {
  if (started_) return works_;
  started_ = true;
  socket_name_ = RandomNumber();
  listener_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const base::UnixAddress address = AddressOf(socket_name_);
  if (listener_ < 0 || bind(listener_, address.get(), address.size) != 0 ||
      listen(listener_, SOMAXCONN) != 0) {
    return false;
  }
  works_ = base::StartDetachedThread("spillway-share", &ThreadMain, this);
  atexit([] { process_ends = true; });
  return works_;
}

void* ExportService::ThreadMain(void* service) {
  static_cast<ExportService*>(service)->Serve();
  return nullptr;
}

void ExportService::Serve() {
  for (bool may_accept = true;;) {
    // A connection that cannot be accepted would wake this thread again and again.
    std::vector<pollfd> watched = {{may_accept ? listener_ : -1, POLLIN, 0}};
    for (const auto& [connection, token] : connections_) watched.push_back({connection, POLLIN, 0});
    const int timeout_ms = std::exchange(may_accept, true) ? -1 : kNoFilesPauseMs;
    if (poll(watched.data(), watched.size(), timeout_ms) <= 0) continue;
    for (const pollfd& one : watched) {
      if (one.revents == 0 || one.fd == listener_) continue;
      std::uint64_t& token = connections_[one.fd];
      if (token == 0 && AnswerOn(one.fd, &token)) continue;
      const std::uint64_t closed = token;
      connections_.erase(one.fd);
      close(one.fd);
      if (closed != 0) Closed(closed);
    }
    if (watched.front().revents != 0) may_accept = Accept();
  }
}

bool ExportService::Accept() {
  const int connection = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  if (connection < 0)
    return errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM;
  // An opener that stops reading must not delay the others.
  const timeval patience{1, 0};
  setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  if (IsOfThisUser(connection)) {
    connections_[connection] = 0;
  } else {
    close(connection);
  }
  return true;
}

// Answers the connection's one request. False: close the connection.
bool ExportService::AnswerOn(int connection, std::uint64_t* token) {
  Request request{};
  if (recv(connection, &request, sizeof request, MSG_DONTWAIT) != sizeof request) return false;
  const CUresult shared = ShareAgain(request.token);
  if (shared != CUDA_SUCCESS) {
    const Answer refusal{shared, 0, 0, 0, 0};
    SendMessage(connection, refusal);
    return false;
  }
  if (!SendAll(connection, request.token)) return false;
  *token = request.token;
  return true;
}

bool ExportService::SendAll(int connection, std::uint64_t token) {
  const MutexLock lock(mutex_);
  const auto found = exports_.find(token);
  if (found == exports_.end()) return false;
  const SharedMemory& memory = found->second.memory;
  Answer answer{CUDA_SUCCESS, static_cast<std::uint32_t>(memory.chunks.size()), 0,
                memory.offset_bytes, memory.size_bytes};
  for (const SharedMemory::Chunk& chunk : memory.chunks) answer.chunk_bytes += chunk.bytes;
  if (!SendMessage(connection, answer) || !SendParts(connection, memory)) return false;
  ++found->second.openers;
  return true;
}

bool ExportService::SendParts(int connection, const SharedMemory& memory) {
  for (std::size_t first = 0; first < memory.chunks.size(); first += kChunksPerPart) {
    Part part{};
    int files[kChunksPerPart];
    part.count = std::min(kChunksPerPart, memory.chunks.size() - first);
    for (std::size_t i = 0; i < part.count; ++i) {
      files[i] = memory.chunks[first + i].file;
      part.bytes[i] = memory.chunks[first + i].bytes;
    }
    if (!SendMessage(connection, part, std::span(files).first(part.count))) return false;
  }
  return true;
}

}  // namespace spillway::interposer::share
