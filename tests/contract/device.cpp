#include "tests/contract/device.h"

#include <filesystem>
#include <fstream>
#include <iterator>

namespace spillway::contract {
namespace {

std::vector<char> ReadKernelImage() {
  const auto folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  std::ifstream image(folder / "contract_kernels.fatbin", std::ios::binary);
  ASSERT_TRUE(image.good());
  std::vector<char> bytes{std::istreambuf_iterator<char>(image), std::istreambuf_iterator<char>()};
  bytes.push_back('\0');  // the image may be PTX text, which ends with a NUL
  return bytes;
}

constexpr unsigned kThreads = 256;

unsigned BlocksFor(std::size_t count) {
  const std::size_t blocks = (count + kThreads - 1) / kThreads;
  return static_cast<unsigned>(blocks < 1024 ? blocks : 1024);  // the kernels stride over the rest
}

}  // namespace

CUdevice InitDevice() {
  CUdevice device = -1;
  ASSERT_OK(cuInit(0));
  ASSERT_OK(cuDeviceGet(&device, 0));
  return device;
}

CUdevice UseDevice() {
  const CUdevice device = InitDevice();
  CUcontext context = nullptr;
  ASSERT_OK(cuDevicePrimaryCtxRetain(&context, device));
  ASSERT_OK(cuCtxSetCurrent(context));
  return device;
}

int Attribute(CUdevice device, CUdevice_attribute attribute) {
  int value = 0;
  ASSERT_OK(cuDeviceGetAttribute(&value, attribute, device));
  return value;
}

CUdeviceptr Allocate(std::size_t size_bytes) {
  CUdeviceptr address = 0;
  ASSERT_OK(cuMemAlloc(&address, size_bytes));
  return address;
}

CUstream MakeStream(unsigned flags) {
  CUstream stream = nullptr;
  ASSERT_OK(cuStreamCreate(&stream, flags));
  return stream;
}

CUevent MakeEvent(unsigned flags) {
  CUevent event = nullptr;
  ASSERT_OK(cuEventCreate(&event, flags));
  return event;
}

const std::vector<char>& KernelImage() {
  static const std::vector<char> image = ReadKernelImage();
  return image;
}

CUmodule LoadModule() {
  CUmodule module = nullptr;
  ASSERT_OK(cuModuleLoadData(&module, KernelImage().data()));
  return module;
}

CUfunction Kernel(const char* name) {
  static const CUmodule module = LoadModule();
  CUfunction kernel = nullptr;
  ASSERT_OK(cuModuleGetFunction(&kernel, module, name));
  return kernel;
}

CUresult LaunchRaw(CUfunction kernel, unsigned blocks, unsigned threads, CUstream stream,
                   void** arguments) {
  return cuLaunchKernel(kernel, blocks, 1, 1, threads, 1, 1, 0, stream, arguments, nullptr);
}

void Fill(CUdeviceptr words, std::uint32_t value, std::size_t count, CUstream stream) {
  Launch("fill", BlocksFor(count), kThreads, stream, words, value, std::uint64_t{count});
}

void Spin(double milliseconds, CUstream stream, CUdeviceptr word, std::uint32_t value) {
  const auto clock_khz = Attribute(0, CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
  const auto cycles = static_cast<std::int64_t>(milliseconds * clock_khz);
  Launch("spin", 1, 1, stream, cycles, word, value);
}

std::vector<std::uint32_t> ReadWords(CUdeviceptr source, std::size_t count) {
  std::vector<std::uint32_t> words(count);
  ASSERT_OK(cuMemcpyDtoH(words.data(), source, count * sizeof(std::uint32_t)));
  return words;
}

std::uint32_t ReadWord(CUdeviceptr source) { return ReadWords(source, 1)[0]; }

void WriteWords(CUdeviceptr target, const std::vector<std::uint32_t>& words) {
  ASSERT_OK(cuMemcpyHtoD(target, words.data(), words.size() * sizeof(std::uint32_t)));
}

bool AllWordsAre(CUdeviceptr source, std::size_t count, std::uint32_t value) {
  for (const std::uint32_t word : ReadWords(source, count))
    if (word != value) return false;
  return true;
}

}  // namespace spillway::contract
