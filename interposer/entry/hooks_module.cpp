// The device variables of loaded modules and libraries are known from then on, even if the program
// never looks them up. (Note [Device variables are listed] in ledger/image_variables.h)
#include "interposer/driver/driver_api.h"
#include "interposer/entry/export.h"
#include "interposer/entry/reentry_guard.h"
#include "interposer/execute/state/ordering_rules.h"
#include "interposer/ledger/image_variables.h"
#include "interposer/ledger/libraries.h"
#include "interposer/runtime/runtime.h"

namespace spillway::entry {
namespace {

using driver::Driver;
using interposer::DependsOn;
using interposer::ImageVariables;
using interposer::Libraries;
namespace ordering_rules = interposer::ordering_rules;

void Know(CUmodule module, const ImageVariables& variables) {
  for (const std::string& name : variables.names) {
    CUdeviceptr base = 0;
    size_t bytes = 0;
    if (Driver().cuModuleGetGlobal_v2(&base, &bytes, module, name.c_str()) == CUDA_SUCCESS && base)
      interposer::RegisterGlobal(base, bytes, module);
  }
}

void Know(CUlibrary library, ImageVariables variables) {
  Libraries::Instance().Add(library, std::move(variables.names));
}

template <class Handle, class Read, class Call>
CUresult AroundLoad(const Handle* handle, Read read, Call call) {
  const ReentryGuard guard;
  const CUresult result = call();
  if (result != CUDA_SUCCESS || !guard.IsOutermost() || !ordering_rules::kVariablesAreFound)
    return result;
  ImageVariables variables = read();
  Libraries::Instance().Remove(*handle);  // of a module that ended with its context
  if (!variables.is_readable) Libraries::Instance().NoteUnreadable();
  if (variables.is_plain())
    Libraries::Instance().Note(
        *handle, variables.has_constants ? DependsOn::kConstants : DependsOn::kNothingElse);
  Know(*handle, std::move(variables));
  return result;
}

}  // namespace
}  // namespace spillway::entry

using spillway::driver::Driver;
using spillway::entry::AroundLoad;
using spillway::interposer::VariablesOf;
using spillway::interposer::VariablesOfFile;

#define SPILLWAY_LOAD(name, read, parameters, arguments)                        \
  SPILLWAY_EXPORT CUresult name parameters {                                    \
    return AroundLoad(                                                          \
        handle, [&] { return read; }, [&] { return Driver().name arguments; }); \
  }
SPILLWAY_LOAD(cuModuleLoad, VariablesOfFile(path), (CUmodule * handle, const char* path),
              (handle, path))
SPILLWAY_LOAD(cuModuleLoadData, VariablesOf(image), (CUmodule * handle, const void* image),
              (handle, image))
SPILLWAY_LOAD(cuModuleLoadDataEx, VariablesOf(image),
              (CUmodule * handle, const void* image, unsigned int count, CUjit_option* options,
               void** values),
              (handle, image, count, options, values))
SPILLWAY_LOAD(cuModuleLoadFatBinary, VariablesOf(image), (CUmodule * handle, const void* image),
              (handle, image))
SPILLWAY_LOAD(cuLibraryLoadData, VariablesOf(code),
              (CUlibrary * handle, const void* code, CUjit_option* jit_options, void** jit_values,
               unsigned int jit_count, CUlibraryOption* options, void** values, unsigned int count),
              (handle, code, jit_options, jit_values, jit_count, options, values, count))
SPILLWAY_LOAD(cuLibraryLoadFromFile, VariablesOfFile(path),
              (CUlibrary * handle, const char* path, CUjit_option* jit_options, void** jit_values,
               unsigned int jit_count, CUlibraryOption* options, void** values, unsigned int count),
              (handle, path, jit_options, jit_values, jit_count, options, values, count))
