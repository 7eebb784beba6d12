#include "simulator/driver/device/declared_uses.h"

#include <fnmatch.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>

#include "base/file.h"
#include "base/lines.h"
#include "simulator/driver/machine/kernel_names.h"

namespace spillway::simulator {

struct DeclaredKernel::Term {
  char kind;  // '#' number, 'p' parameter, 'g' blocks, or + - * /
  std::uint64_t value;
  std::uint32_t word;
  std::shared_ptr<const Term> left;
  std::shared_ptr<const Term> right;

  std::uint64_t In(const Launch& launch) const {
    if (kind == '#') return value;
    if (kind == 'p') return Parameter(launch);
    if (kind == 'g')
      return std::uint64_t{launch.shape.grid[0]} * launch.shape.grid[1] * launch.shape.grid[2];
    const std::uint64_t a = left->In(launch);
    const std::uint64_t b = right->In(launch);
    if (kind == '+') return a + b;
    if (kind == '-') return a - b;
    if (kind == '*') return a * b;
    return b == 0 ? 0 : a / b;
  }

 private:
  static constexpr std::uint32_t kWhole = ~std::uint32_t{0};
  std::uint64_t Parameter(const Launch& launch) const {
    const KernelEntry& entry = launch.entry;
    const std::uint32_t size_bytes =
        entry.parameter_count > value ? entry.parameters[value].size_bytes : 0;
    const std::size_t offset = word == kWhole ? 0 : 4 * std::size_t{word};
    const std::size_t bytes = word == kWhole ? size_bytes : 4;
    std::uint64_t number = 0;
    if (bytes > sizeof(number) || offset + bytes > size_bytes) return 0;
    std::memcpy(&number, static_cast<const char*>(launch.arguments[value]) + offset, bytes);
    return number;
  }
};

namespace {

using Term = DeclaredKernel::Term;
using TermRef = std::shared_ptr<const Term>;

// After an error the parser stands at the end of the line; `status` keeps the first error.
class LineParser {
 public:
  explicit LineParser(const std::string& line) : text_(line) {}

  const base::Status& status() const { return status_; }
  void Fail(std::string what) {
    if (status_.ok()) status_ = base::Error{std::move(what)};
    at_ = text_.size();
  }

  bool AtEnd() {
    SkipSpace();
    return at_ == text_.size() || text_[at_] == '#';
  }

  // A pattern stands in quotes, which Take has removed.
  std::string Pattern() {
    const std::size_t start = at_;
    at_ = std::min(text_.find('"', at_), text_.size());
    std::string pattern = text_.substr(start, at_ - start);
    if (!Take('"')) Fail("the closing '\"' is missing");
    return pattern;
  }

  std::string Name() {
    SkipSpace();
    const std::size_t start = at_;
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) == 0) ++at_;
    return text_.substr(start, at_ - start);
  }

  std::string Word() {
    SkipSpace();
    const std::size_t start = at_;
    while (at_ < text_.size() && std::isalpha(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
    return text_.substr(start, at_ - start);
  }

  bool Take(char wanted) {
    SkipSpace();
    if (at_ == text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }

  void Expect(char wanted) {
    if (!Take(wanted)) Fail(std::string("'") + wanted + "' is missing");
  }

  std::uint64_t Number() {
    SkipSpace();
    const std::size_t start = at_;
    while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
    if (at_ == start || at_ - start > 18) return Fail("a number is missing"), 0;
    return std::strtoull(text_.c_str() + start, nullptr, 10);
  }

  std::uint32_t ParameterNumber() {
    Expect('p');
    return static_cast<std::uint32_t>(Number());
  }

  // The number in brackets, or `otherwise` where there are none.
  std::uint32_t WordNumber(std::uint32_t otherwise) {
    if (!Take('[')) return otherwise;
    const std::uint64_t number = Number();
    Expect(']');
    return static_cast<std::uint32_t>(number);
  }

  // Null for `all`.
  TermRef Bytes() {
    SkipSpace();
    if (text_.compare(at_, 3, "all") != 0) return Sum();
    at_ += 3;
    return nullptr;
  }

  TermRef Sum() {
    TermRef sum = Product();
    while (true) {
      if (Take('+'))
        sum = Of('+', sum, Product());
      else if (Take('-'))
        sum = Of('-', sum, Product());
      else
        return sum;
    }
  }

 private:
  void SkipSpace() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }

  static TermRef Of(char kind, TermRef left, TermRef right) {
    return std::make_shared<Term>(Term{kind, 0, 0, std::move(left), std::move(right)});
  }

  TermRef Product() {
    TermRef product = Factor();
    while (true) {
      if (Take('*'))
        product = Of('*', product, Factor());
      else if (Take('/'))
        product = Of('/', product, Factor());
      else
        return product;
    }
  }

  TermRef Factor() {
    if (Take('(')) {
      TermRef inner = Sum();
      Expect(')');
      return inner;
    }
    if (Take('g')) return std::make_shared<Term>(Term{'g', 0, 0, nullptr, nullptr});
    if (!Take('p')) return std::make_shared<Term>(Term{'#', Number(), 0, nullptr, nullptr});
    Term parameter{'p', Number(), 0, nullptr, nullptr};
    parameter.word = WordNumber(~std::uint32_t{0});
    return std::make_shared<Term>(parameter);
  }

  const std::string& text_;
  std::size_t at_ = 0;
  base::Status status_;
};

UseKind KindNamed(const std::string& role, LineParser& parser) {
  if (role == "read") return UseKind::kRead;
  if (role == "write") return UseKind::kWrite;
  if (role == "update") return UseKind::kUpdate;
  if (role == "part") return UseKind::kPart;
  parser.Fail("'" + role + "' is none of read, write, update, part, ignore, flops");
  return UseKind::kUpdate;
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

void* PointerOf(const DeclaredKernel::Launch& launch, std::uint32_t parameter, std::uint32_t word) {
  const KernelEntry& entry = launch.entry;
  const std::size_t offset = 4 * std::size_t{word};
  void* pointer = nullptr;
  if (parameter < entry.parameter_count &&
      offset + sizeof(pointer) <= entry.parameters[parameter].size_bytes)
    std::memcpy(&pointer, static_cast<const char*>(launch.arguments[parameter]) + offset,
                sizeof(pointer));
  return pointer;
}

bool NamesMemory(const DeclaredKernel::Launch& launch, std::uint32_t offset_bytes) {
  return std::any_of(launch.named.begin(), launch.named.end(), [&](const NamedMemory& named) {
    return offset_bytes - named.offset_bytes < sizeof(named.address);
  });
}

}  // namespace

KernelUse DeclaredKernel::Whole(const Use& use, void* pointer, std::span<const NamedMemory> named) {
  const NamedMemory* const found = Holding(named, reinterpret_cast<std::uintptr_t>(pointer));
  if (found == nullptr) return {nullptr, 0, use.kind};
  return {reinterpret_cast<void*>(found->base), found->size_bytes, use.kind};
}

bool DeclaredKernel::NeedsAllocations() const {
  return std::any_of(uses_.begin(), uses_.end(),
                     [](const Use& use) { return use.bytes == nullptr; });
}

bool DeclaredKernel::IsScalar(std::uint32_t parameter) const {
  return std::find(ignored_.begin(), ignored_.end(), parameter) == ignored_.end() &&
         std::none_of(uses_.begin(), uses_.end(),
                      [&](const Use& use) { return use.pointer == parameter; });
}

void DeclaredKernel::Describe(const Launch& launch, KernelUseList* list) const {
  list->identity = Identity(launch);
  list->count = static_cast<std::uint32_t>(uses_.size());
  for (std::uint32_t i = 0; i < list->count; ++i) {
    const Use& use = uses_[i];
    void* const pointer = PointerOf(launch, use.pointer, use.word);
    if (use.bytes == nullptr) {
      list->uses[i] = Whole(use, pointer, launch.named);
      continue;
    }
    list->uses[i] = {pointer, use.bytes->In(launch), use.kind};
    if (use.kind != UseKind::kPart) continue;
    list->uses[i].part = static_cast<std::uint32_t>(use.part->In(launch));
    list->uses[i].parts = static_cast<std::uint32_t>(use.parts->In(launch));
  }
}

std::uint64_t DeclaredKernel::Flops(const Launch& launch) const {
  return flops_ == nullptr ? 0 : flops_->In(launch);
}

std::uint64_t DeclaredKernel::Identity(const Launch& launch) const {
  const KernelEntry& entry = launch.entry;
  std::uint64_t hash = 0xcbf29ce484222325;
  for (std::uint32_t i = 0; i < entry.parameter_count; ++i) {
    if (!IsScalar(i)) continue;
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

base::Status DeclaredUses::AddLine(const std::string& line) {
  LineParser parser(line);
  if (parser.AtEnd()) return base::Ok();
  const bool is_pattern = parser.Take('"');
  std::string name = is_pattern ? parser.Pattern() : parser.Name();
  DeclaredKernel kernel;
  while (!parser.AtEnd()) {
    const std::string role = parser.Word();
    parser.Expect('(');
    if (role == "flops") {
      kernel.flops_ = parser.Sum();
    } else if (role == "ignore") {
      kernel.ignored_.push_back(parser.ParameterNumber());
    } else {
      DeclaredKernel::Use use{
          KindNamed(role, parser), parser.ParameterNumber(), 0, nullptr, nullptr, nullptr};
      use.word = parser.WordNumber(0);
      parser.Expect(',');
      use.bytes = parser.Bytes();
      if (use.kind == UseKind::kPart) {
        if (use.bytes == nullptr) parser.Fail("a part needs a number of bytes");
        parser.Expect(',');
        use.part = parser.Sum();
        parser.Expect(',');
        use.parts = parser.Sum();
      }
      kernel.uses_.push_back(use);
    }
    parser.Expect(')');
  }
  if (!parser.status().ok()) return parser.status();
  if (kernel.uses_.empty() || kernel.uses_.size() > KernelUseList::kMost)
    return base::Error{"a kernel has 1 to 16 uses"};
  if (is_pattern)
    by_pattern_.emplace_back(std::move(name), std::move(kernel));
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
  for (const auto& [pattern, kernel] : by_pattern_) {
    if (fnmatch(pattern.c_str(), name.c_str(), 0) == 0) return &kernel;
  }
  return nullptr;
}

}  // namespace spillway::simulator
