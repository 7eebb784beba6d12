// This process's slot at a simulated machine that several processes share: through it their drivers
// share each device's memory and engines, in virtual time. The rules are in node_state.h, the file
// is node_file.h's.
//
// Made by Initialise where SPILLWAY_SIM_NODE names a file; called by the engine and by physical
// memory under the engine's mutex, and by the exit handler without it. Never destroyed.
//
// Invariants
//  1. A process acts only in its turn; AwaitTurn and an answered Ask are what make it that.
//  2. The file's lock is never held while anything waits.
//  3. Nobody waits for a process that is dead or stopped for longer than it takes to notice
//  (kWatchEvery_ns), nor for one that
//     has become another program (kSilence_ns); the engine's attendant sees to a process that is
//     elsewhere.
#pragma once

#include <memory>
#include <string>

#include "simulator/driver/machine/node_file.h"

namespace spillway::simulator {

struct NodeSettings {
  std::string path;
  int slot = 0;             // from 1, of the slots that are expected from the start; 0: any other
  bool shares_time = true;  // false: only memory; nobody waits for this process
};

class Node {
 public:
  using Nanos = node::Nanos;

  // An error: the file is another machine's, or no slot is left.
  static base::Result<std::unique_ptr<Node>> Join(const NodeSettings& settings,
                                                  const Machine& machine);
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  enum class Turn {
    kNotYet,   // somebody else may act before; this process waits from now on, and does not act
               // until it asked again
    kArrived,  // at the target
    kOwnEnd    // an operation of this process ends now
  };
  struct Answer {
    Turn turn;
    Nanos at_ns;
    std::uint32_t wake_count;  // for Sleep
  };
  Answer Ask(Nanos target_ns);
  // Until something has changed since that answer, or for this long.
  void Sleep(std::uint32_t wake_count, Nanos limit_ns);
  // Wakes those of this process's threads that sleep.
  void WakeOwn();

  // This process is still there, whatever it does. Called every few hundredths of a second; any
  // thread.
  void Beat();

  // Returns when this process may act at its own present, and that.
  Nanos AwaitTurn();

  // These concern this process's present, in its own turn.
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

  // These wait for the turn. False: the device is full.
  bool Take(int device, std::uint64_t size_bytes);
  void GiveBack(int device, std::uint64_t size_bytes);
  std::uint64_t FreeBytes(int device);

  // Gives everything back, and holds nobody from then on.
  void Leave();

 private:
  Node(NodeFile& file, bool shares_time) : file_(file), shares_time_(shares_time) {}
  bool ClaimSlot(int wanted);
  void LeaveFormerSlot();
  void Occupy(int slot);
  node::Slot& OwnSlot() const;
  bool IsFirst() const;
  void BeHere();
  void WakeFirst();
  void WatchFirst();
  Answer Granted(Nanos at_ns, Turn turn);

  NodeFile& file_;
  const bool shares_time_;
  int slot_ = -1;
  // Under the file's lock: whom this process waits for, and since when nothing was heard of it.
  int watched_slot_ = -1;
  std::uint32_t watched_beats_ = 0;
  Nanos watched_since_ns_ = 0;
};

}  // namespace spillway::simulator
