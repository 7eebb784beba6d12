// kernel_rules RULES PROGRAM [without]: counts the kernels that a file of rules names, and lists
// the others with the sizes of their parameters.
#include <fcntl.h>
#include <sys/stat.h>

#include <cstdio>
#include <cstring>
#include <map>
#include <string>

#include "base/fat_binary.h"
#include "base/mapping.h"
#include "base/unique_fd.h"
#include "simulator/driver/device/declared_uses.h"
#include "simulator/driver/machine/kernel_names.h"
#include "simulator/driver/modules/read_module.h"

namespace spillway::simulator {
namespace {

using base::ByteView;
using base::FatContainer;

constexpr int kArchitecture = 90;

struct Listed {
  std::size_t modules = 0;
  std::map<std::string, std::vector<KernelParameter>> kernels;
};

void AddModule(ByteView image, Listed& listed) {
  const auto list = ReadModule(image, kArchitecture);
  if (!list) return;
  ++listed.modules;
  for (const ListedKernel& kernel : list->kernels)
    listed.kernels.emplace(kernel.name, kernel.parameters);
}

// The modules lie one after the other, at multiples of eight bytes.
Listed ListAll(ByteView file) {
  Listed listed;
  for (std::size_t at = 0; file.Holds(at, FatContainer::kLeastBytes);) {
    const FatContainer container(file.Part(at, file.size() - at));
    const std::size_t bytes = container.IsOne() ? container.LengthByHeader() : 0;
    const bool is_module = bytes != 0 && file.Holds(at, bytes);
    if (is_module) AddModule(file.Part(at, bytes), listed);
    at += is_module ? (bytes + 7) / 8 * 8 : 8;
  }
  return listed;
}

std::string SizesOf(const std::vector<KernelParameter>& parameters) {
  std::string sizes;
  for (const KernelParameter& parameter : parameters)
    sizes.append(sizes.empty() ? "" : ",").append(std::to_string(parameter.size_bytes));
  return sizes;
}

void Print(const Listed& listed, const DeclaredUses& rules, bool with_names) {
  std::size_t ruled = 0;
  for (const auto& [name, parameters] : listed.kernels) {
    if (rules.Find(name.c_str()) != nullptr)
      ++ruled;
    else if (with_names)
      std::printf("%s\t%s\n", SizesOf(parameters).c_str(), Demangled(name.c_str()).c_str());
  }
  std::printf("%zu modules, %zu kernels, %zu with a rule\n", listed.modules, listed.kernels.size(),
              ruled);
}

int Run(const char* rules_path, const char* program_path, bool with_names) {
  DeclaredUses rules;
  if (const base::Status added = rules.AddFile(rules_path); !added.ok()) {
    std::fprintf(stderr, "kernel_rules: %s\n", added.text().c_str());
    return 1;
  }
  const base::UniqueFd file(open(program_path, O_RDONLY | O_CLOEXEC));
  struct stat facts {};
  if (!file || fstat(file.get(), &facts) != 0 || facts.st_size == 0) {
    std::fprintf(stderr, "kernel_rules: cannot read %s\n", program_path);
    return 1;
  }
  const base::Mapping bytes(file.get(), static_cast<std::size_t>(facts.st_size), PROT_READ);
  if (!bytes) return 1;
  Print(ListAll({bytes.address(), bytes.size_bytes()}), rules, with_names);
  return 0;
}

}  // namespace
}  // namespace spillway::simulator

int main(int count, char** words) {
  const bool with_names = count == 4 && std::strcmp(words[3], "without") == 0;
  if (count != 3 && !with_names) {
    std::fprintf(stderr,
                 "usage: kernel_rules RULES PROGRAM [without]\n"
                 "Says how many kernels of a program or library the rules name; `without` lists "
                 "the others, each after its parameters' sizes.\n");
    return 2;
  }
  return spillway::simulator::Run(words[1], words[2], with_names);
}
