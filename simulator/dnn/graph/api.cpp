// cudnnBackendPopulateCudaGraph and UpdateCudaGraph are not here: their stand-ins answer that they
// are not supported.
#include <new>

#include "simulator/dnn/cudnn/descriptors.h"
#include "simulator/dnn/graph/descriptor.h"
#include "simulator/dnn/graph/finalize.h"
#include "simulator/dnn/graph/plan.h"

using namespace spillway::simulator::dnn::graph;

namespace {

Descriptor* Of(cudnnBackendDescriptor_t descriptor) { return static_cast<Descriptor*>(descriptor); }

}  // namespace

extern "C" {

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t kind,
                                           cudnnBackendDescriptor_t* descriptor) {
  SPILLWAY_DNN_REQUIRE(descriptor != nullptr, CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  SPILLWAY_DNN_REQUIRE(!KindName(kind).empty(), CUDNN_STATUS_NOT_SUPPORTED);
  *descriptor = new (std::nothrow) Descriptor{NewState(kind)};
  return *descriptor != nullptr ? CUDNN_STATUS_SUCCESS
                                : CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  SPILLWAY_DNN_REQUIRE(descriptor != nullptr, CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  delete Of(descriptor);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendInitialize(cudnnBackendDescriptor_t descriptor) {
  SPILLWAY_DNN_REQUIRE(descriptor != nullptr, CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  Of(descriptor)->state = NewState(Of(descriptor)->state->kind);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  SPILLWAY_DNN_REQUIRE(descriptor != nullptr, CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  return Finalize(*Of(descriptor)->state);
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count,
                                       const void* elements) {
  SPILLWAY_DNN_REQUIRE(descriptor != nullptr, CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  return SetAttribute(*Of(descriptor), name, type, count, elements);
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t requested,
                                       int64_t* count, void* elements) {
  SPILLWAY_DNN_REQUIRE(descriptor != nullptr, CUDNN_STATUS_BAD_PARAM);
  return GetAttribute(*Of(descriptor), name, type, requested, count, elements);
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                  cudnnBackendDescriptor_t variant_pack) {
  SPILLWAY_DNN_REQUIRE(handle != nullptr && plan != nullptr && variant_pack != nullptr,
                       CUDNN_STATUS_BAD_PARAM);
  const State& what = *Of(plan)->state;
  const State& with = *Of(variant_pack)->state;
  SPILLWAY_DNN_REQUIRE(what.plan != nullptr, CUDNN_STATUS_BAD_PARAM);
  SPILLWAY_DNN_REQUIRE(with.kind == CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_STATUS_BAD_PARAM);
  SPILLWAY_DNN_REQUIRE(with.is_finalized, CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED);
  return Execute(handle, *what.plan, with);
}

}  // extern "C"
