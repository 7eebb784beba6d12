// The trace file in Chrome's trace event format, one object per line (ui.perfetto.dev opens it).
//
// Owns the file. Events: docs/trace_format.md.
// Invariants
//  1. At every moment the kernel has only whole events of the file. Until Finish only the closing
//     bracket is missing, which readers of this format tolerate.
//  2. Memory does not grow: at most one buffer is unwritten.
//  3. After an error nothing more is written: the file ends after its last whole event.
// Source: "Trace Event Format", the Chromium project.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "interposer/record/trace_event.h"

namespace spillway::interposer {

struct TraceHead {
  const char* command = "";
  int pid = 0;
};

class TraceFile {
 public:
  TraceFile() = default;
  ~TraceFile() { Close(); }
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;

  // False, with error(), if it cannot be written.
  bool Open(const char* path, const TraceHead& head);
  void Add(const TraceEvent& event);
  // `lost`: all events without room so far.
  void AddLost(std::uint64_t lost);
  void Flush();
  void Finish();

  bool is_open() const { return file_ >= 0; }
  int error() const { return error_; }

 private:
  static constexpr std::size_t kBufferBytes = 1 << 16;
  static constexpr std::size_t kMostEventBytes = 4096;
  static constexpr std::size_t kMostStreams = 64;
  struct Track {
    std::int64_t iteration_begin_ns = -1;
    std::uint64_t iteration = 0;
    std::uint64_t named_streams = 0;  // a bit each
    bool is_named = false;
  };

  void AddHead(const TraceHead& head);
  void NameTracks(const TraceEvent& event);
  void NameThread(int device, int thread, const char* name);
  void AddSpan(const TraceEvent& event, const char* category, int thread, const char* name);
  void AddInstant(const TraceEvent& event, const char* name);
  void AddIteration(const TraceEvent& event);
  void AddMemory(const TraceEvent& event);
  void AddPlan(const TraceEvent& event);
  void AddDroppedPlan(const TraceEvent& event);
  void AddExperiment(const TraceEvent& event);
  void AddDetails(const TraceEvent& event);
  void BeginEvent();
  void EndEvent();
  __attribute__((format(printf, 2, 3))) void Put(const char* format, ...);
  void PutTime(const char* key, std::int64_t time_ns);
  void PutQuoted(const char* text);
  void Write();
  void Fail(int error);
  void Close();

  int file_ = -1;
  int error_ = 0;
  std::int64_t whole_bytes_ = 0;
  bool is_first_ = true;
  std::size_t used_bytes_ = 0;
  std::array<Track, 64> tracks_;
  char buffer_[kBufferBytes];
};

}  // namespace spillway::interposer
