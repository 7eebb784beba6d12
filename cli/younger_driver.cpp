#include "cli/younger_driver.h"

#include <iterator>
#include <sstream>

#include "cli/elf_symbols.h"
#include "cli/files.h"
#include "cli/subprocess.h"

namespace spillway::cli {
namespace {

constexpr std::size_t kListed = 8;

std::set<std::string> SymbolsOf(const std::string& path) {
  const auto file = MappedFile::Open(path);
  return file ? ExportedSymbols(file->view()) : std::set<std::string>{};
}

// cudbg... and kin belong to the debugger.
bool IsDriverFunction(const std::string& name) {
  return name.size() > 2 && name.starts_with("cu") && name[2] >= 'A' && name[2] <= 'Z';
}

// Takes "undefined symbol: cuFunction\t(./program)"; empty: another message.
std::string UndefinedSymbol(const std::string& line) {
  constexpr std::string_view kSays = "undefined symbol: ";
  const std::size_t at = line.find(kSays);
  if (at == std::string::npos) return "";
  const std::string rest = line.substr(at + kSays.size());
  return rest.substr(0, rest.find_first_of(" ,\t("));
}

}  // namespace

std::set<std::string> UnknownFunctions(const std::string& driver,
                                       const std::string& preload_library) {
  const std::set<std::string> known = SymbolsOf(preload_library);
  std::set<std::string> unknown;
  if (known.empty()) return unknown;
  for (const std::string& name : SymbolsOf(driver)) {
    if (IsDriverFunction(name) && !known.contains(name)) unknown.insert(name);
  }
  return unknown;
}

// Like ldd -r, the loader binds everything, reports missing symbols, and starts nothing.
std::set<std::string> NeededAtStart(const LoadedProgram& program,
                                    const std::set<std::string>& functions,
                                    const std::string& preload_library,
                                    EnvironmentChanges environment) {
  if (functions.empty()) return {};
  environment.Prepend("LD_PRELOAD", preload_library, ':');
  environment.Set("LD_TRACE_LOADED_OBJECTS", "1");
  environment.Set("LD_WARN", "yes");
  environment.Set("LD_BIND_NOW", "yes");
  std::istringstream answer(RunSubprocess({program.loader, program.path}, environment).output);
  std::set<std::string> needed;
  for (std::string line; std::getline(answer, line);) {
    const std::string name = UndefinedSymbol(line);
    if (functions.contains(name)) needed.insert(name);
  }
  return needed;
}

std::string Listed(const std::set<std::string>& names) {
  std::string text;
  std::size_t shown = 0;
  for (const std::string& name : names) {
    if (shown == kListed) return text + " and " + std::to_string(names.size() - shown) + " more";
    text += (shown++ == 0 ? "" : ", ") + name;
  }
  return text;
}

}  // namespace spillway::cli
