// This process's slot at a machine: processes share its memory and engines in virtual time.
//
// Invariants
//  1. A process acts only in its turn. AwaitTurn and a granted Ask make it its turn.
//  2. The file's lock is never held during a wait.
//  3. No process waits for a dead or stopped process longer than it takes to notice
//     (kWatchEvery_ns), or for one that became another program longer than kSilence_ns. The
//     engine's attendant acts for a process that is elsewhere.
#pragma once

#include <memory>
#include <string>

#include "simulator/driver/machine/node_file.h"

namespace spillway::simulator {

struct NodeSettings {
  std::string path;
  int slot = 0;             // from 1, among the slots expected from the start; 0: any other
  bool shares_time = true;  // false: memory only; no process waits for this one
};

class Node {
 public:
  using Nanos = node::Nanos;

  static base::Result<std::unique_ptr<Node>> Join(const NodeSettings& settings,
                                                  const Machine& machine);
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  enum class Turn {
    // Another process may act earlier. This one must not act before it asks again.
    kNotYet,
    kArrived,  // at the target
    kOwnEnd    // an operation of this process ends now
  };
  struct Answer {
    Turn turn;
    Nanos at_ns;
    std::uint32_t wake_count;
  };
  Answer Ask(Nanos target_ns);
  void Sleep(std::uint32_t wake_count, Nanos limit_ns);
  void WakeOwn();

  // Called every few hundredths of a second, on any thread.
  void Beat();

  Nanos AwaitTurn();

  node::Work GivenNow(node::EngineId id) const;
  node::Work CopyWork(node::EngineId id, std::uint64_t size_bytes, Nanos overhead_ns) const;
  Nanos TimeOf(node::EngineId id, node::Work end) const;
  struct Hold {
    bool holds = false;
    node::Work next_end = 0;
  };
  using Holds = std::array<std::array<Hold, node::kEngines>, node::kMostDevices>;
  struct Done {
    std::uint64_t kernels, h2d_bytes, d2h_bytes, compute_ns;
  };
  void SetHolds(const Holds& holds, const Done& done_so_far);

  // These wait for the turn. Take answers false when the device is full.
  bool Take(int device, std::uint64_t size_bytes);
  void GiveBack(int device, std::uint64_t size_bytes);
  std::uint64_t FreeBytes(int device);

  // This process then holds no other back.
  void Leave();

 private:
  Node(NodeFile& file, bool shares_time) : file_(file), shares_time_(shares_time) {}
  bool ClaimSlot(int wanted);
  void LeaveFormerSlot();
  void Occupy(int slot);
  node::Slot& OwnSlot() const;
  bool IsFirst() const;
  void ResumeIfSuspended();
  void WakeFirst();
  void CheckFirstIsAlive();
  Answer Granted(Nanos at_ns, Turn turn);

  NodeFile& file_;
  const bool shares_time_;
  int slot_ = -1;
  // Guarded by the file's lock: the slot this process waits for, and the time of its last new beat.
  int watched_slot_ = -1;
  std::uint32_t watched_beats_ = 0;
  Nanos watched_since_ns_ = 0;
};

}  // namespace spillway::simulator
