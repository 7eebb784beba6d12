// Graphs: a few kernels, copies and sets captured on a stream, instantiated in several ways,
// launched, updated.
//
// An object has two bodies of the same shape over different memory, and an update exchanges them.
// Bodies use only what was written before the graph was made, so a launch leaves everything as
// written. Half of the graphs share whole buffers among their nodes (shared_bodies.h). Captures are
// of the calling thread alone, on streams that do not block.
#include <algorithm>
#include <memory>
#include <optional>
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

struct Instance {
  CUcontext context = nullptr;
  CUgraph graph = nullptr;  // null when it was destroyed early
  CUgraphExec executable = nullptr;
  std::vector<Operation> bodies;  // the present one, then the other one

  ~Instance() {
    cuCtxSetCurrent(context);
    if (executable != nullptr) cuGraphExecDestroy(executable);
    if (graph != nullptr) cuGraphDestroy(graph);
  }
};

enum class Way { kAsItIs, kCloned, kNested, kWithoutItsGraph };

CUgraph Nested(CUgraph child) {
  CUgraph parent = nullptr;
  CUgraphNode node = nullptr;
  SPILLWAY_DRIVER_CALL(cuGraphCreate(&parent, 0));
  SPILLWAY_DRIVER_CALL(cuGraphAddChildGraphNode(&node, parent, nullptr, 0, child));
  return parent;
}

// Made in the chosen way: an update must have the same shape.
CUgraph Made(const Operation& operation, const std::vector<Operation>& body, Way way,
             const Running& running) {
  const CUgraph captured = Capture(operation, body, running);
  CUgraph made = captured;
  if (way == Way::kCloned) SPILLWAY_DRIVER_CALL(cuGraphClone(&made, captured));
  if (way == Way::kNested) made = Nested(captured);
  if (made != captured) SPILLWAY_DRIVER_CALL(cuGraphDestroy(captured));
  return made;
}

class GraphsFeature : public Feature {
 public:
  const char* Name() const override { return "graphs"; }
  unsigned PerMille() const override { return 150; }

  void Propose(Proposer& proposer) const override {
    const std::uint64_t choice = proposer.Dice().Below(100);
    const int object = proposer.PickObject();
    if (choice < 25 || object == kNone) return ProposeGraph(proposer);
    if (choice < 70) {
      ProposeLaunch(proposer, object);
    } else if (choice < 93) {
      ProposeUpdate(proposer, object);
    } else {
      proposer.Add({.kind = Kind::kFeatureCall, .object = object, .object_use = ObjectUse::kEnd});
    }
  }

  void Run(const Operation& operation, const Running& running) const override {
    std::shared_ptr<void>& object = running.table.objects[operation.object];
    auto* const instance = static_cast<Instance*>(object.get());
    if (operation.object_use == ObjectUse::kMake) {
      object = Make(operation, running);
    } else if (operation.kind == Kind::kFeatureWork) {
      SPILLWAY_DRIVER_CALL(cuGraphLaunch(instance->executable, running.table.StreamOf(operation)));
    } else if (operation.object_use == ObjectUse::kWrite) {
      Update(*instance, operation, running);
    }
  }

 private:
  static std::vector<Operation> FirstOf(const std::vector<Operation>& bodies) {
    return {bodies.begin(), bodies.begin() + static_cast<std::ptrdiff_t>(bodies.size() / 2)};
  }
  static Way WayOf(const Operation& operation) { return static_cast<Way>(operation.form); }

  static std::shared_ptr<Instance> Make(const Operation& operation, const Running& running) {
    auto instance = std::make_shared<Instance>();
    instance->context = running.context;
    instance->bodies = operation.body;
    instance->graph = Made(operation, FirstOf(operation.body), WayOf(operation), running);
    SPILLWAY_DRIVER_CALL(cuGraphInstantiate(&instance->executable, instance->graph, 0));
    if (WayOf(operation) == Way::kWithoutItsGraph) {
      SPILLWAY_DRIVER_CALL(cuGraphDestroy(instance->graph));
      instance->graph = nullptr;
    }
    return instance;
  }

  static void Update(Instance& instance, const Operation& operation, const Running& running) {
    auto& bodies = instance.bodies;
    std::rotate(bodies.begin(), bodies.begin() + static_cast<std::ptrdiff_t>(bodies.size() / 2),
                bodies.end());
    for (std::size_t i = 0; i < bodies.size(); ++i)
      bodies[i].salt = Scramble(operation.salt + i) & ~1ull;
    const CUgraph fresh = Made(operation, FirstOf(bodies), WayOf(operation), running);
    CUgraphExecUpdateResultInfo info = {};
    SPILLWAY_DRIVER_CALL(cuGraphExecUpdate(instance.executable, fresh, &info));
    SPILLWAY_DRIVER_CALL(cuGraphDestroy(fresh));
  }

  static std::optional<View> PickPart(Proposer& proposer) {
    const int buffer = proposer.Choose().PickBuffer(
        [](const Buffer& b) { return !b.InHostMemory() && b.form != AllocForm::kFeature; });
    if (buffer == kNone) return std::nullopt;
    std::optional<View> part = proposer.Choose().PickReadable(buffer, kLargestWindowBytes);
    if (part && (part->bytes < 64 || !part->IsDense())) return std::nullopt;
    return part;
  }

  static std::optional<Operation> ProposePart(Proposer& proposer, Kind kind, std::uint8_t form) {
    std::optional<View> in = PickPart(proposer), out = PickPart(proposer);
    if (!in || !out || in->buffer == out->buffer) return std::nullopt;
    Operation part{.kind = kind, .form = form, .on_stream = true};
    if (kind == Kind::kCopy) in->bytes = out->bytes = std::min(in->bytes, out->bytes);
    if (kind == Kind::kKernel) part.slow = proposer.Dice().Percent(30);
    if (kind != Kind::kFill) part.in = {*in};
    part.out = *out;
    return part;
  }

  static void ProposeParts(Proposer& proposer, std::vector<Operation>& first,
                           std::vector<Operation>& second) {
    const std::uint64_t choice = proposer.Dice().Below(10);
    const Kind kind = choice < 6 ? Kind::kKernel : choice < 9 ? Kind::kCopy : Kind::kFill;
    std::uint8_t form = 0;  // CopyForm::kTyped, FillForm::kD8
    if (kind == Kind::kKernel)
      form = static_cast<std::uint8_t>(proposer.Dice().Below(4));  // any LaunchForm
    const std::optional<Operation> one = ProposePart(proposer, kind, form);
    const std::optional<Operation> other = ProposePart(proposer, kind, form);
    if (!one || !other) return;
    first.push_back(*one);
    second.push_back(*other);
  }

  static void ProposeGraph(Proposer& proposer) {
    if (proposer.Now().ObjectsOf(FeatureNamed("graphs"), proposer.Thread()).size() >= kMostObjects)
      return;
    const int stream = PickCaptureStream(proposer);
    if (stream == kNone) return;
    Operation make{.kind = Kind::kFeatureCall,
                   .form = static_cast<std::uint8_t>(proposer.Dice().Below(4)),
                   .stream = stream,
                   .object = proposer.NewObject(),
                   .object_use = ObjectUse::kMake};
    std::vector<Operation> second;
    const bool shares = proposer.Dice().Percent(50);
    if (shares) {
      SharedBodies shared = ProposeSharedBodies(proposer);
      make.body = std::move(shared.first);
      second = std::move(shared.second);
    } else {
      for (std::uint64_t parts = proposer.Dice().Between(1, kLongestBody); parts > 0; --parts)
        ProposeParts(proposer, make.body, second);
    }
    make.body.insert(make.body.end(), second.begin(), second.end());
    for (const Operation& part : make.body) {
      make.names.push_back(part.out);
      make.names.insert(make.names.end(), part.in.begin(), part.in.end());
    }
    if (make.body.empty() || !proposer.Add(make)) return;
    if (shares) ProposeRounds(proposer, make.object);
  }

  static void ProposeLaunch(Proposer& proposer, int object) {
    proposer.Add({.kind = Kind::kFeatureWork,
                  .on_stream = true,
                  .stream = proposer.Choose().PickStream(),
                  .object = object,
                  .object_use = ObjectUse::kWrite});
  }

  static void ProposeRounds(Proposer& proposer, int object) {
    constexpr int kRounds = 2;
    for (int round = 0; round < kRounds; ++round) {
      ProposeLaunch(proposer, object);
      UseLargeMemory(proposer);
    }
    ProposeLaunch(proposer, object);
  }

  static void ProposeUpdate(Proposer& proposer, int object) {
    const int stream = PickCaptureStream(proposer);
    if (stream == kNone) return;
    proposer.Add({.kind = Kind::kFeatureCall,
                  .form = proposer.Now().ObjectAt(object).maker.form,
                  .stream = stream,
                  .object = object,
                  .object_use = ObjectUse::kWrite});
  }
};

}  // namespace

const Feature& Graphs() {
  static const GraphsFeature graphs;
  return graphs;
}

}  // namespace spillway::fuzz
