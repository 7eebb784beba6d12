// Every graph, node, executable, capture and user object of the process, by handle.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <vector>

#include "simulator/driver/abi.h"
#include "simulator/driver/device/graph_memory.h"

namespace spillway::simulator {

struct Capture;
struct Condition;
struct Graph;
struct GraphExec;
struct GraphNode;

struct UserObject {
  CUhostFn destroy;
  void* data;
  unsigned references;
};

struct GraphTables {
  std::map<Graph*, std::shared_ptr<Graph>> owned;  // by the program
  std::set<Graph*> graphs;
  std::set<GraphNode*> nodes;
  std::map<GraphExec*, std::shared_ptr<GraphExec>> executables;
  std::vector<std::shared_ptr<Capture>> captures;
  std::map<UserObject*, std::unique_ptr<UserObject>> user_objects;
  std::map<std::uint64_t, std::shared_ptr<Condition>> conditions;
  std::uint64_t next_id = 1;
};

}  // namespace spillway::simulator
