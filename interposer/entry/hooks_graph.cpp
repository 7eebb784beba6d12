// Graphs: memory that an instantiated graph names is resident at each launch, and in use until the
// launch is complete. Between launches it moves like any other memory. (ledger/graphs.h)
//
// The driver checks copy and set nodes when they are made, so their memory is resident then.
#include <algorithm>

#include "interposer/driver/driver_api.h"
#include "interposer/entry/around.h"
#include "interposer/entry/export.h"
#include "interposer/entry/graph_memory.h"
#include "interposer/entry/graph_reader.h"
#include "interposer/entry/parameter_scan.h"
#include "interposer/entry/pass_through.h"
#include "interposer/entry/transfers.h"
#include "interposer/execute/state/ordering_rules.h"
#include "interposer/ledger/word_scan.h"

namespace spillway::entry {
namespace {

using driver::Driver;
using interposer::GraphLedger;
using interposer::SetFacts;
using interposer::WriteFacts;
namespace ordering_rules = interposer::ordering_rules;

// Never destroyed: launches may come while the process exits.
GraphLedger& Ledger() {
  static GraphLedger* const ledger = new GraphLedger;
  return *ledger;
}

// Scans host bytes before the launch that copies them: its own kernels may follow them.
void AddPayloads(Collector& add, size_t first) {
  for (size_t i = first; i < add.transfers().size(); ++i) {
    const Transfer& transfer = add.transfers()[i];
    for (size_t row = 0; row < transfer.rows; ++row) {
      const auto* const bytes =
          reinterpret_cast<const void*>(transfer.from + row * transfer.from_pitch_bytes);
      ScanWords(bytes, std::min(transfer.width_bytes, interposer::kWholeBytes), add);
    }
  }
}

// A unified address may be in memory that the graph itself allocates, and does not exist yet.
bool IsFromHost(const CUDA_MEMCPY3D& copy) { return copy.srcMemoryType == CU_MEMORYTYPE_HOST; }

void AddWrite(const SetFacts& set, Collector& add, bool) {
  AddSet(add, set.base, set.width_bytes, set.rows, set.pitch_bytes);
}

void AddWrite(const CUDA_MEMCPY3D& copy, Collector& add, bool scans_payloads) {
  const size_t first = add.transfers().size();
  AddShape(add, &copy);
  if (!scans_payloads || !IsFromHost(copy)) return;
  AddPayloads(add, first);
  if (MayChangeBeforeItIsRead(copy.srcHost)) add.MarkUnsure();
}

// `facts.words` belong to nodes that may read and write there. (Note [Roles] in ledger/claims.h)
void AddFacts(const NodeFacts& facts, Collector& add, bool scans_payloads = false) {
  if (!facts.kernels.empty() || !facts.words.empty() || !facts.complete) add.MarkMixed();
  for (CUdeviceptr word : facts.words) add.MayTouch(word);
  if (!add.host_words().empty() && VisibleWork::ProgramActsInStreams()) add.MarkUnsure();
  for (const WriteFacts& write : facts.writes)
    std::visit([&](const auto& one) { AddWrite(one, add, scans_payloads); }, write);
}

// Nothing is known of what else the call uses.
void AddAllMemory(Collector& add) {
  ForEachJob([&add](JobMemory* job) {
    for (const CUdeviceptr base : job->view().LiveBases()) add.MayTouch(base);
  });
}

template <class Call>
CUresult AroundNaming(const NodeFacts& facts, Call call) {
  return Around(
      {}, Effect::kNames, [&](Collector& add) { AddFacts(facts, add); }, call);
}

// The driver checks only the addresses of copies and sets, not the kernels'.
NodeFacts FactsTogether(const GraphFacts& facts) {
  NodeFacts all;
  for (const auto& [node, one] : facts) {
    all.writes.insert(all.writes.end(), one.writes.begin(), one.writes.end());
    all.allocated_bytes += one.allocated_bytes;
  }
  return all;
}

bool Read(CUgraph graph, GraphFacts* facts) {
  const ReentryGuard guard;
  if (guard.IsOutermost()) *facts = ReadGraph(graph);
  return guard.IsOutermost();
}

std::uint64_t KeyOf(CUgraphExec executable) { return reinterpret_cast<std::uint64_t>(executable); }

template <class Call>
CUresult Charged(size_t bytes, const CUgraphExec* out, Call call) {
  if (!bytes) return call();
  const interposer::TurnPass turn;
  RecountLeftGraphMemory();
  return PassThrough(
      interposer::JobToCharge(), bytes, [out] { return KeyOf(*out); }, call);
}

template <class Call>
CUresult Instantiate(CUgraphExec* out, CUgraph graph, Call call) {
  GraphFacts facts;
  if (!Read(graph, &facts) || !out) return call();
  const NodeFacts looked_at = FactsTogether(facts);
  // Charges first: obtaining memory waits for calls in progress, so this thread must have none.
  const CUresult result =
      Charged(looked_at.allocated_bytes, out, [&] { return AroundNaming(looked_at, call); });
  if (result == CUDA_SUCCESS) Ledger().Instantiated(*out, std::move(facts));
  return result;
}

template <class Call>
CUresult Update(CUgraphExec executable, CUgraph graph, Call call) {
  GraphFacts facts;
  if (!Read(graph, &facts)) return call();
  const CUresult result = AroundNaming(FactsTogether(facts), call);
  const bool updated = result == CUDA_SUCCESS && ordering_rules::kUpdatesNameTheirMemory;
  if (updated && ordering_rules::kUpdatesKeepSwitches)
    Ledger().Updated(executable, std::move(facts));
  if (updated && !ordering_rules::kUpdatesKeepSwitches)
    Ledger().Instantiated(executable, std::move(facts));
  return result;
}

template <class Call>
CUresult ChangeNode(CUgraphExec executable, CUgraphNode node, NodeFacts facts, Call call) {
  const CUresult result = AroundNaming(facts, call);
  if (result == CUDA_SUCCESS) Ledger().NodeChanged(executable, node, std::move(facts));
  return result;
}

struct NewLaunch {
  CUgraphExec executable;
  const NodeFacts* facts;
};
void NoteGraphScan(void* launch) {
  const auto& made = *static_cast<const NewLaunch*>(launch);
  Ledger().MarkScanned(made.executable, *made.facts);
}

template <class Call>
CUresult Launch(CUgraphExec executable, StreamName stream, Call call) {
  if (ReentryGuard guard; !guard.IsOutermost() || interposer::IsCapturing(stream)) return call();
  const GraphLedger::Launch launch = Ledger().AboutToLaunch(executable);
  NewLaunch made{executable, launch.facts.get()};
  const auto collect = [&](Collector& add) {
    add.SetTraceName("cuGraphLaunch");
    add.MarkVisible();  // it may have host functions and copies to the host
    if (launch.facts) add.MarkGraph();
    if (launch.facts && ordering_rules::kGraphsNameTheirMemory) AddFacts(*launch.facts, add, true);
    if (!launch.facts || !launch.facts->complete) add.MarkUnsure();
    const bool names_all = !launch.facts || launch.facts->names_all;
    if (names_all && ordering_rules::kGraphsNameTheirMemory) AddAllMemory(add);
    if (launch.facts && launch.brings_new_kernels) add.MarkNew(NoteGraphScan, &made);
  };
  return Around(stream, Effect::kLaunches, collect, call);
}

// The ledger's entry and the charge's name go first: the driver may reuse the handle at once.
template <class Call>
CUresult Destroy(CUgraphExec executable, Call call) {
  const ReentryGuard guard;
  if (!guard.IsOutermost()) return call();
  GraphLedger::Taken taken = Ledger().Take(executable);
  const CUresult result = EndPassedThrough(KeyOf(executable), KeepLeftGraphMemory, call);
  if (result != CUDA_SUCCESS) Ledger().PutBack(std::move(taken));
  return result;
}

template <class Params, class Read, class Call>
CUresult AroundParams(const Params* params, Read read, Call call) {
  return params ? AroundNaming(read(*params), call) : call();
}

template <class Params, class Read, class Call>
CUresult ChangeParams(CUgraphExec executable, CUgraphNode node, const Params* params, Read read,
                      Call call) {
  return params ? ChangeNode(executable, node, read(*params), call) : call();
}

NodeFacts ReadBatch(const CUDA_BATCH_MEM_OP_NODE_PARAMS& params) {
  return ReadBatchNode(params.paramArray, params.count);
}
// Nodes that are only made do not need their kernels' parameters read.
NodeFacts ReadForMaking(const CUgraphNodeParams& params) {
  return params.type == CU_GRAPH_NODE_TYPE_KERNEL || params.type == CU_GRAPH_NODE_TYPE_GRAPH
             ? NodeFacts()
             : ReadNode(params);
}
template <class Call>
CUresult AddNode(const CUgraphNode* out, const CUgraphNodeParams* params, Call call) {
  const CUresult result = AroundParams(params, ReadForMaking, call);
  if (result == CUDA_SUCCESS) NoteAdded(*out, *params);
  return result;
}
constexpr auto kReadCopy = [](const CUDA_MEMCPY3D& copy) { return ReadCopyNode(copy); };
constexpr auto kReadSet = [](const CUDA_MEMSET_NODE_PARAMS& set) { return ReadSetNode(set); };
constexpr auto kReadKernel = [](const auto& kernel) { return ReadKernelNode(kernel); };

}  // namespace
}  // namespace spillway::entry

using spillway::driver::Driver;
using namespace spillway::entry;

#define SPILLWAY_NODE(name, params, read, parameters, arguments)                \
  SPILLWAY_EXPORT CUresult name parameters {                                    \
    return AroundParams(params, read, [&] { return Driver().name arguments; }); \
  }
SPILLWAY_NODE(cuGraphAddMemcpyNode, copy, kReadCopy,
              (CUgraphNode * node, CUgraph graph, const CUgraphNode* after, size_t count,
               const CUDA_MEMCPY3D* copy, CUcontext context),
              (node, graph, after, count, copy, context))
SPILLWAY_NODE(cuGraphMemcpyNodeSetParams, copy, kReadCopy,
              (CUgraphNode node, const CUDA_MEMCPY3D* copy), (node, copy))
SPILLWAY_NODE(cuGraphAddMemsetNode, set, kReadSet,
              (CUgraphNode * node, CUgraph graph, const CUgraphNode* after, size_t count,
               const CUDA_MEMSET_NODE_PARAMS* set, CUcontext context),
              (node, graph, after, count, set, context))
SPILLWAY_NODE(cuGraphMemsetNodeSetParams, set, kReadSet,
              (CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* set), (node, set))
SPILLWAY_NODE(cuGraphAddBatchMemOpNode, batch, ReadBatch,
              (CUgraphNode * node, CUgraph graph, const CUgraphNode* after, size_t count,
               const CUDA_BATCH_MEM_OP_NODE_PARAMS* batch),
              (node, graph, after, count, batch))
SPILLWAY_NODE(cuGraphBatchMemOpNodeSetParams, batch, ReadBatch,
              (CUgraphNode node, const CUDA_BATCH_MEM_OP_NODE_PARAMS* batch), (node, batch))
SPILLWAY_EXPORT CUresult cuGraphAddNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                                        size_t count, CUgraphNodeParams* params) {
  return AddNode(node, params,
                 [&] { return Driver().cuGraphAddNode(node, graph, after, count, params); });
}
SPILLWAY_EXPORT CUresult cuGraphAddNode_v2(CUgraphNode* node, CUgraph graph,
                                           const CUgraphNode* after, const CUgraphEdgeData* edges,
                                           size_t count, CUgraphNodeParams* params) {
  return AddNode(node, params, [&] {
    return Driver().cuGraphAddNode_v2(node, graph, after, edges, count, params);
  });
}
SPILLWAY_EXPORT CUresult cuGraphDestroyNode(CUgraphNode node) {
  ForgetNode(node);
  return Driver().cuGraphDestroyNode(node);
}
SPILLWAY_EXPORT CUresult cuGraphDestroy(CUgraph graph) {
  ForgetNodes(graph);
  return Driver().cuGraphDestroy(graph);
}
SPILLWAY_NODE(cuGraphNodeSetParams, params, ReadForMaking,
              (CUgraphNode node, CUgraphNodeParams* params), (node, params))

#define SPILLWAY_EXEC_NODE(name, params, read, parameters, arguments)                             \
  SPILLWAY_EXPORT CUresult name parameters {                                                      \
    return ChangeParams(executable, node, params, read, [&] { return Driver().name arguments; }); \
  }
SPILLWAY_EXEC_NODE(cuGraphExecKernelNodeSetParams, kernel, kReadKernel,
                   (CUgraphExec executable, CUgraphNode node,
                    const CUDA_KERNEL_NODE_PARAMS_v1* kernel),
                   (executable, node, kernel))
SPILLWAY_EXEC_NODE(cuGraphExecKernelNodeSetParams_v2, kernel, kReadKernel,
                   (CUgraphExec executable, CUgraphNode node,
                    const CUDA_KERNEL_NODE_PARAMS* kernel),
                   (executable, node, kernel))
SPILLWAY_EXEC_NODE(cuGraphExecMemcpyNodeSetParams, copy, kReadCopy,
                   (CUgraphExec executable, CUgraphNode node, const CUDA_MEMCPY3D* copy,
                    CUcontext context),
                   (executable, node, copy, context))
SPILLWAY_EXEC_NODE(cuGraphExecMemsetNodeSetParams, set, kReadSet,
                   (CUgraphExec executable, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* set,
                    CUcontext context),
                   (executable, node, set, context))
SPILLWAY_EXEC_NODE(cuGraphExecBatchMemOpNodeSetParams, batch, ReadBatch,
                   (CUgraphExec executable, CUgraphNode node,
                    const CUDA_BATCH_MEM_OP_NODE_PARAMS* batch),
                   (executable, node, batch))
SPILLWAY_EXEC_NODE(cuGraphExecNodeSetParams, params, ReadNode,
                   (CUgraphExec executable, CUgraphNode node, CUgraphNodeParams* params),
                   (executable, node, params))
SPILLWAY_EXPORT CUresult cuGraphNodeSetEnabled(CUgraphExec executable, CUgraphNode node,
                                               unsigned int enabled) {
  const CUresult result = Driver().cuGraphNodeSetEnabled(executable, node, enabled);
  const bool switched = result == CUDA_SUCCESS && ordering_rules::kSwitchesAreNoted;
  if (switched) Ledger().NodeSwitched(executable, node, enabled != 0);
  return result;
}
SPILLWAY_EXPORT CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec executable,
                                                            CUgraphNode node, CUgraph child) {
  return ChangeNode(executable, node, ReadWhole(child), [&] {
    return Driver().cuGraphExecChildGraphNodeSetParams(executable, node, child);
  });
}

#define SPILLWAY_INSTANTIATE(name, parameters, arguments)                    \
  SPILLWAY_EXPORT CUresult name parameters {                                 \
    return Instantiate(out, graph, [&] { return Driver().name arguments; }); \
  }
SPILLWAY_INSTANTIATE(cuGraphInstantiate,
                     (CUgraphExec * out, CUgraph graph, CUgraphNode* node, char* log, size_t bytes),
                     (out, graph, node, log, bytes))
SPILLWAY_INSTANTIATE(cuGraphInstantiate_v2,
                     (CUgraphExec * out, CUgraph graph, CUgraphNode* node, char* log, size_t bytes),
                     (out, graph, node, log, bytes))
SPILLWAY_INSTANTIATE(cuGraphInstantiateWithFlags,
                     (CUgraphExec * out, CUgraph graph, unsigned long long flags),
                     (out, graph, flags))
SPILLWAY_INSTANTIATE(cuGraphInstantiateWithParams,
                     (CUgraphExec * out, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* params),
                     (out, graph, params))
SPILLWAY_INSTANTIATE(cuGraphInstantiateWithParams_ptsz,
                     (CUgraphExec * out, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* params),
                     (out, graph, params))
SPILLWAY_EXPORT CUresult cuGraphExecUpdate(CUgraphExec executable, CUgraph graph, CUgraphNode* node,
                                           CUgraphExecUpdateResult* result) {
  return Update(executable, graph,
                [&] { return Driver().cuGraphExecUpdate(executable, graph, node, result); });
}
SPILLWAY_EXPORT CUresult cuGraphExecUpdate_v2(CUgraphExec executable, CUgraph graph,
                                              CUgraphExecUpdateResultInfo* info) {
  return Update(executable, graph,
                [&] { return Driver().cuGraphExecUpdate_v2(executable, graph, info); });
}
SPILLWAY_EXPORT CUresult cuGraphExecDestroy(CUgraphExec executable) {
  return Destroy(executable, [&] { return Driver().cuGraphExecDestroy(executable); });
}

SPILLWAY_EXPORT CUresult cuGraphLaunch(CUgraphExec executable, CUstream stream) {
  return Launch(executable, {stream, false},
                [&] { return Driver().cuGraphLaunch(executable, stream); });
}
SPILLWAY_EXPORT CUresult cuGraphLaunch_ptsz(CUgraphExec executable, CUstream stream) {
  return Launch(executable, {stream, true},
                [&] { return Driver().cuGraphLaunch_ptsz(executable, stream); });
}
