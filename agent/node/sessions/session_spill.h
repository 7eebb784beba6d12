// Files for what waits long: lets resting jobs store evicted memory there while others want the
// host memory, and calls it back before their turn.
//
// A job rests while it is idle, or waits for its turn without being the next. Host memory is wanted
// while a job that does not rest has less of it than it asks for, or while a resting job's own
// evicted memory does not fit its quota. The longest resting jobs store first, as much as is
// wanted.
//
// Invariants
//  1. A device of a process has one file at a time. Its bytes count against the node's quota until
//     the process says that it has closed the file, or has ended, also after a restart of the
//     agent.
//  2. A process gets no file before it has said in its session what it has, and nobody gets one
//     while processes of an earlier agent return.
//  3. A file that stores nothing is called back, and the process gets no other for kBackoffNs.
// Never: reads a file. Its process alone does.
#pragma once

#include <vector>

#include "agent/node/services.h"
#include "agent/node/sessions/device_turns.h"
#include "agent/node/table/node_facts.h"
#include "agent/node/table/session_table.h"

namespace spillway::agent {

class SessionSpill {
 public:
  static constexpr int64_t kLookNs = 200'000'000;
  static constexpr int64_t kNothingStoredNs = 20'000'000'000;
  static constexpr int64_t kBackoffNs = 60'000'000'000;

  struct Parts {
    const NodeFacts* facts;
    SessionTable* table;
    const Arbiter* arbiter;
    const DeviceTurns* turns;
    Shares* shares;  // null: there are no files
    NodeServices* services;
  };
  explicit SessionSpill(const Parts& parts) : parts_(parts) {}

  void Take(Registration& registration, const protocol::SpillUse& use);
  // The same process in a new session.
  static void TakeOver(const Registration& before, Registration& now);
  void Settle(bool is_resuming, int64_t now_ns);
  int64_t NextWake() const { return next_wake_ns_; }
  // In files, or reserved for them.
  int64_t UsedBytes() const;
  static int64_t UsedBy(const Registration& registration);

 private:
  struct Candidate {
    Session* session;
    uint32_t number;
    Registration* registration;
    int64_t bytes;
  };

  bool Rests(const Session& session, const Registration& registration) const;
  void NoteRests(int64_t now_ns);
  int64_t WantedBytes() const;
  std::vector<Candidate> Candidates(int64_t now_ns) const;
  bool GiveFile(const Candidate& candidate, int64_t bytes, int64_t now_ns);
  void CallBack(Session& session, uint32_t number, Registration& registration, int64_t now_ns);

  const Parts parts_;
  int64_t looked_ns_ = 0, next_wake_ns_ = INT64_MAX;
  bool has_failed_ = false;
};

}  // namespace spillway::agent
