// Prints the status of each descriptor of a cuDNN library's graph interface. The first argument
// names the library. Standard error tells where its functions were found.
//
// Every kind of operation with each of its tensors, alone and on two threads; graphs, heuristics,
// engines and plans, as far as a machine without a GPU makes them.
#include <dlfcn.h>

#include <cstdio>
#include <sstream>
#include <string>
#include <thread>

#include "tests/unit/simulator_dnn/backend.h"

namespace spillway::test {
namespace {

using simulator::dnn::Backend;
using simulator::dnn::BackendFunctions;
using simulator::dnn::Dims;

struct Part {
  cudnnBackendDescriptorType_t kind;
  cudnnBackendAttributeName_t name;
  bool is_tensor;
};

// The attributes that name descriptors, of each kind.
constexpr Part kParts[] = {
#define KIND(kind) \
  {CUDNN_BACKEND_##kind##_DESCRIPTOR, static_cast<cudnnBackendAttributeName_t>(-1), false},
#define SETS(name, type)
#define LIST(name, type)
#define NUMBER(name)
#define FRACTIONS(name)
#define PART(name, kind)
#define PARTS(name, kind)
#define OPERATIONS(name)
#define ANSWERS(name, type)
#define TENSOR(name) {static_cast<cudnnBackendDescriptorType_t>(-1), CUDNN_ATTR_##name, true},
#define READS TENSOR
#define READS_MANY TENSOR
#define READS_OR_SETS TENSOR
#define WRITES TENSOR
#define UPDATES TENSOR
#define UPDATES_MANY TENSOR
#define READS_OR_WRITES TENSOR
#include "simulator/dnn/graph/attributes.inc"
};

// Fits every tensor of a convolution, and of a product.
const Dims kShape = {4, 4, 3, 3};

BackendFunctions functions;

template <class Function>
void Find(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  Dl_info info = {};
  dladdr(reinterpret_cast<void*>(*function), &info);
  std::fprintf(stderr, "%s %s\n", name, info.dli_fname ? info.dli_fname : "");
}

void SetTensors(std::ostream& out, const Part* first, Backend* operation) {
  std::int64_t uid = 1;
  for (const Part* part = first; part != std::end(kParts) && part->is_tensor; ++part) {
    const Backend tensor = simulator::dnn::MakeTensor(functions, {uid++, kShape});
    out << " " << operation->Set(part->name, tensor);
  }
}

Backend Settings(cudnnBackendDescriptorType_t kind, cudnnBackendAttributeName_t name,
                 cudnnBackendAttributeType_t type, int value) {
  Backend settings(functions, kind);
  settings.SetAs(name, type, 1, &value);
  settings.Finalize();
  return settings;
}

// Operations cannot do without them; cuDNN leaves some uninitialized.
void SetSettings(std::ostream& out, cudnnBackendDescriptorType_t kind, Backend* operation) {
  const auto convolution = simulator::dnn::MakeConvolution(functions, {});
  const Backend relu = Settings(CUDNN_BACKEND_POINTWISE_DESCRIPTOR, CUDNN_ATTR_POINTWISE_MODE,
                                CUDNN_TYPE_POINTWISE_MODE, CUDNN_POINTWISE_RELU_FWD);
  const Backend product = Settings(CUDNN_BACKEND_MATMUL_DESCRIPTOR, CUDNN_ATTR_MATMUL_COMP_TYPE,
                                   CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  const auto sets = [&](cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                        int value) { out << " " << operation->SetAs(name, type, 1, &value); };
  switch (kind) {
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
      out << " " << operation->Set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, convolution);
      break;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
      out << " "
          << operation->Set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, convolution);
      break;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
      out << " "
          << operation->Set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, convolution);
      break;
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
      out << " " << operation->Set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, relu);
      break;
    case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
      out << " " << operation->Set(CUDNN_ATTR_OPERATION_MATMUL_DESC, product);
      break;
    case CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR:
      sets(CUDNN_ATTR_OPERATION_GENSTATS_MODE, CUDNN_TYPE_GENSTATS_MODE, CUDNN_GENSTATS_SUM_SQSUM);
      sets(CUDNN_ATTR_OPERATION_GENSTATS_MATH_PREC, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
      break;
    case CUDNN_BACKEND_OPERATION_BN_FINALIZE_STATISTICS_DESCRIPTOR:
      sets(CUDNN_ATTR_OPERATION_BN_FINALIZE_STATS_MODE, CUDNN_TYPE_BN_FINALIZE_STATS_MODE,
           CUDNN_BN_FINALIZE_STATISTICS_TRAINING);
      sets(CUDNN_ATTR_OPERATION_BN_FINALIZE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
      break;
    case CUDNN_BACKEND_OPERATION_BN_BWD_WEIGHTS_DESCRIPTOR:
      sets(CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_MATH_PREC, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
      break;
    case CUDNN_BACKEND_OPERATION_CONCAT_DESCRIPTOR:
      out << " " << operation->Set(CUDNN_ATTR_OPERATION_CONCAT_AXIS, std::int64_t{0});
      break;
    case CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR:
      sets(CUDNN_ATTR_OPERATION_NORM_FWD_MODE, CUDNN_TYPE_NORM_MODE, CUDNN_BATCH_NORM);
      sets(CUDNN_ATTR_OPERATION_NORM_FWD_PHASE, CUDNN_TYPE_NORM_FWD_PHASE, CUDNN_NORM_FWD_TRAINING);
      break;
    case CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR:
      sets(CUDNN_ATTR_OPERATION_NORM_BWD_MODE, CUDNN_TYPE_NORM_MODE, CUDNN_BATCH_NORM);
      break;
    default:
      break;
  }
}

// From a configuration to a plan, and back to its engine.
void PrintPlan(std::ostream& out, const Backend& configuration) {
  Backend plan(functions, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  for (int time = 0; time < 2; ++time)
    out << " plan " << plan.Set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
  out << " " << plan.Finalize();
  std::int64_t count = -1, bytes = -1;
  out << " "
      << plan.GetAs(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &count, &bytes);
  Backend engine(functions, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t raw = engine.get();
  out << " engine "
      << configuration.GetAs(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count,
                             &raw);
  out << " " << engine.Get(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, std::int64_t{-1});
}

void PrintGraph(std::ostream& out, const Backend& operation) {
  Backend graph = simulator::dnn::UnfinishedGraph(functions, {&operation});
  const cudnnStatus_t status = graph.Finalize();
  out << " graph " << status;
  if (status != CUDNN_STATUS_SUCCESS) return;
  Backend heuristics(functions, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristics.Set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_HEUR_MODE_FALLBACK);
  out << " " << heuristics.Set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  out << " heuristics " << heuristics.Finalize();
  std::int64_t count = 0;
  heuristics.GetAs(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count,
                   nullptr);
  out << " " << count;
  if (count == 0) return;
  const Backend configuration(functions, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  cudnnBackendDescriptor_t raw = configuration.get();
  out << " "
      << heuristics.GetAs(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count,
                          &raw);
  PrintPlan(out, configuration);
}

std::string StatusesOfOperations() {
  std::ostringstream out;
  for (const Part* part = kParts; part != std::end(kParts); ++part) {
    const bool has_tensors = part + 1 != std::end(kParts) && (part + 1)->is_tensor;
    if (part->is_tensor || !has_tensors) continue;
    Backend operation(functions, part->kind);
    out << "kind " << part->kind << ":";
    SetTensors(out, part + 1, &operation);
    SetSettings(out, part->kind, &operation);
    const cudnnStatus_t status = operation.Finalize();
    out << " finalized " << status;
    if (status == CUDNN_STATUS_SUCCESS) PrintGraph(out, operation);
    out << "\n";
  }
  return out.str();
}

std::string StatusesOfMistakes() {
  std::ostringstream out;
  const std::int64_t number = 1;
  std::int64_t count = -1;
  Backend tensor(functions, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  out << "mistakes: " << functions.destroy(nullptr) << " " << functions.finalize(nullptr) << " "
      << functions.set(nullptr, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &number) << " "
      << tensor.SetAs(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, nullptr) << " "
      << tensor.SetAs(CUDNN_ATTR_TENSOR_UNIQUE_ID, static_cast<cudnnBackendAttributeType_t>(99), 1,
                      &number)
      << " " << tensor.SetAs(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_INT64, 1, &number) << " "
      << tensor.GetAs(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &count, nullptr) << "\n";
  return out.str();
}

int Main(const char* path) {
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) return std::fprintf(stderr, "%s\n", dlerror()), 2;
  Find(library, "cudnnBackendCreateDescriptor", &functions.create);
  Find(library, "cudnnBackendDestroyDescriptor", &functions.destroy);
  Find(library, "cudnnBackendFinalize", &functions.finalize);
  Find(library, "cudnnBackendSetAttribute", &functions.set);
  Find(library, "cudnnBackendGetAttribute", &functions.get);
  std::string on_threads[2];
  std::fputs((StatusesOfOperations() + StatusesOfMistakes()).c_str(), stdout);
  std::thread one([&] { on_threads[0] = StatusesOfOperations(); });
  std::thread other([&] { on_threads[1] = StatusesOfOperations(); });
  one.join();
  other.join();
  std::fputs((on_threads[0] + on_threads[1]).c_str(), stdout);
  return 0;
}

}  // namespace
}  // namespace spillway::test

int main(int count, char** arguments) {
  return count == 2 ? spillway::test::Main(arguments[1]) : 2;
}
