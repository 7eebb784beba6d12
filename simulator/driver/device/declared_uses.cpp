#include "simulator/driver/device/declared_uses.h"

#include <algorithm>

#include "base/file.h"
#include "base/lines.h"
#include "simulator/driver/device/rule_line.h"
#include "simulator/driver/machine/kernel_names.h"

namespace spillway::simulator {
namespace {

using Use = DeclaredKernel::Use;

// A wrong count must not fill the memory.
constexpr std::uint64_t kMostRepeated = 1 << 12;

UseKind KindNamed(const std::string& role, RuleLine& line) {
  if (role == "read") return UseKind::kRead;
  if (role == "write") return UseKind::kWrite;
  if (role == "update") return UseKind::kUpdate;
  if (role == "part") return UseKind::kPart;
  if (role == "fill") return UseKind::kFill;
  line.Fail("'" + role + "' is none of read, write, update, part, fill, each, ignore, flops");
  return UseKind::kUpdate;
}

std::string Trimmed(const std::string& line, std::size_t equals) {
  const std::size_t start =
      equals == std::string::npos ? equals : line.find_first_not_of(' ', equals + 1);
  if (start == std::string::npos) return "";
  return line.substr(start, line.find_last_not_of(' ') + 1 - start);
}

std::vector<std::string> ArgumentsAt(const std::string& line, std::size_t start, std::size_t& end) {
  std::vector<std::string> arguments(1);
  int depth = 0;
  for (std::size_t at = start; at < line.size(); ++at) {
    const char c = line[at];
    if (c == ')' && --depth == 0) return end = at + 1, arguments;
    if (c == ',' && depth == 1)
      arguments.emplace_back();
    else if (depth > 0)
      arguments.back() += c;
    if (c == '(') ++depth;
    if (depth == 0) break;
  }
  return {};
}

struct NamedText {
  std::string text;
  std::size_t end;
};

NamedText Completed(const std::string& text, const std::string& line, std::size_t end) {
  if (text.find("$1") == std::string::npos) return {text, end};
  NamedText completed{"", end};
  const std::vector<std::string> arguments = ArgumentsAt(line, end, completed.end);
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char digit = text[at] == '$' && at + 1 < text.size() ? text[at + 1] : '0';
    const auto number = static_cast<std::size_t>(digit - '1');
    if (digit >= '1' && digit <= '9' && number < arguments.size())
      completed.text += arguments[number], ++at;
    else
      completed.text += text[at];
  }
  return completed;
}

Use ReadUse(UseKind kind, RuleLine& line) {
  Use use{kind, line.ParameterNumber()};
  if (line.Take('@'))
    use.nth = line.Number();
  else
    use.place = line.PlaceInParameter(), use.before = line.BytesBefore();
  line.Expect(',');
  use.bytes = line.Bytes();
  if (kind != UseKind::kPart && kind != UseKind::kFill) return use;
  if (use.bytes == nullptr) line.Fail("a part or fill needs a number of bytes");
  line.Expect(',');
  use.part = line.Sum();
  if (kind == UseKind::kFill) return use;
  line.Expect(',');
  use.parts = line.Sum();
  return use;
}

// Reduces "void a::b::name<c::d>(int)" to the name, with template arguments on request.
std::string ShortName(std::string demangled, bool with_template) {
  constexpr std::string_view kUnnamed = "(anonymous namespace)::";
  for (std::size_t at; (at = demangled.find(kUnnamed)) != std::string::npos;)
    demangled.erase(at, kUnnamed.size());
  int depth = 0;
  std::size_t start = 0;
  std::size_t end = demangled.size();
  std::size_t opens = std::string::npos;
  for (std::size_t i = 0; i < demangled.size(); ++i) {
    const char c = demangled[i];
    if (c == '<' && depth++ == 0) opens = i;
    if (c == '>') --depth;
    if (depth == 0 && (c == ' ' || (c == ':' && i > 0 && demangled[i - 1] == ':'))) {
      start = i + 1;
      opens = std::string::npos;
    }
    if (depth == 0 && c == '(') {
      end = i;
      break;
    }
  }
  if (!with_template && opens != std::string::npos) end = std::min(end, opens);
  return demangled.substr(start, end - start);
}

void* NthPointer(const RuledLaunch& launch, std::uint32_t parameter, std::uint64_t nth) {
  if (parameter >= launch.entry.parameter_count) return nullptr;
  const KernelParameter& place = launch.entry.parameters[parameter];
  for (const NamedMemory& named : launch.named) {
    if (named.offset_bytes - place.offset_bytes < place.size_bytes && nth-- == 0)
      return reinterpret_cast<void*>(named.address);
  }
  return nullptr;
}

void* PointerOf(const Use& use, const RuleTerm::Scope& scope) {
  if (use.nth) return NthPointer(scope.launch, use.pointer, *use.nth);
  const std::uint64_t offset_bytes = use.place == nullptr ? 0 : use.place->In(scope);
  const std::uint64_t pointer = NumberAt(scope.launch, use.pointer, offset_bytes, sizeof(void*));
  const std::uint64_t before_bytes = use.before == nullptr ? 0 : use.before->In(scope);
  return reinterpret_cast<void*>(pointer == 0 ? 0 : pointer - before_bytes);
}

bool NamesMemory(const DeclaredKernel::Launch& launch, std::uint32_t offset_bytes) {
  return std::any_of(launch.named.begin(), launch.named.end(), [&](const NamedMemory& named) {
    return offset_bytes - named.offset_bytes < sizeof(named.address);
  });
}

KernelUse Whole(UseKind kind, void* pointer, std::span<const NamedMemory> named) {
  const NamedMemory* const found = Holding(named, reinterpret_cast<std::uintptr_t>(pointer));
  if (found == nullptr) return {nullptr, 0, kind};
  return {reinterpret_cast<void*>(found->base), found->size_bytes, kind};
}

// Strides may lead a sum of bytes astray, and so may repeated elements.
void EndWithAllocation(KernelUse& use, std::span<const NamedMemory> named) {
  const auto address = reinterpret_cast<std::uintptr_t>(use.pointer);
  if (const NamedMemory* const found = Holding(named, address); found != nullptr)
    use.size_bytes = std::min(use.size_bytes, found->base + found->size_bytes - address);
}

}  // namespace

base::Status DeclaredKernel::Read(RuleLine& line) {
  RuleTermRef count;
  while (!line.AtEnd()) {
    const std::string role = line.Word();
    line.Expect('(');
    if (role == "flops") {
      flops_ = line.Sum();
    } else if (role == "ignore") {
      ignored_.push_back(line.ParameterNumber());
    } else if (role == "each") {
      count = line.Sum();
    } else {
      uses_.push_back(ReadUse(KindNamed(role, line), line));
      uses_.back().count = count;
    }
    line.Expect(')');
  }
  if (line.status().ok() && uses_.empty()) return base::Error{"a kernel has at least one use"};
  return line.status();
}

bool DeclaredKernel::NeedsAllocations() const {
  return std::any_of(uses_.begin(), uses_.end(),
                     [](const Use& use) { return use.bytes == nullptr || use.nth; });
}

bool DeclaredKernel::IsScalar(std::uint32_t parameter) const {
  return std::find(ignored_.begin(), ignored_.end(), parameter) == ignored_.end() &&
         std::none_of(uses_.begin(), uses_.end(),
                      [&](const Use& use) { return use.pointer == parameter; });
}

KernelUse DeclaredKernel::At(const Use& use, const RuleTerm::Scope& scope) const {
  void* const pointer = PointerOf(use, scope);
  if (use.bytes == nullptr) return Whole(use.kind, pointer, scope.launch.named);
  KernelUse made{pointer, use.bytes->In(scope), use.kind};
  if (scope.launch.entry.body == nullptr) EndWithAllocation(made, scope.launch.named);
  if (use.part != nullptr) made.part = static_cast<std::uint32_t>(use.part->In(scope));
  if (use.parts != nullptr) made.parts = static_cast<std::uint32_t>(use.parts->In(scope));
  return made;
}

KernelEffect DeclaredKernel::Describe(const Launch& launch) const {
  KernelEffect effect{Identity(launch), {}};
  for (const Use& use : uses_) {
    RuleTerm::Scope scope{launch, types_};
    const std::uint64_t count =
        use.count == nullptr ? 1 : std::min(use.count->In(scope), kMostRepeated);
    for (; scope.each < count; ++scope.each) effect.uses.push_back(At(use, scope));
  }
  return effect;
}

std::uint64_t DeclaredKernel::Flops(const Launch& launch) const {
  return flops_ == nullptr ? 0 : flops_->In({launch, types_});
}

std::uint64_t DeclaredKernel::Identity(const Launch& launch) const {
  const KernelEntry& entry = launch.entry;
  std::uint64_t hash = 0xcbf29ce484222325;
  for (std::uint32_t i = 0; i < entry.parameter_count; ++i) {
    if (!IsScalar(i) || entry.parameters[i].size_bytes < kLeastScalarBytes) continue;
    const auto* const bytes = static_cast<const unsigned char*>(launch.arguments[i]);
    for (std::uint32_t b = 0; b < entry.parameters[i].size_bytes; ++b) {
      if (!NamesMemory(launch, entry.parameters[i].offset_bytes + b))
        hash = (hash ^ bytes[b]) * 0x100000001b3;
    }
  }
  return hash;
}

base::Status DeclaredUses::AddFile(const std::string& path) {
  const base::Result<std::string> text = base::ReadFile(path);
  if (!text) return text.status();
  std::string_view rest = *text;
  for (int number = 1; const auto line = base::TakeLine(rest); ++number) {
    if (base::Status added = AddLine(std::string(*line)); !added.ok())
      return std::move(added).Annotate(path + ":" + std::to_string(number));
  }
  return base::Ok();
}

base::Status DeclaredUses::AddText(const std::string& line) {
  const std::size_t equals = line.find('=');
  const std::string name = line.substr(0, line.find_first_of(" =")), text = Trimmed(line, equals);
  if (name.size() < 2 || text.empty()) return base::Error{"write $name = TEXT"};
  texts_[name] = WithTexts(text);
  return base::Ok();
}

std::string DeclaredUses::WithTexts(std::string line) const {
  for (const auto& [name, text] : texts_) {
    for (std::size_t at = 0; (at = line.find(name, at)) != std::string::npos;) {
      const std::size_t end = at + name.size();
      const NamedText use = Completed(text, line, end);
      line.replace(at, use.end - at, use.text);
      at += use.text.size();
    }
  }
  return line;
}

base::Status DeclaredUses::AddLine(const std::string& written) {
  if (written.starts_with('$')) return AddText(written);
  const std::string text = WithTexts(written);
  RuleLine line(text);
  if (line.AtEnd()) return base::Ok();
  const bool is_pattern = line.Take('"');
  std::string name = is_pattern ? line.Pattern() : line.Name();
  const NamePattern pattern(is_pattern ? name : "");
  DeclaredKernel kernel;
  if (base::Status read = kernel.Read(line); !read.ok()) return read;
  for (const std::string& type : line.types()) {
    if (!pattern.Captures(type)) return base::Error{"the pattern captures no type {" + type + "}"};
  }
  if (is_pattern)
    by_pattern_.push_back({pattern, std::move(kernel)});
  else
    by_name_[name] = std::move(kernel);
  return base::Ok();
}

const DeclaredKernel* DeclaredUses::Find(const char* mangled_name) const {
  if (by_name_.empty() && by_pattern_.empty()) return nullptr;
  const auto known = found_.find(mangled_name);
  if (known != found_.end()) return known->second;
  return found_[mangled_name] = Search(mangled_name);
}

const DeclaredKernel* DeclaredUses::Search(const char* mangled_name) const {
  const std::string name = Demangled(mangled_name);
  for (const bool with_template : {true, false}) {
    const auto found = by_name_.find(ShortName(name, with_template));
    if (found != by_name_.end()) return &found->second;
  }
  for (const Rule& rule : by_pattern_) {
    std::optional<TypeSizes> types = rule.pattern.Match(name);
    if (!types) continue;
    matched_.push_back(rule.kernel);
    matched_.back().types_ = *std::move(types);
    return &matched_.back();
  }
  return nullptr;
}

}  // namespace spillway::simulator
