#include "simulator/driver/modules/ptx_text.h"

#include <algorithm>
#include <cstdint>

namespace spillway::simulator {
namespace {

constexpr std::uint32_t kLargestAlignment = 16;

// Any that leads from the parameter before to this one's offset will do.
std::uint32_t AlignmentOf(std::uint32_t offset_bytes) {
  if (offset_bytes == 0) return kLargestAlignment;
  return std::min(offset_bytes & -offset_bytes, kLargestAlignment);
}

std::string Bytes(const std::string& name, std::uint64_t count) {
  return ".b8 " + name + '[' + std::to_string(count) + ']';
}

std::string ParametersOf(const ListedKernel& kernel) {
  std::string text;
  for (const KernelParameter& parameter : kernel.parameters) {
    const std::string name =
        kernel.name + "_param_" + std::to_string(&parameter - kernel.parameters.data());
    text += text.empty() ? "" : ", ";
    text += ".param .align " + std::to_string(AlignmentOf(parameter.offset_bytes)) + ' ' +
            Bytes(name, parameter.size_bytes);
  }
  return text;
}

}  // namespace

std::string PtxOf(const ModuleList& list) {
  std::string text = ".version 8.0\n.target sm_80\n.address_size 64\n";
  for (const ListedVariable& variable : list.variables)
    text += ".visible .global " + Bytes(variable.name, variable.size_bytes) + ";\n";
  for (const ListedKernel& kernel : list.kernels)
    text += ".visible .entry " + kernel.name + '(' + ParametersOf(kernel) + ")\n{\n}\n";
  return text;
}

}  // namespace spillway::simulator
