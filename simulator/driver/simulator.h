// The whole simulated driver of one process: every part and every table, wired together.
//
// Created by cuInit, never destroyed: calls that come while the process exits still find it.
// Threads: all members are guarded by the engine's mutex.
#pragma once

#include <map>
#include <memory>
#include <set>

#include "simulator/driver/address_space.h"
#include "simulator/driver/allocation.h"
#include "simulator/driver/array.h"
#include "simulator/driver/context.h"
#include "simulator/driver/declared_uses.h"
#include "simulator/driver/device.h"
#include "simulator/driver/device_heap.h"
#include "simulator/driver/engine.h"
#include "simulator/driver/graph_tables.h"
#include "simulator/driver/imports.h"
#include "simulator/driver/module.h"
#include "simulator/driver/node.h"
#include "simulator/driver/physical_memory.h"
#include "simulator/driver/pool.h"
#include "simulator/driver/profile.h"
#include "simulator/driver/texture.h"
#include "simulator/driver/vmm.h"

namespace spillway::simulator {

struct Simulator {
  // `shared_with`: the machine, if other processes use it too.
  Simulator(const Profile& device, int device_count, std::uint64_t capacity_bytes, bool real_clock,
            std::unique_ptr<Node> shared_with);

  const Profile profile;
  const std::unique_ptr<Node> node;
  Engine engine;
  AddressSpace addresses;
  Devices devices;
  DeviceHeap managed_heap;
  AllocationTable allocations;
  ArrayTable arrays;
  TextureTable textures;
  Vmm vmm;
  Imports imports;
  PluginRegistry plugins;
  DeclaredUses declared_uses;  // filled in the compute mode `tags` only

  std::map<Context*, std::unique_ptr<Context>> contexts;
  std::map<Stream*, StreamRef> streams;
  std::map<Event*, std::unique_ptr<Event>> events;
  std::map<Module*, std::unique_ptr<Module>> modules;
  std::set<Kernel*> kernels;
  std::map<Pool*, std::unique_ptr<Pool>> pools;
  GraphTables graphs;
  GraphMemory graph_memory;
  std::uint64_t next_id = 1;

  std::unique_ptr<Context> MakeContext(Device& device, unsigned flags, bool is_primary);
  bool IsContext(const Context* context) const;

  // Takes the allocation out of the table and its memory away; nothing uses it any more. Pool memory goes to its pool.
  void Release(std::uintptr_t base);
};

// Null before cuInit succeeded.
Simulator* TheSimulator();
// Reads the environment and builds the simulator; returns what cuInit answers.
CUresult Initialise();

}  // namespace spillway::simulator
