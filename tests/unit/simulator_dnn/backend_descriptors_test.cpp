// Backend descriptors: the same answers from the simulated libcudnn and from the real one, which
// handles descriptors without a GPU. SPILLWAY_TEST_CUDNN names the library.
#include "tests/unit/simulator_dnn/backend.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace spillway::simulator::dnn {
namespace {

class BackendDescriptorTest : public testing::Test {
 protected:
  void SetUp() override {
    const char* const path = std::getenv("SPILLWAY_TEST_CUDNN");
    ASSERT_NE(path, nullptr);
    void* const library = dlopen(path, RTLD_NOW);
    ASSERT_NE(library, nullptr) << dlerror();
    Find(library, "cudnnBackendCreateDescriptor", &f_.create);
    Find(library, "cudnnBackendDestroyDescriptor", &f_.destroy);
    Find(library, "cudnnBackendFinalize", &f_.finalize);
    Find(library, "cudnnBackendSetAttribute", &f_.set);
    Find(library, "cudnnBackendGetAttribute", &f_.get);
  }

  template <typename Function>
  static void Find(void* library, const char* name, Function* function) {
    *function = reinterpret_cast<Function>(dlsym(library, name));
    ASSERT_NE(*function, nullptr) << name;
  }

  Backend Tensor(std::int64_t uid, const Dims& dims) { return MakeTensor(f_, {uid, dims}); }

  cudnnStatus_t FinalizeForward(const Dims& x, const Dims& w, const Dims& y,
                                const ConvolutionSettings& settings = {}) {
    const Backend tensors[] = {Tensor('x', x), Tensor('w', w), Tensor('y', y)};
    const Backend convolution = MakeConvolution(f_, settings);
    return Forward(tensors[0], tensors[1], tensors[2], convolution).Finalize();
  }

  Backend Forward(const Backend& x, const Backend& w, const Backend& y,
                  const Backend& convolution) {
    return UnfinishedOperation(
        f_, CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
        {{CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, &x},
         {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, &w},
         {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, &y},
         {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, &convolution}});
  }

  cudnnStatus_t FinalizeProduct(const Dims& a, const Dims& b, const Dims& c) {
    const Backend tensors[] = {Tensor(1, a), Tensor(2, b), Tensor(3, c)};
    Backend product(f_, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    product.Set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT);
    EXPECT_EQ(product.Finalize(), CUDNN_STATUS_SUCCESS);
    return UnfinishedOperation(f_, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR,
                               {{CUDNN_ATTR_OPERATION_MATMUL_ADESC, &tensors[0]},
                                {CUDNN_ATTR_OPERATION_MATMUL_BDESC, &tensors[1]},
                                {CUDNN_ATTR_OPERATION_MATMUL_CDESC, &tensors[2]},
                                {CUDNN_ATTR_OPERATION_MATMUL_DESC, &product}})
        .Finalize();
  }

  BackendFunctions f_ = {};
};

TEST_F(BackendDescriptorTest, EveryKindOfTheReleaseCanBeMade) {
  constexpr int kKinds = 44;
  for (int kind = 0; kind < kKinds; ++kind) {
    if (kind == CUDNN_BACKEND_INTERMEDIATE_INFO_DESCRIPTOR) continue;
    cudnnBackendDescriptor_t descriptor = nullptr;
    EXPECT_EQ(f_.create(static_cast<cudnnBackendDescriptorType_t>(kind), &descriptor),
              CUDNN_STATUS_SUCCESS)
        << kind;
    EXPECT_EQ(f_.destroy(descriptor), CUDNN_STATUS_SUCCESS) << kind;
  }
}

TEST_F(BackendDescriptorTest, UnknownKindsAreRefused) {
  cudnnBackendDescriptor_t descriptor = nullptr;
  EXPECT_NE(f_.create(CUDNN_BACKEND_INTERMEDIATE_INFO_DESCRIPTOR, &descriptor),
            CUDNN_STATUS_SUCCESS);
  EXPECT_NE(f_.create(static_cast<cudnnBackendDescriptorType_t>(-1), &descriptor),
            CUDNN_STATUS_SUCCESS);
  EXPECT_NE(f_.create(static_cast<cudnnBackendDescriptorType_t>(1000), &descriptor),
            CUDNN_STATUS_SUCCESS);
}

TEST_F(BackendDescriptorTest, NullPointersAreRefused) {
  EXPECT_EQ(f_.destroy(nullptr), CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  EXPECT_EQ(f_.finalize(nullptr), CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  const cudnnDataType_t type = CUDNN_DATA_FLOAT;
  EXPECT_EQ(f_.set(nullptr, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type),
            CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  std::int64_t count = 0;
  EXPECT_EQ(f_.get(nullptr, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 0, &count, nullptr),
            CUDNN_STATUS_BAD_PARAM);
}

TEST_F(BackendDescriptorTest, AttributesHaveATypeAndACount) {
  Backend tensor(f_, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  const std::int64_t dims[] = {2, 3, 4, 5};
  const auto set = [&](cudnnBackendAttributeType_t type, std::int64_t count, const void* from) {
    return tensor.SetAs(CUDNN_ATTR_TENSOR_DIMENSIONS, type, count, from);
  };
  EXPECT_EQ(set(CUDNN_TYPE_FLOAT, 4, dims), CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE);
  EXPECT_EQ(set(CUDNN_TYPE_INT64, 0, dims), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(set(CUDNN_TYPE_INT64, -1, dims), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(set(CUDNN_TYPE_INT64, 4, nullptr), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(set(CUDNN_TYPE_INT64, 4, dims), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(tensor.SetAs(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 2, dims),
            CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(tensor.SetAs(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 0, dims),
            CUDNN_STATUS_BAD_PARAM);
}

TEST_F(BackendDescriptorTest, AttributesOfOtherKindsAreRefused) {
  for (const auto kind :
       {CUDNN_BACKEND_POINTWISE_DESCRIPTOR, CUDNN_BACKEND_MATMUL_DESCRIPTOR,
        CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
        CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR}) {
    Backend descriptor(f_, kind);
    EXPECT_EQ(descriptor.Set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_DATA_FLOAT), CUDNN_STATUS_BAD_PARAM)
        << kind;
  }
  Backend tensor(f_, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  EXPECT_EQ(tensor.Set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT), CUDNN_STATUS_BAD_PARAM);
}

TEST_F(BackendDescriptorTest, WrongTypesAreBadParametersOfEveryOperation) {
  // The real library answers BAD_PARAM, BAD_PARAM_ATTRIBUTE_TYPE or NOT_SUPPORTED, by kind.
  const std::pair<cudnnBackendDescriptorType_t, cudnnBackendAttributeName_t> tensors[] = {
      {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X},
      {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX},
      {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW},
      {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_XDESC},
      {CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, CUDNN_ATTR_OPERATION_REDUCTION_XDESC},
      {CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR, CUDNN_ATTR_OPERATION_NORM_FWD_XDESC},
      {CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR, CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC}};
  for (const auto& [kind, attribute] : tensors) {
    Backend operation(f_, kind);
    const cudnnStatus_t status = operation.Set(attribute, std::int64_t{0});
    EXPECT_EQ(CUDNN_STATUS_CATEGORY(status), CUDNN_STATUS_BAD_PARAM) << kind;
  }
}

TEST_F(BackendDescriptorTest, AnswersCannotBeSet) {
  const std::int64_t number = 0;
  Backend graph(f_, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  EXPECT_NE(graph.Set(CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT, number), CUDNN_STATUS_SUCCESS);
  Backend engine(f_, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  EXPECT_EQ(engine.Set(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_NUMERICAL_NOTE_FFT),
            CUDNN_STATUS_NOT_SUPPORTED);
  Backend plan(f_, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  EXPECT_EQ(plan.Set(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, number), CUDNN_STATUS_NOT_SUPPORTED);
}

TEST_F(BackendDescriptorTest, TensorsNeedDimensionsStridesAndAlignment) {
  const auto finalize = [&](const Dims& dims, const Dims& strides, std::int64_t alignment) {
    Backend tensor(f_, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    tensor.Set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_DATA_FLOAT);
    if (!dims.empty()) tensor.Set(CUDNN_ATTR_TENSOR_DIMENSIONS, dims);
    if (!strides.empty()) tensor.Set(CUDNN_ATTR_TENSOR_STRIDES, strides);
    if (alignment != 0) tensor.Set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, alignment);
    return tensor.Finalize();
  };
  EXPECT_EQ(finalize({}, {}, 4), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(finalize({2, 3}, {}, 4), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(finalize({2, 3}, {1}, 4), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(finalize({2, 3}, {3, 1}, 0), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(finalize({2, 3}, {3, 1}, 1), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(finalize({-2, 3}, {3, 1}, 4), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(finalize(Dims(9, 2), Dims(9, 1), 4), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(finalize({0, 3}, {3, 1}, 4), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(finalize({2, 3}, {3, 1}, 4), CUDNN_STATUS_SUCCESS);
}

TEST_F(BackendDescriptorTest, FinalizedDescriptorsDoNotChange) {
  Backend tensor = UnfinishedTensor(f_, {7, {2, 3, 4, 5}});
  ASSERT_EQ(tensor.Finalize(), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(tensor.Set(CUDNN_ATTR_TENSOR_UNIQUE_ID, std::int64_t{8}), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(tensor.Finalize(), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(tensor.Get(CUDNN_ATTR_TENSOR_UNIQUE_ID, std::int64_t{0}), 7);
}

TEST_F(BackendDescriptorTest, AttributesAreReadOnceFinalized) {
  Backend tensor = UnfinishedTensor(f_, {7, {2, 3, 4, 5}});
  std::int64_t dims[8] = {};
  std::int64_t count = -7;
  const auto get = [&](cudnnBackendAttributeType_t type, std::int64_t requested, void* to) {
    return tensor.GetAs(CUDNN_ATTR_TENSOR_DIMENSIONS, type, requested, &count, to);
  };
  EXPECT_EQ(get(CUDNN_TYPE_INT64, 8, dims), CUDNN_STATUS_NOT_INITIALIZED);
  EXPECT_EQ(count, -7);
  ASSERT_EQ(tensor.Finalize(), CUDNN_STATUS_SUCCESS);

  EXPECT_EQ(get(CUDNN_TYPE_INT64, 8, dims), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(count, 4);
  EXPECT_EQ(dims[3], 5);
  EXPECT_EQ(get(CUDNN_TYPE_INT64, 2, dims), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(count, 2);
  EXPECT_EQ(get(CUDNN_TYPE_INT64, 0, nullptr), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(count, 4);
  EXPECT_EQ(get(CUDNN_TYPE_INT64, 8, nullptr), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(count, 4);
  EXPECT_EQ(get(CUDNN_TYPE_INT64, -1, dims), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(get(CUDNN_TYPE_FLOAT, 8, dims), CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE);
  EXPECT_EQ(tensor.GetAs(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 8, nullptr, dims),
            CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(tensor.GetAs(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &count, dims),
            CUDNN_STATUS_BAD_PARAM);
}

TEST_F(BackendDescriptorTest, TensorsHaveDefaults) {
  const Backend tensor = Tensor(7, {2, 3});
  EXPECT_FALSE(tensor.Get(CUDNN_ATTR_TENSOR_IS_VIRTUAL, true));
  EXPECT_EQ(tensor.Get(CUDNN_ATTR_TENSOR_VECTOR_COUNT, std::int64_t{0}), 1);
  EXPECT_EQ(tensor.Get(CUDNN_ATTR_TENSOR_VECTORIZED_DIMENSION, std::int64_t{0}), -1);
}

TEST_F(BackendDescriptorTest, ConvolutionsNeedStridesAndDilations) {
  const auto finalize = [&](const ConvolutionSettings& settings) {
    return UnfinishedConvolution(f_, settings).Finalize();
  };
  EXPECT_EQ(finalize({}), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(finalize({{-1, -1}, {1, 1}, {1, 1}}), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(finalize({{0, 0}, {0, 0}, {1, 1}}), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(finalize({{0, 0}, {1, 1}, {0, 0}}), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(finalize({{1}, {1, 1}, {1, 1}}), CUDNN_STATUS_BAD_PARAM);
  Backend empty(f_, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  EXPECT_EQ(empty.Finalize(), CUDNN_STATUS_BAD_PARAM);
}

TEST_F(BackendDescriptorTest, ConvolutionOperationsCheckTheirShapes) {
  const Dims x = {2, 4, 8, 8}, w = {6, 4, 3, 3}, y = {2, 6, 8, 8};
  EXPECT_EQ(FinalizeForward(x, w, y), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(FinalizeForward(x, {6, 2, 3, 3}, y), CUDNN_STATUS_SUCCESS) << "two groups";
  EXPECT_EQ(FinalizeForward(x, w, {2, 6, 9, 8}), CUDNN_STATUS_BAD_PARAM) << "height";
  EXPECT_EQ(FinalizeForward(x, w, {3, 6, 8, 8}), CUDNN_STATUS_BAD_PARAM) << "images";
  EXPECT_EQ(FinalizeForward(x, w, {2, 7, 8, 8}), CUDNN_STATUS_BAD_PARAM) << "channels of y";
  EXPECT_EQ(FinalizeForward(x, {6, 5, 3, 3}, y), CUDNN_STATUS_BAD_PARAM) << "channels of w";
  EXPECT_EQ(FinalizeForward(x, {5, 2, 3, 3}, {2, 5, 8, 8}), CUDNN_STATUS_BAD_PARAM) << "groups";
  EXPECT_EQ(FinalizeForward({2, 4, 8, 8, 8}, w, y), CUDNN_STATUS_BAD_PARAM) << "rank";
  EXPECT_EQ(FinalizeForward(x, w, y, {{1, 1, 1}, {1, 1, 1}, {1, 1, 1}}), CUDNN_STATUS_BAD_PARAM)
      << "spatial rank";
}

TEST_F(BackendDescriptorTest, OperationsNeedTheirTensorsFinalized) {
  const Backend x = UnfinishedTensor(f_, {'x', {2, 4, 8, 8}});
  const Backend w = Tensor('w', {6, 4, 3, 3});
  const Backend y = Tensor('y', {2, 6, 8, 8});
  const Backend convolution = MakeConvolution(f_, {});
  const cudnnStatus_t status = Forward(x, w, y, convolution).Finalize();
  EXPECT_EQ(CUDNN_STATUS_CATEGORY(status), CUDNN_STATUS_BAD_PARAM);
}

TEST_F(BackendDescriptorTest, OperationsKeepTheirPartsByValue) {
  Backend operation(f_, CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
  {
    const Backend x = Tensor('x', {2, 4, 8, 8}), w = Tensor('w', {6, 4, 3, 3});
    const Backend y = Tensor('y', {2, 6, 8, 8});
    const Backend convolution = MakeConvolution(f_, {});
    operation.Set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, x);
    operation.Set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, w);
    operation.Set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, y);
    operation.Set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, convolution);
  }
  EXPECT_EQ(operation.Finalize(), CUDNN_STATUS_SUCCESS);
}

TEST_F(BackendDescriptorTest, ProductsCheckTheirShapes) {
  EXPECT_EQ(FinalizeProduct({2, 4, 8}, {2, 8, 5}, {2, 4, 5}), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(FinalizeProduct({1, 4, 8}, {2, 8, 5}, {2, 4, 5}), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(FinalizeProduct({4, 8}, {8, 5}, {4, 5}), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(FinalizeProduct({2, 4, 8}, {2, 7, 5}, {2, 4, 5}), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(FinalizeProduct({2, 4, 8}, {3, 8, 5}, {2, 4, 5}), CUDNN_STATUS_BAD_PARAM);
}

TEST_F(BackendDescriptorTest, PointwiseOperandsHaveOneRank) {
  Backend add(f_, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  add.Set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_POINTWISE_ADD);
  ASSERT_EQ(add.Finalize(), CUDNN_STATUS_SUCCESS);
  const auto finalize = [&](const Dims& x, const Dims& b, const Dims& y) {
    const Backend tensors[] = {Tensor(1, x), Tensor(2, b), Tensor(3, y)};
    return UnfinishedOperation(f_, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
                               {{CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, &add},
                                {CUDNN_ATTR_OPERATION_POINTWISE_XDESC, &tensors[0]},
                                {CUDNN_ATTR_OPERATION_POINTWISE_BDESC, &tensors[1]},
                                {CUDNN_ATTR_OPERATION_POINTWISE_YDESC, &tensors[2]}})
        .Finalize();
  };
  EXPECT_EQ(finalize({2, 4, 8, 8}, {2, 4, 8, 8}, {2, 4, 8, 8}), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(finalize({2, 4, 8, 8}, {1, 4, 1, 1}, {2, 4, 8, 8}), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(finalize({2, 4, 8, 8}, {4}, {2, 4, 8, 8}), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(finalize({2, 4, 8, 8}, {1, 4, 1, 1}, {2, 4, 8}), CUDNN_STATUS_BAD_PARAM);
}

TEST_F(BackendDescriptorTest, GraphsTakeFinalizedOperations) {
  const Backend x = Tensor('x', {2, 4, 8, 8}), w = Tensor('w', {6, 4, 3, 3});
  const Backend y = Tensor('y', {2, 6, 8, 8});
  const Backend convolution = MakeConvolution(f_, {});
  Backend operation = Forward(x, w, y, convolution);
  Backend graph(f_, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  EXPECT_EQ(graph.Set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operation),
            CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED);
  EXPECT_EQ(graph.Finalize(), CUDNN_STATUS_BAD_PARAM) << "no operations";

  ASSERT_EQ(operation.Finalize(), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(graph.Set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operation), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(graph.Finalize(), CUDNN_STATUS_SUCCESS);
  EXPECT_GT(graph.Get(CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT, std::int64_t{0}), 0);
}

TEST_F(BackendDescriptorTest, TwoOperationsDoNotMakeOneTensor) {
  const Backend x = Tensor('x', {2, 4, 8, 8}), w = Tensor('w', {6, 4, 3, 3});
  const Backend y = Tensor('y', {2, 6, 8, 8});
  const Backend convolution = MakeConvolution(f_, {});
  Backend first = Forward(x, w, y, convolution), second = Forward(x, w, y, convolution);
  ASSERT_EQ(first.Finalize(), CUDNN_STATUS_SUCCESS);
  ASSERT_EQ(second.Finalize(), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(UnfinishedGraph(f_, {&first, &second}).Finalize(), CUDNN_STATUS_BAD_PARAM);
}

TEST_F(BackendDescriptorTest, VirtualTensorsNeedNoReader) {
  const Backend x = Tensor('x', {2, 4, 8, 8}), w = Tensor('w', {6, 4, 3, 3});
  const Backend y = MakeTensor(f_, {'y', {2, 6, 8, 8}, CUDNN_DATA_FLOAT, true});
  const Backend convolution = MakeConvolution(f_, {});
  Backend operation = Forward(x, w, y, convolution);
  ASSERT_EQ(operation.Finalize(), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(UnfinishedGraph(f_, {&operation}).Finalize(), CUDNN_STATUS_SUCCESS);
}

TEST_F(BackendDescriptorTest, VirtualTensorsWithoutAMakerAreSeenOnlyByEngines) {
  const Backend x = MakeTensor(f_, {'x', {2, 4, 8, 8}, CUDNN_DATA_FLOAT, true});
  const Backend w = Tensor('w', {6, 4, 3, 3}), y = Tensor('y', {2, 6, 8, 8});
  const Backend convolution = MakeConvolution(f_, {});
  Backend operation = Forward(x, w, y, convolution);
  ASSERT_EQ(operation.Finalize(), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(UnfinishedGraph(f_, {&operation}).Finalize(), CUDNN_STATUS_SUCCESS);
}

TEST_F(BackendDescriptorTest, EnginesBelongToAGraph) {
  Backend engine(f_, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  EXPECT_EQ(engine.Finalize(), CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
}

TEST_F(BackendDescriptorTest, PlansNeedAFinalizedConfiguration) {
  Backend configuration(f_, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  Backend plan(f_, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  EXPECT_EQ(plan.Finalize(), CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED);
  EXPECT_EQ(plan.Set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(plan.Finalize(), CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED);
  EXPECT_EQ(plan.Get(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, std::int64_t{1}), 0);
}

TEST_F(BackendDescriptorTest, HeuristicsAnswerInEveryMode) {
  const Backend x = Tensor('x', {2, 64, 8, 8}), w = Tensor('w', {64, 64, 3, 3});
  const Backend y = Tensor('y', {2, 64, 8, 8});
  const Backend convolution = MakeConvolution(f_, {});
  Backend operation = Forward(x, w, y, convolution);
  ASSERT_EQ(operation.Finalize(), CUDNN_STATUS_SUCCESS);
  Backend graph = UnfinishedGraph(f_, {&operation});
  ASSERT_EQ(graph.Finalize(), CUDNN_STATUS_SUCCESS);
  for (const auto mode :
       {CUDNN_HEUR_MODE_INSTANT, CUDNN_HEUR_MODE_B, CUDNN_HEUR_MODE_FALLBACK, CUDNN_HEUR_MODE_A}) {
    Backend heuristics(f_, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    std::int64_t count = -1;
    EXPECT_EQ(heuristics.GetAs(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0,
                               &count, nullptr),
              CUDNN_STATUS_NOT_INITIALIZED);
    EXPECT_EQ(heuristics.Set(CUDNN_ATTR_ENGINEHEUR_MODE, mode), CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(heuristics.Set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph), CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(heuristics.Finalize(), CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(heuristics.GetAs(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0,
                               &count, nullptr),
              CUDNN_STATUS_SUCCESS);
    EXPECT_GT(count, 0) << mode;
  }
}

TEST_F(BackendDescriptorTest, VariantPacksPairIdsWithPointers) {
  const std::vector<std::int64_t> ids = {1, 2, 3};
  std::vector<void*> pointers(3);
  void* workspace = nullptr;
  Backend pack(f_, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  EXPECT_EQ(pack.Set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, ids), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(pack.Set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, workspace), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(pack.SetAs(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 2, &pointers[0]),
            CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(pack.Finalize(), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(pack.Set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, pointers), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(pack.Finalize(), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(pack.Set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, ids), CUDNN_STATUS_BAD_PARAM);
}

TEST_F(BackendDescriptorTest, RandomNumbersNeedAProbability) {
  Backend random(f_, CUDNN_BACKEND_RNG_DESCRIPTOR);
  EXPECT_EQ(random.Finalize(), CUDNN_STATUS_BAD_PARAM);
  random.Set(CUDNN_ATTR_RNG_BERNOULLI_DIST_PROBABILITY, 1.5);
  EXPECT_EQ(random.Finalize(), CUDNN_STATUS_BAD_PARAM);
  random.Set(CUDNN_ATTR_RNG_BERNOULLI_DIST_PROBABILITY, 0.5);
  EXPECT_EQ(random.Finalize(), CUDNN_STATUS_SUCCESS);
}

}  // namespace
}  // namespace spillway::simulator::dnn
