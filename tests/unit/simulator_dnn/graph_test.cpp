// Operation graphs that are computed: the same numbers as the older calls, from the same bytes.
#include <cstring>
#include <functional>

#include "tests/unit/simulator_dnn/device.h"
#include "tests/unit/simulator_dnn/graph_run.h"

namespace spillway::simulator::dnn {
namespace {

struct Case {
  const char* name;
  Dims x, w, y;
  ConvolutionSettings settings;
  float alpha = 1, beta = 0;
};

const Case kCases[] = {
    {"Plain", {2, 3, 7, 6}, {4, 3, 3, 3}, {2, 4, 7, 6}, {}},
    {"Strided", {2, 4, 11, 9}, {6, 4, 5, 3}, {2, 6, 6, 3}, {{2, 0}, {2, 3}, {1, 1}}},
    {"DilatedTurned",
     {1, 2, 9, 9},
     {3, 2, 3, 3},
     {1, 3, 9, 9},
     {{2, 2}, {1, 1}, {2, 2}, CUDNN_CONVOLUTION}},
    {"Grouped", {2, 4, 6, 6}, {8, 2, 3, 3}, {2, 8, 6, 6}, {}},
    {"Volume",
     {1, 2, 4, 5, 6},
     {3, 2, 3, 3, 3},
     {1, 3, 4, 5, 6},
     {{1, 1, 1}, {1, 1, 1}, {1, 1, 1}}},
    {"Scaled", {2, 3, 7, 6}, {4, 3, 3, 3}, {2, 4, 7, 6}, {}, 0.5f, -2.0f},
};

std::int64_t CountOf(const Dims& dims) {
  std::int64_t count = 1;
  for (const std::int64_t dim : dims) count *= dim;
  return count;
}

std::vector<int> Ints(const Dims& dims) { return {dims.begin(), dims.end()}; }

class FilterDesc {
 public:
  explicit FilterDesc(const Dims& dims) {
    cudnnCreateFilterDescriptor(&desc_);
    EXPECT_EQ(cudnnSetFilterNdDescriptor(desc_, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW,
                                         static_cast<int>(dims.size()), Ints(dims).data()),
              CUDNN_STATUS_SUCCESS);
  }
  ~FilterDesc() { cudnnDestroyFilterDescriptor(desc_); }
  operator cudnnFilterDescriptor_t() const { return desc_; }

 private:
  cudnnFilterDescriptor_t desc_ = nullptr;
};

class ConvolutionDesc {
 public:
  ConvolutionDesc(const ConvolutionSettings& settings, std::int64_t groups) {
    cudnnCreateConvolutionDescriptor(&desc_);
    EXPECT_EQ(cudnnSetConvolutionNdDescriptor(
                  desc_, static_cast<int>(settings.stride.size()), Ints(settings.padding).data(),
                  Ints(settings.stride).data(), Ints(settings.dilation).data(), settings.mode,
                  CUDNN_DATA_FLOAT),
              CUDNN_STATUS_SUCCESS);
    cudnnSetConvolutionGroupCount(desc_, static_cast<int>(groups));
  }
  ~ConvolutionDesc() { cudnnDestroyConvolutionDescriptor(desc_); }
  operator cudnnConvolutionDescriptor_t() const { return desc_; }

 private:
  cudnnConvolutionDescriptor_t desc_ = nullptr;
};

Backend ForwardOperation(const Backend& x, const Backend& w, const Backend& y,
                         const ConvolutionSettings& settings) {
  const Backend convolution = MakeConvolution(kLinked, settings);
  return Operation(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                   {{CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, &x},
                    {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, &w},
                    {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, &y},
                    {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, &convolution}});
}

// One convolution, in any direction.
Backend ScaledConvolution(const Case& c, cudnnBackendDescriptorType_t kind,
                          const cudnnBackendAttributeName_t (&names)[6]) {
  const Backend x = Tensor({'x', c.x}), w = Tensor({'w', c.w}), y = Tensor({'y', c.y});
  const Backend convolution = MakeConvolution(kLinked, c.settings);
  Backend operation = UnfinishedOperation(
      kLinked, kind, {{names[0], &x}, {names[1], &w}, {names[2], &y}, {names[3], &convolution}});
  operation.Set(names[4], c.alpha);
  operation.Set(names[5], c.beta);
  EXPECT_EQ(operation.Finalize(), CUDNN_STATUS_SUCCESS);
  return operation;
}

class GraphTest : public CudnnTest {
 protected:
  void Run(const Backend& graph, const Pointers& pointers) {
    RunFirstPlan(handle_, graph, pointers);
  }
};

class GraphConvolutionTest : public GraphTest, public testing::WithParamInterface<Case> {
 protected:
  void SetUp() override {
    GraphTest::SetUp();
    x_.emplace(Values(CountOf(c_.x), 1));
    w_.emplace(Values(CountOf(c_.w), 2));
    y_.emplace(Values(CountOf(c_.y), 3));
  }
  Pointers All() const { return {{'x', x_->get()}, {'w', w_->get()}, {'y', y_->get()}}; }

  const Case& c_ = GetParam();
  std::optional<DeviceFloats> x_, w_, y_;
  const TensorDesc x_desc_{Ints(c_.x)}, y_desc_{Ints(c_.y)};
  const FilterDesc w_desc_{c_.w};
  const ConvolutionDesc convolution_{c_.settings, c_.x[1] / c_.w[1]};
};

TEST_P(GraphConvolutionTest, ForwardEqualsTheOlderCall) {
  const DeviceFloats expected(y_->Read());
  ASSERT_EQ(cudnnConvolutionForward(handle_, &c_.alpha, x_desc_, x_->get(), w_desc_, w_->get(),
                                    convolution_, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, nullptr,
                                    0, &c_.beta, y_desc_, expected.get()),
            CUDNN_STATUS_SUCCESS);
  const Backend operation = ScaledConvolution(
      c_, CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
      {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA});

  Run(Graph({&operation}), All());

  EXPECT_EQ(y_->Read(), expected.Read());
}

TEST_P(GraphConvolutionTest, BackwardDataEqualsTheOlderCall) {
  const DeviceFloats expected(x_->Read());
  ASSERT_EQ(cudnnConvolutionBackwardData(handle_, &c_.alpha, w_desc_, w_->get(), y_desc_, y_->get(),
                                         convolution_, CUDNN_CONVOLUTION_BWD_DATA_ALGO_0, nullptr,
                                         0, &c_.beta, x_desc_, expected.get()),
            CUDNN_STATUS_SUCCESS);
  const Backend operation = ScaledConvolution(
      c_, CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
      {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA});

  Run(Graph({&operation}), All());

  EXPECT_EQ(x_->Read(), expected.Read());
}

TEST_P(GraphConvolutionTest, BackwardFilterEqualsTheOlderCall) {
  const DeviceFloats expected(w_->Read());
  ASSERT_EQ(cudnnConvolutionBackwardFilter(
                handle_, &c_.alpha, x_desc_, x_->get(), y_desc_, y_->get(), convolution_,
                CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0, nullptr, 0, &c_.beta, w_desc_, expected.get()),
            CUDNN_STATUS_SUCCESS);
  const Backend operation =
      ScaledConvolution(c_, CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                        {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
                         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA});

  Run(Graph({&operation}), All());

  EXPECT_EQ(w_->Read(), expected.Read());
}

INSTANTIATE_TEST_SUITE_P(Shapes, GraphConvolutionTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

// y = relu(convolution(x, w) + z + bias), by four operations.
class FusedTest : public GraphTest {
 protected:
  void RunGraph(void* z, void* y) {
    const Backend x_tensor = Tensor({'x', kX}), w_tensor = Tensor({'w', kW});
    const Backend z_tensor = Tensor({'z', kY}), y_tensor = Tensor({'y', kY});
    const Backend bias_tensor = Tensor({'b', {1, 4, 1, 1}});
    const Backend product = Virtual(1), sum = Virtual(2), shifted = Virtual(3);
    const Backend operations[] = {
        PointwiseOperation({CUDNN_POINTWISE_RELU_FWD}, shifted, nullptr, y_tensor),
        PointwiseOperation({CUDNN_POINTWISE_ADD}, sum, &bias_tensor, shifted),
        PointwiseOperation({CUDNN_POINTWISE_ADD, 1, kAlphaZ}, product, &z_tensor, sum),
        ForwardOperation(x_tensor, w_tensor, product, {})};
    Run(Graph({&operations[0], &operations[1], &operations[2], &operations[3]}),
        {{'x', x_.get()}, {'w', w_.get()}, {'z', z}, {'y', y}, {'b', bias_.get()}});
  }
  static Backend Virtual(std::int64_t uid) { return Tensor({uid, kY, CUDNN_DATA_FLOAT, true}); }

  Floats Expected() {
    const DeviceFloats y(kCount);
    cudnnActivationDescriptor_t relu = nullptr;
    cudnnCreateActivationDescriptor(&relu);
    cudnnSetActivationDescriptor(relu, CUDNN_ACTIVATION_RELU, CUDNN_PROPAGATE_NAN, 0);
    const TensorDesc x_desc(Ints(kX)), y_desc(Ints(kY)), bias_desc({1, 4, 1, 1});
    EXPECT_EQ(cudnnConvolutionBiasActivationForward(
                  handle_, &kOne, x_desc, x_.get(), FilterDesc(kW), w_.get(),
                  ConvolutionDesc({}, 1), CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, nullptr, 0,
                  &kAlphaZ, y_desc, z_.get(), bias_desc, bias_.get(), relu, y_desc, y.get()),
              CUDNN_STATUS_SUCCESS);
    cudnnDestroyActivationDescriptor(relu);
    return y.Read();
  }

  static constexpr float kAlphaZ = 0.25f;
  static constexpr int kCount = 2 * 4 * 7 * 6;
  inline static const Dims kX = {2, 3, 7, 6}, kW = {4, 3, 3, 3}, kY = {2, 4, 7, 6};
  const DeviceFloats x_{(SetUpContext(), Values(2 * 3 * 7 * 6, 1))};
  const DeviceFloats w_{Values(4 * 3 * 3 * 3, 2)}, z_{Values(kCount, 3)}, bias_{Values(4, 4)};

 private:
  static void SetUpContext() {
    CUcontext context = nullptr;
    cuInit(0);
    cuDevicePrimaryCtxRetain(&context, 0);
    cuCtxSetCurrent(context);
  }
};

TEST_F(FusedTest, BiasAndReluEqualTheOlderCall) {
  const Floats expected = Expected();
  const DeviceFloats y(kCount);
  RunGraph(z_.get(), y.get());
  EXPECT_EQ(y.Read(), expected);
}

TEST_F(FusedTest, TheResultMayReplaceAnInput) {
  const Floats expected = Expected();
  RunGraph(z_.get(), z_.get());
  EXPECT_EQ(z_.Read(), expected);
}

TEST_F(GraphTest, TensorsByValueAreReadFromTheHost) {
  const DeviceFloats x(Floats{1, 2, 3, 4}), y(4);
  float factor = 10;
  const Backend x_tensor = Tensor({1, {1, 4}}), y_tensor = Tensor({2, {1, 4}});
  const Backend factor_tensor = Tensor({3, {1, 1}, CUDNN_DATA_FLOAT, false, true});
  const Backend product =
      PointwiseOperation({CUDNN_POINTWISE_MUL}, x_tensor, &factor_tensor, y_tensor);
  Run(Graph({&product}), {{1, x.get()}, {2, y.get()}, {3, &factor}});
  EXPECT_EQ(y.Read(), (Floats{10, 20, 30, 40}));
}

TEST_F(GraphTest, StridedResultsLeaveTheBytesBetweenThem) {
  const DeviceFloats x(Floats{1, -2, 3, -4}), y(Floats(8, 7));
  const Backend x_tensor = Tensor({1, {2, 2}});
  const Backend y_tensor = Tensor({2, {2, 2}, CUDNN_DATA_FLOAT, false, false, {4, 2}});
  const Backend relu = PointwiseOperation({CUDNN_POINTWISE_RELU_FWD}, x_tensor, nullptr, y_tensor);
  Run(Graph({&relu}), {{1, x.get()}, {2, y.get()}});
  EXPECT_EQ(y.Read(), (Floats{1, 7, 0, 7, 3, 7, 0, 7}));
}

// A convolution that all methods support.
class GraphEngineTest : public GraphTest {
 protected:
  GraphEngineTest()
      : operation_(ForwardOperation(Tensor({'x', {2, 8, 16, 16}}), Tensor({'w', {8, 8, 3, 3}}),
                                    Tensor({'y', {2, 8, 16, 16}}), {})),
        graph_(Graph({&operation_})) {}
  const Backend operation_;
  const Backend graph_;
};

TEST_F(GraphEngineTest, HeuristicsRankAsTheOlderInterface) {
  cudnnConvolutionFwdAlgoPerf_t results[8];
  int count = 0;
  ASSERT_EQ(cudnnGetConvolutionForwardAlgorithm_v7(handle_, TensorDesc({2, 8, 16, 16}),
                                                   FilterDesc({8, 8, 3, 3}), ConvolutionDesc({}, 1),
                                                   TensorDesc({2, 8, 16, 16}), 8, &count, results),
            CUDNN_STATUS_SUCCESS);
  const std::vector<Backend> configurations = Configurations(graph_, CUDNN_HEUR_MODE_INSTANT);
  ASSERT_GT(configurations.size(), 3u);
  for (std::size_t i = 0; i < configurations.size(); ++i) {
    EXPECT_EQ(IndexOf(configurations[i]), results[i].algo) << i;
    EXPECT_EQ(WorkspaceOf(PlanOf(configurations[i])), static_cast<std::int64_t>(results[i].memory));
  }
}

TEST_F(GraphEngineTest, FallbacksNeedTheLeastWorkspace) {
  const std::vector<Backend> configurations = Configurations(graph_, CUDNN_HEUR_MODE_FALLBACK);
  ASSERT_FALSE(configurations.empty());
  EXPECT_EQ(WorkspaceOf(PlanOf(configurations[0])), 0);
}

TEST_F(GraphEngineTest, EnginesHaveNumericalNotes) {
  for (const Backend& configuration : Configurations(graph_, CUDNN_HEUR_MODE_B)) {
    const std::int64_t index = IndexOf(configuration);
    EXPECT_EQ(
        HasNote(configuration, CUDNN_NUMERICAL_NOTE_FFT),
        index == CUDNN_CONVOLUTION_FWD_ALGO_FFT || index == CUDNN_CONVOLUTION_FWD_ALGO_FFT_TILING);
    EXPECT_EQ(HasNote(configuration, CUDNN_NUMERICAL_NOTE_WINOGRAD),
              index == CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD ||
                  index == CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED);
    EXPECT_FALSE(HasNote(configuration, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC));
    EXPECT_FALSE(HasNote(configuration, CUDNN_NUMERICAL_NOTE_TENSOR_CORE));
  }
}

TEST_F(GraphEngineTest, EveryEngineComputesTheSame) {
  const DeviceFloats x(Values(2 * 8 * 16 * 16, 1)), w(Values(8 * 8 * 3 * 3, 2));
  std::vector<Floats> results;
  for (const Backend& configuration : Configurations(graph_, CUDNN_HEUR_MODE_A)) {
    const Backend plan = PlanOf(configuration);
    const DeviceFloats y(2 * 8 * 16 * 16);
    const DeviceBytes workspace(WorkspaceOf(plan));
    ASSERT_EQ(
        Execute(handle_, plan, {{'x', x.get()}, {'w', w.get()}, {'y', y.get()}}, workspace.get()),
        CUDNN_STATUS_SUCCESS);
    results.push_back(y.Read());
    EXPECT_EQ(results.back(), results.front()) << IndexOf(configuration);
  }
}

TEST_F(GraphEngineTest, WorkspaceIsNeededAndUsedWhole) {
  for (const Backend& configuration : Configurations(graph_, CUDNN_HEUR_MODE_INSTANT)) {
    const Backend plan = PlanOf(configuration);
    if (WorkspaceOf(plan) == 0) continue;
    const DeviceFloats x(2 * 8 * 16 * 16), w(8 * 8 * 3 * 3), y(2 * 8 * 16 * 16);
    const Pointers pointers = {{'x', x.get()}, {'w', w.get()}, {'y', y.get()}};
    EXPECT_EQ(Execute(handle_, plan, pointers, nullptr), CUDNN_STATUS_BAD_PARAM_NULL_POINTER);

    const DeviceBytes workspace(WorkspaceOf(plan) + 1);
    ASSERT_EQ(Execute(handle_, plan, pointers, workspace.get()), CUDNN_STATUS_SUCCESS);
    const std::vector<unsigned char> bytes = workspace.Read();
    EXPECT_NE(bytes[0], 0);
    EXPECT_NE(bytes[bytes.size() - 2], 0);
    EXPECT_EQ(bytes[bytes.size() - 1], 0);
  }
}

TEST_F(GraphEngineTest, EveryTensorNeedsAPointer) {
  const Backend plan = PlanOf(Configurations(graph_, CUDNN_HEUR_MODE_FALLBACK)[0]);
  const DeviceFloats x(2 * 8 * 16 * 16), w(8 * 8 * 3 * 3);
  EXPECT_EQ(Execute(handle_, plan, {{'x', x.get()}, {'w', w.get()}}, nullptr),
            CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
}

std::string TextOf(const Backend& plan) {
  std::int64_t count = 0;
  EXPECT_EQ(plan.GetAs(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, 0, &count,
                       nullptr),
            CUDNN_STATUS_SUCCESS);
  std::string text(count, '\0');
  EXPECT_EQ(plan.GetAs(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, count,
                       &count, text.data()),
            CUDNN_STATUS_SUCCESS);
  return text;
}

Backend UnfinishedPlan(const std::string& text) {
  Backend plan(kLinked, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  EXPECT_EQ(plan.SetAs(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                       static_cast<std::int64_t>(text.size()), text.data()),
            CUDNN_STATUS_SUCCESS);
  return plan;
}

TEST_F(GraphEngineTest, PlansTravelAsText) {
  const Backend plan = PlanOf(Configurations(graph_, CUDNN_HEUR_MODE_INSTANT)[0]);
  Backend copy = UnfinishedPlan(TextOf(plan));
  ASSERT_EQ(copy.Finalize(), CUDNN_STATUS_SUCCESS);

  EXPECT_EQ(TextOf(copy), TextOf(plan));
  ASSERT_EQ(WorkspaceOf(copy), WorkspaceOf(plan));
  const auto configuration = [](const Backend& of) {
    return PartOf(of, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  };
  EXPECT_EQ(IndexOf(configuration(copy)), IndexOf(configuration(plan)));

  const DeviceFloats x(Values(2 * 8 * 16 * 16, 1)), w(Values(8 * 8 * 3 * 3, 2));
  const DeviceFloats first(2 * 8 * 16 * 16), second(2 * 8 * 16 * 16);
  const DeviceBytes workspace(WorkspaceOf(plan));
  Execute(handle_, plan, {{'x', x.get()}, {'w', w.get()}, {'y', first.get()}}, workspace.get());
  EXPECT_EQ(Execute(handle_, copy, {{'x', x.get()}, {'w', w.get()}, {'y', second.get()}},
                    workspace.get()),
            CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(first.Read(), second.Read());
}

TEST_F(GraphEngineTest, ChangedTextsAreRefused) {
  const std::string text = TextOf(PlanOf(Configurations(graph_, CUDNN_HEUR_MODE_INSTANT)[0]));
  for (const std::size_t at : {text.size() - 10, text.size() / 2}) {
    std::string changed = text;
    changed[at] = changed[at] == '0' ? '1' : '0';
    EXPECT_EQ(UnfinishedPlan(changed).Finalize(), CUDNN_STATUS_BAD_PARAM) << at;
  }
  EXPECT_EQ(UnfinishedPlan(text.substr(0, text.size() - 40)).Finalize(), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(UnfinishedPlan("{}").Finalize(), CUDNN_STATUS_BAD_PARAM);
}

TEST_F(GraphTest, GraphsThatDoNotComputeHaveNoEngines) {
  const Backend a = Tensor({1, {1, 4, 8}}), b = Tensor({2, {1, 8, 4}}), c = Tensor({3, {1, 4, 4}});
  Backend product(kLinked, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  product.Set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT);
  product.Finalize();
  const Backend operation = Operation(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR,
                                      {{CUDNN_ATTR_OPERATION_MATMUL_ADESC, &a},
                                       {CUDNN_ATTR_OPERATION_MATMUL_BDESC, &b},
                                       {CUDNN_ATTR_OPERATION_MATMUL_CDESC, &c},
                                       {CUDNN_ATTR_OPERATION_MATMUL_DESC, &product}});
  const Backend graph = Graph({&operation});
  testing::internal::CaptureStderr();
  EXPECT_TRUE(Configurations(graph, CUDNN_HEUR_MODE_INSTANT).empty());
  EXPECT_NE(testing::internal::GetCapturedStderr().find("cudnn_graph(matmul) is not simulated"),
            std::string::npos);
  Backend engine(kLinked, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  engine.Set(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph);
  engine.Set(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, std::int64_t{0});
  EXPECT_EQ(engine.Finalize(), CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN);
}

TEST_F(GraphTest, VirtualInputsWithoutAMakerAreNotComputed) {
  const Backend x = Tensor({'x', {2, 3, 7, 6}, CUDNN_DATA_FLOAT, true});
  const Backend operation =
      ForwardOperation(x, Tensor({'w', {4, 3, 3, 3}}), Tensor({'y', {2, 4, 7, 6}}), {});
  EXPECT_TRUE(Configurations(Graph({&operation}), CUDNN_HEUR_MODE_INSTANT).empty());
}

TEST_F(GraphTest, DescriptorsNeedAPlace) {
  EXPECT_EQ(cudnnBackendCreateDescriptor(CUDNN_BACKEND_TENSOR_DESCRIPTOR, nullptr),
            CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
}

TEST_F(GraphTest, CudaGraphsOfPlansAreNotSupported) {
  EXPECT_EQ(cudnnBackendPopulateCudaGraph(handle_, nullptr, nullptr, nullptr),
            CUDNN_STATUS_NOT_SUPPORTED);
  EXPECT_EQ(cudnnBackendUpdateCudaGraph(handle_, nullptr, nullptr, nullptr),
            CUDNN_STATUS_NOT_SUPPORTED);
}

}  // namespace
}  // namespace spillway::simulator::dnn
