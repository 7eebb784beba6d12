// Graphs: steps captured once and launched often, a graph built node by node, an update to other
// memory, memory that a graph allocates itself.
#include "sample.h"

__global__ void Scale(float* values, float factor, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] = fmodf(values[i] * factor + 1.0f, 512.0f);
}

__global__ void Sum(float* out, const float* a, const float* b, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = fmodf(a[i] + b[i], 512.0f);
}

constexpr int kArrays = 16, kCount = 1 << 20, kThreads = 256, kBlocks = kCount / kThreads;
constexpr std::size_t kBytes = kCount * sizeof(float);

// Scales two arrays on two streams concurrently, then adds them up.
cudaGraph_t CaptureStep(cudaStream_t stream, cudaStream_t side, float* a, float* b, float* out) {
  cudaEvent_t fork, join;
  CHECK(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
  CHECK(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  CHECK(cudaEventRecord(fork, stream));
  CHECK(cudaStreamWaitEvent(side, fork, 0));
  Scale<<<kBlocks, kThreads, 0, stream>>>(a, 3.0f, kCount);
  Scale<<<kBlocks, kThreads, 0, side>>>(b, 5.0f, kCount);
  CHECK(cudaEventRecord(join, side));
  CHECK(cudaStreamWaitEvent(stream, join, 0));
  Sum<<<kBlocks, kThreads, 0, stream>>>(out, a, b, kCount);
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaEventDestroy(fork));
  CHECK(cudaEventDestroy(join));
  return graph;
}

// out = 3 * (source + source), through memory that the graph allocates and frees.
cudaGraph_t CaptureScratch(cudaStream_t stream, const float* source, float* out) {
  cudaGraph_t graph = nullptr;
  float* scratch = nullptr;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  CHECK(cudaMallocAsync(&scratch, kBytes, stream));
  Sum<<<kBlocks, kThreads, 0, stream>>>(scratch, source, source, kCount);
  Scale<<<kBlocks, kThreads, 0, stream>>>(scratch, 3.0f, kCount);
  CHECK(cudaMemcpyAsync(out, scratch, kBytes, cudaMemcpyDeviceToDevice, stream));
  CHECK(cudaFreeAsync(scratch, stream));
  CHECK(cudaStreamEndCapture(stream, &graph));
  return graph;
}

// Copies an array, sets the first half of the copy, scales all of it.
cudaGraph_t BuildStep(float* copy, float* source, cudaGraphNode_t* kernel) {
  cudaGraph_t graph = nullptr;
  cudaGraphNode_t copied, set;
  CHECK(cudaGraphCreate(&graph, 0));
  CHECK(cudaGraphAddMemcpyNode1D(&copied, graph, nullptr, 0, copy, source, kBytes,
                                 cudaMemcpyDeviceToDevice));
  cudaMemsetParams zero = {};
  zero.dst = copy;
  zero.elementSize = 4;
  zero.width = kCount / 2;
  zero.height = 1;
  CHECK(cudaGraphAddMemsetNode(&set, graph, &copied, 1, &zero));
  float factor = 2.0f;
  int count = kCount;
  void* arguments[] = {&copy, &factor, &count};
  cudaKernelNodeParams params = {};
  params.func = reinterpret_cast<void*>(Scale);
  params.gridDim = dim3(kBlocks);
  params.blockDim = dim3(kThreads);
  params.kernelParams = arguments;
  CHECK(cudaGraphAddKernelNode(kernel, graph, &set, 1, &params));
  return graph;
}

cudaGraphExec_t Instantiate(cudaGraph_t graph) {
  cudaGraphExec_t executable = nullptr;
  CHECK(cudaGraphInstantiate(&executable, graph, 0));
  return executable;
}

int main() {
  cudaStream_t stream, side;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking));
  std::vector<float*> arrays(kArrays);
  for (int i = 0; i < kArrays; ++i)
    arrays[i] = samples::DeviceArray(samples::RandomFloats(kCount, i));
  CHECK(cudaDeviceSynchronize());

  std::vector<cudaGraphExec_t> steps;
  for (int i = 0; i + 2 < kArrays; i += 2) {
    const cudaGraph_t graph = CaptureStep(stream, side, arrays[i], arrays[i + 1], arrays[i + 2]);
    steps.push_back(Instantiate(graph));
    CHECK(cudaGraphDestroy(graph));
  }
  for (int iteration = 0; iteration < 3; ++iteration) {
    for (const cudaGraphExec_t step : steps) CHECK(cudaGraphLaunch(step, stream));
  }

  // The first step continues with other arrays.
  const cudaGraph_t other = CaptureStep(stream, side, arrays[9], arrays[4], arrays[1]);
  cudaGraphExecUpdateResultInfo info;
  CHECK(cudaGraphExecUpdate(steps[0], other, &info));
  CHECK(cudaGraphLaunch(steps[0], stream));

  cudaGraphNode_t kernel;
  const cudaGraph_t built = BuildStep(arrays[3], arrays[12], &kernel);
  const cudaGraphExec_t built_step = Instantiate(built);
  CHECK(cudaGraphLaunch(built_step, stream));
  cudaKernelNodeParams params = {};
  CHECK(cudaGraphKernelNodeGetParams(kernel, &params));
  // The parameter array from the driver belongs to the node and must not be changed
  // (cudaGraphKernelNodeGetParams).
  float* elsewhere = arrays[15];
  void* arguments[] = {&elsewhere, params.kernelParams[1], params.kernelParams[2]};
  params.kernelParams = arguments;
  CHECK(cudaGraphExecKernelNodeSetParams(built_step, kernel, &params));
  CHECK(cudaGraphLaunch(built_step, stream));

  const cudaGraph_t scratch = CaptureScratch(stream, arrays[7], arrays[8]);
  const cudaGraphExec_t scratch_step = Instantiate(scratch);
  for (int i = 0; i < 2; ++i) CHECK(cudaGraphLaunch(scratch_step, stream));
  CHECK(cudaStreamSynchronize(stream));

  for (int i = 0; i < kArrays; ++i)
    samples::Report("array", i, samples::HostCopy(arrays[i], kCount));
  for (const cudaGraphExec_t step : steps) CHECK(cudaGraphExecDestroy(step));
  for (const cudaGraphExec_t step : {built_step, scratch_step}) CHECK(cudaGraphExecDestroy(step));
  for (const cudaGraph_t graph : {other, built, scratch}) CHECK(cudaGraphDestroy(graph));
  for (float* array : arrays) CHECK(cudaFree(array));
  return 0;
}
