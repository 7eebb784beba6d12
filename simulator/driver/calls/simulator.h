// The whole simulated driver of one process.
//
// Created by cuInit and never destroyed, because programs call while the process exits.
#pragma once

#include <map>
#include <memory>
#include <set>

#include "simulator/driver/calls/module_link.h"
#include "simulator/driver/device/context.h"
#include "simulator/driver/device/declared_uses.h"
#include "simulator/driver/device/device.h"
#include "simulator/driver/device/graph_tables.h"
#include "simulator/driver/device/imports.h"
#include "simulator/driver/device/module.h"
#include "simulator/driver/device/pool.h"
#include "simulator/driver/device/vmm.h"
#include "simulator/driver/engine/engine.h"
#include "simulator/driver/machine/node.h"
#include "simulator/driver/machine/profile.h"
#include "simulator/driver/memory/address_space.h"
#include "simulator/driver/memory/allocation.h"
#include "simulator/driver/memory/array.h"
#include "simulator/driver/memory/device_heap.h"
#include "simulator/driver/memory/first_uses.h"
#include "simulator/driver/memory/physical_memory.h"
#include "simulator/driver/memory/texture.h"

namespace spillway::simulator {

struct Simulator {
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
  DeclaredUses declared_uses;  // only in the compute mode `tags`

  std::map<Context*, std::unique_ptr<Context>> contexts;
  std::map<Stream*, StreamRef> streams;
  std::map<Event*, std::unique_ptr<Event>> events;
  std::map<Module*, std::unique_ptr<Module>> modules;
  std::vector<std::unique_ptr<ListedImage>> listed_images;
  bool runs_listed_kernels = false;  // the program has launched one
  FirstUses first_uses;              // only in the compute mode `tags`
  std::set<Kernel*> kernels;
  std::map<ModuleLink*, std::unique_ptr<ModuleLink>> links;
  std::map<Pool*, std::unique_ptr<Pool>> pools;
  GraphTables graphs;
  GraphMemory graph_memory;
  std::uint64_t next_id = 1;

  std::unique_ptr<Context> MakeContext(Device& device, unsigned flags, bool is_primary);
  bool IsContext(const Context* context) const;

  void Release(std::uintptr_t base);
};

// Null before cuInit succeeded.
Simulator* TheSimulator();
CUresult Initialise();

}  // namespace spillway::simulator
