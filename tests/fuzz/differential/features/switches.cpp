// Graphs whose nodes are switched off and on, changed one by one and updated together between
// launches.
//
// A body has one to three kernels, copies and sets over whole buffers, mostly one: what a lone copy
// or set overwrites need not come back for a launch, if it runs. As in `graphs` there are two
// bodies of the same shape, but each node has the part of either. The first graph names the
// executable's nodes, and stays.
#include <algorithm>
#include <memory>
#include <utility>

#include "tests/fuzz/differential/features/all.h"
#include "tests/fuzz/differential/features/capturing.h"
#include "tests/fuzz/differential/features/shared_bodies.h"
#include "tests/fuzz/differential/random.h"
#include "tests/fuzz/differential/running.h"
#include "tests/support/driver_check.h"

namespace spillway::fuzz {
namespace {

constexpr std::size_t kMostObjects = 3;  // of a thread
constexpr std::size_t kLongestBody = 3;

enum class Change : std::uint8_t { kSwitchOff, kSwitchOn, kNode, kAll };

struct Instance {
  CUcontext context = nullptr;
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  std::vector<CUgraphNode> nodes;        // of `graph`, in order
  std::vector<Operation> parts, others;  // what each node does, and what it may do instead

  ~Instance() {
    cuCtxSetCurrent(context);
    if (executable != nullptr) cuGraphExecDestroy(executable);
    if (graph != nullptr) cuGraphDestroy(graph);
  }
};

// Each node of a captured body waits for the one before it.
std::vector<CUgraphNode> NodesOf(CUgraph graph) {
  std::vector<CUgraphNode> nodes;
  CUgraphNode node = nullptr;
  std::size_t count = 1;
  SPILLWAY_DRIVER_CALL(cuGraphGetRootNodes(graph, &node, &count));
  while (count == 1) {
    nodes.push_back(node);
    SPILLWAY_DRIVER_CALL(cuGraphNodeGetDependentNodes(nodes.back(), &node, nullptr, &count));
  }
  return nodes;
}

void GiveParameters(Kind kind, CUgraphExec executable, CUgraphNode node, CUgraphNode from,
                    CUcontext context) {
  if (kind == Kind::kKernel) {
    CUDA_KERNEL_NODE_PARAMS kernel{};
    SPILLWAY_DRIVER_CALL(cuGraphKernelNodeGetParams(from, &kernel));
    SPILLWAY_DRIVER_CALL(cuGraphExecKernelNodeSetParams(executable, node, &kernel));
  } else if (kind == Kind::kCopy) {
    CUDA_MEMCPY3D copy{};
    SPILLWAY_DRIVER_CALL(cuGraphMemcpyNodeGetParams(from, &copy));
    SPILLWAY_DRIVER_CALL(cuGraphExecMemcpyNodeSetParams(executable, node, &copy, context));
  } else {
    CUDA_MEMSET_NODE_PARAMS set{};
    SPILLWAY_DRIVER_CALL(cuGraphMemsetNodeGetParams(from, &set));
    SPILLWAY_DRIVER_CALL(cuGraphExecMemsetNodeSetParams(executable, node, &set, context));
  }
}

class SwitchesFeature : public Feature {
 public:
  const char* Name() const override { return "switches"; }
  unsigned PerMille() const override { return 120; }
  bool IsDrawn() const override { return false; }

  void Propose(Proposer& proposer) const override {
    const std::uint64_t choice = proposer.Dice().Below(100);
    const int object = proposer.PickObject();
    if (choice < 20 || object == kNone) return ProposeGraph(proposer);
    if (choice < 95) return ProposeRound(proposer, object);
    proposer.Add({.kind = Kind::kFeatureCall, .object = object, .object_use = ObjectUse::kEnd});
  }

  void Run(const Operation& operation, const Running& running) const override {
    std::shared_ptr<void>& object = running.table.objects[operation.object];
    auto* const instance = static_cast<Instance*>(object.get());
    if (operation.object_use == ObjectUse::kMake) {
      object = Make(operation, running);
    } else if (operation.kind == Kind::kFeatureWork) {
      SPILLWAY_DRIVER_CALL(cuGraphLaunch(instance->executable, running.table.StreamOf(operation)));
    } else if (operation.object_use == ObjectUse::kWrite) {
      MakeChange(*instance, operation, running);
    }
  }

 private:
  static std::shared_ptr<Instance> Make(const Operation& operation, const Running& running) {
    auto instance = std::make_shared<Instance>();
    const auto middle =
        operation.body.begin() + static_cast<std::ptrdiff_t>(operation.body.size() / 2);
    instance->context = running.context;
    instance->parts.assign(operation.body.begin(), middle);
    instance->others.assign(middle, operation.body.end());
    instance->graph = Capture(operation, instance->parts, running);
    instance->nodes = NodesOf(instance->graph);
    SPILLWAY_DRIVER_CALL(cuGraphInstantiate(&instance->executable, instance->graph, 0));
    return instance;
  }

  static void MakeChange(Instance& instance, const Operation& operation, const Running& running) {
    const std::size_t place = (operation.salt >> 8) % instance.nodes.size();
    const auto change = static_cast<Change>(operation.form);
    if (change == Change::kAll) return Update(instance, operation, running);
    if (change == Change::kNode) return ChangeNode(instance, place, operation, running);
    SPILLWAY_DRIVER_CALL(cuGraphNodeSetEnabled(instance.executable, instance.nodes[place],
                                               change == Change::kSwitchOn ? 1 : 0));
  }

  static void Exchange(Instance& instance, std::size_t place, std::uint64_t salt) {
    std::swap(instance.parts[place], instance.others[place]);
    instance.parts[place].salt = Scramble(salt + place) & ~1ull;
  }

  static void Update(Instance& instance, const Operation& operation, const Running& running) {
    for (std::size_t place = 0; place < instance.parts.size(); ++place)
      Exchange(instance, place, operation.salt);
    const CUgraph fresh = Capture(operation, instance.parts, running);
    CUgraphExecUpdateResultInfo info = {};
    SPILLWAY_DRIVER_CALL(cuGraphExecUpdate(instance.executable, fresh, &info));
    SPILLWAY_DRIVER_CALL(cuGraphDestroy(fresh));
  }

  static void ChangeNode(Instance& instance, std::size_t place, const Operation& operation,
                         const Running& running) {
    Exchange(instance, place, operation.salt);
    const Operation& part = instance.parts[place];
    const CUgraph fresh = Capture(operation, {part}, running);
    GiveParameters(part.kind, instance.executable, instance.nodes[place], NodesOf(fresh).front(),
                   running.context);
    SPILLWAY_DRIVER_CALL(cuGraphDestroy(fresh));
  }

  static void ProposeGraph(Proposer& proposer) {
    if (proposer.Now().ObjectsOf(FeatureNamed("switches"), proposer.Thread()).size() >=
        kMostObjects)
      return;
    const int stream = PickCaptureStream(proposer);
    if (stream == kNone) return;
    SharedBodies bodies = ProposeSharedBodies(proposer);
    const std::size_t length =
        proposer.Dice().Percent(70) ? 1 : proposer.Dice().Between(2, kLongestBody);
    bodies.first.resize(std::min(length, bodies.first.size()));
    bodies.second.resize(bodies.first.size());
    Operation make{.kind = Kind::kFeatureCall,
                   .stream = stream,
                   .object = proposer.NewObject(),
                   .object_use = ObjectUse::kMake,
                   .body = bodies.first};
    make.body.insert(make.body.end(), bodies.second.begin(), bodies.second.end());
    for (const Operation& part : make.body) {
      make.names.push_back(part.out);
      make.names.insert(make.names.end(), part.in.begin(), part.in.end());
    }
    if (!make.body.empty() && proposer.Add(make)) ProposeRound(proposer, make.object);
  }

  // Changes, and a launch for which the graph's memory is away.
  static void ProposeRound(Proposer& proposer, int object) {
    for (std::uint64_t changes = proposer.Dice().Between(1, 3); changes > 0; --changes)
      ProposeChange(proposer, object);
    UseLargeMemory(proposer);
    proposer.Add({.kind = Kind::kFeatureWork,
                  .on_stream = true,
                  .stream = proposer.Choose().PickStream(),
                  .object = object,
                  .object_use = ObjectUse::kWrite});
  }

  static Change PickChange(Random& dice) {
    const std::uint64_t choice = dice.Below(100);
    if (choice < 35) return Change::kSwitchOff;
    if (choice < 55) return Change::kSwitchOn;
    return choice < 75 ? Change::kNode : Change::kAll;
  }

  static void ProposeChange(Proposer& proposer, int object) {
    const int stream = PickCaptureStream(proposer);
    if (stream == kNone) return;
    proposer.Add({.kind = Kind::kFeatureCall,
                  .form = static_cast<std::uint8_t>(PickChange(proposer.Dice())),
                  .stream = stream,
                  .object = object,
                  .object_use = ObjectUse::kWrite});
  }
};

}  // namespace

const Feature& Switches() {
  static const SwitchesFeature switches;
  return switches;
}

}  // namespace spillway::fuzz
