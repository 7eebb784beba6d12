#include "simulator/driver/calls/module_link.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "simulator/driver/failure.h"
#include "simulator/driver/modules/ptx_text.h"
#include "simulator/driver/modules/read_module.h"

namespace spillway::simulator {
namespace {

// A definition beats a declaration without a size.
template <class Item>
void Merge(std::vector<Item>&& items, std::vector<Item>& into) {
  for (Item& item : items) {
    const bool is_known = std::any_of(into.begin(), into.end(),
                                      [&](const Item& other) { return other.name == item.name; });
    if (!is_known) into.push_back(std::move(item));
  }
}

bool IsForHostLinker(CUjitInputType type) {
  return type == CU_JIT_INPUT_OBJECT || type == CU_JIT_INPUT_LIBRARY;
}

}  // namespace

void ModuleLink::Add(CUjitInputType type, base::ByteView input, int architecture,
                     const char* name) {
  Require(image.empty() && type >= CU_JIT_INPUT_CUBIN && type < CU_JIT_NUM_INPUT_TYPES);
  Require(type != CU_JIT_INPUT_NVVM, CUDA_ERROR_NOT_SUPPORTED);
  if (IsForHostLinker(type)) return;
  std::optional<ModuleList> added = ReadModule(input, architecture);
  if (!added) {
    report.AddError(std::string("error   : ") + (name == nullptr ? "<input>" : name) +
                    (type == CU_JIT_INPUT_PTX ? " is no PTX\n" : " is no module\n"));
    throw Failure{type == CU_JIT_INPUT_PTX ? CUDA_ERROR_INVALID_PTX : CUDA_ERROR_INVALID_IMAGE};
  }
  Merge(std::move(added->kernels), list.kernels);
  Merge(std::move(added->variables), list.variables);
}

void ModuleLink::Complete() {
  if (image.empty()) image = PtxOf(list);
}

}  // namespace spillway::simulator
