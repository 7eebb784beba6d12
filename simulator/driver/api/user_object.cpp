#include "simulator/driver/calls/user_object.h"
#include "simulator/driver/calls/graph_handles.h"

namespace spillway::simulator {

UserObject& UserObjectOf(const Call& call, CUuserObject handle) {
  const auto found = call.sim.graphs.user_objects.find(reinterpret_cast<UserObject*>(handle));
  Require(found != call.sim.graphs.user_objects.end());
  return *found->second;
}

void ReleaseUserObject(Call& call, UserObject* object, unsigned count, const OperationRef& after) {
  object->references -= std::min(count, object->references);
  if (object->references != 0) return;
  auto destroy = std::make_shared<Operation>();
  destroy->name = "user object";
  destroy->resource = Resource::kHostThread;
  destroy->device = 0;
  destroy->effect = [function = object->destroy, data = object->data] { function(data); };
  call.sim.graphs.user_objects.erase(object);
  call.sim.engine.Submit(call.lock, destroy, {after});
}

void ReleaseUserObjects(Call& call, const HeldObjects& held, const OperationRef& after) {
  for (const auto& [object, count] : held) ReleaseUserObject(call, object, count, after);
}

}  // namespace spillway::simulator

using namespace spillway::simulator;

SIM_API(cuUserObjectCreate)
(CUuserObject* object, void* data, CUhostFn destroy, unsigned int references, unsigned int flags) {
  return WithDriver([&](Call& call) {
    Require(object != nullptr && destroy != nullptr && references != 0);
    Require(flags == CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
    auto made = std::make_unique<UserObject>(UserObject{destroy, data, references});
    *object = reinterpret_cast<CUuserObject>(made.get());
    call.sim.graphs.user_objects.emplace(made.get(), std::move(made));
  });
}

SIM_API(cuUserObjectRetain)(CUuserObject object, unsigned int count) {
  return WithDriver([&](Call& call) {
    Require(count != 0);
    UserObjectOf(call, object).references += count;
  });
}

SIM_API(cuUserObjectRelease)(CUuserObject object, unsigned int count) {
  return WithDriver([&](Call& call) {
    Require(count != 0);
    ReleaseUserObject(call, &UserObjectOf(call, object), count);
  });
}

SIM_API(cuGraphRetainUserObject)
(CUgraph graph_handle, CUuserObject object_handle, unsigned int count, unsigned int flags) {
  return WithDriver([&](Call& call) {
    Require(count != 0 && (flags & ~unsigned{CU_GRAPH_USER_OBJECT_MOVE}) == 0);
    Graph& graph = GraphOf(call, graph_handle);
    UserObject& object = UserObjectOf(call, object_handle);
    graph.objects[&object] += count;
    if (flags == 0) object.references += count;
  });
}

SIM_API(cuGraphReleaseUserObject)
(CUgraph graph_handle, CUuserObject object_handle, unsigned int count) {
  return WithDriver([&](Call& call) {
    Graph& graph = GraphOf(call, graph_handle);
    UserObject& object = UserObjectOf(call, object_handle);
    const auto held = graph.objects.find(&object);
    Require(count != 0 && held != graph.objects.end() && held->second >= count);
    held->second -= count;
    if (held->second == 0) graph.objects.erase(held);
    ReleaseUserObject(call, &object, count);
  });
}
