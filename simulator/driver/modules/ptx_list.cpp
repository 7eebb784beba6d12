#include "simulator/driver/modules/ptx_list.h"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace spillway::simulator {
namespace {

constexpr std::uint64_t kMostArrayBytes = std::uint64_t{1} << 40;

bool IsOfWord(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '%' ||
         c == '.';
}

class Tokens {
 public:
  explicit Tokens(std::string_view text) : text_(text) { Next(); }

  std::string_view now() const { return now_; }
  bool AtEnd() const { return now_.empty(); }
  std::string_view Take() {
    const std::string_view taken = now_;
    Next();
    return taken;
  }
  bool TakeIf(std::string_view wanted) {
    if (now_ != wanted) return false;
    Next();
    return true;
  }
  bool SkipBlock(std::string_view opens, std::string_view closes) {
    for (std::size_t depth = 1; !AtEnd();) {
      const std::string_view token = Take();
      if (token == opens) ++depth;
      if (token == closes && --depth == 0) return true;
    }
    return false;
  }

 private:
  void Next() {
    SkipSpace();
    const std::size_t start = at_;
    if (at_ < text_.size() && text_[at_] == '"') {
      at_ = std::min(text_.find('"', at_ + 1), text_.size() - 1) + 1;
    } else {
      while (at_ < text_.size() && IsOfWord(text_[at_])) ++at_;
      if (at_ == start && at_ < text_.size()) ++at_;
    }
    now_ = text_.substr(start, at_ - start);
  }
  void SkipSpace() {
    while (at_ < text_.size()) {
      const std::string_view rest = text_.substr(at_);
      if (std::isspace(static_cast<unsigned char>(rest[0])) != 0)
        ++at_;
      else if (rest.starts_with("//"))
        at_ = std::min(text_.find('\n', at_), text_.size());
      else if (rest.starts_with("/*"))
        at_ = std::min(text_.find("*/", at_ + 2), text_.size() - 2) + 2;
      else
        return;
    }
  }

  const std::string_view text_;
  std::size_t at_ = 0;
  std::string_view now_;
};

std::optional<std::uint64_t> Number(std::string_view text) {
  std::uint64_t value = 0;
  const bool is_hexadecimal = text.starts_with("0x") || text.starts_with("0X");
  if (is_hexadecimal) text.remove_prefix(2);
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, is_hexadecimal ? 16 : 10);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// 0: no type of a value.
std::uint32_t BytesOfType(std::string_view word) {
  if (word == ".f16x2" || word == ".bf16x2") return 4;
  if (word == ".texref" || word == ".samplerref" || word == ".surfref") return 8;
  const std::size_t digits = word.find_first_of("0123456789");
  if (digits == std::string_view::npos) return 0;
  const std::string_view letters = word.substr(0, digits);
  constexpr std::string_view kLetters[] = {".b", ".u", ".s", ".f", ".bf", ".tf", ".e"};
  if (std::find(std::begin(kLetters), std::end(kLetters), letters) == std::end(kLetters)) return 0;
  return static_cast<std::uint32_t>(Number(word.substr(digits)).value_or(0) / 8);
}

struct Declared {
  std::string_view name;
  std::uint64_t alignment_bytes = 1;
  std::uint64_t size_bytes = 0;
};

// What follows .ptr is about the memory behind a parameter.
struct DeclaredType {
  std::uint64_t element_bytes = 0;
  std::uint64_t alignment_bytes = 0;

  bool Read(Tokens& tokens) {
    bool is_about_pointee = false;
    while (tokens.now().starts_with('.')) {
      const std::string_view word = tokens.Take();
      if (word == ".ptr") is_about_pointee = true;
      if (word == ".attribute") {
        if (!tokens.TakeIf("(") || !tokens.SkipBlock("(", ")")) return false;
      } else if (word == ".align") {
        const auto bytes = Number(tokens.Take());
        if (!bytes || *bytes == 0 || *bytes > kMostParameterBytes) return false;
        if (!is_about_pointee) alignment_bytes = *bytes;
      } else if (word == ".v2" || word == ".v4" || word == ".v8") {
        lanes_ = static_cast<std::uint64_t>(word[2] - '0');
      } else if (const std::uint32_t bytes = BytesOfType(word); bytes != 0) {
        element_bytes = bytes;
      }
    }
    element_bytes *= lanes_;
    alignment_bytes = std::max(alignment_bytes, element_bytes);
    return element_bytes != 0;
  }

 private:
  std::uint64_t lanes_ = 1;
};

// An array without bounds, which lies elsewhere, has size 0.
bool ReadDeclared(Tokens& tokens, const DeclaredType& type, Declared& out) {
  out = {tokens.Take(), type.alignment_bytes, type.element_bytes};
  if (out.name.empty() || !IsOfWord(out.name[0])) return false;
  while (tokens.TakeIf("[")) {
    const bool is_unbounded = tokens.now() == "]";
    const auto count = is_unbounded ? 0 : Number(tokens.Take());
    if (!count || !tokens.TakeIf("]")) return false;
    if (*count != 0 && out.size_bytes > kMostArrayBytes / *count) return false;
    out.size_bytes *= *count;
  }
  return true;
}

class PtxLister {
 public:
  explicit PtxLister(std::string_view text) : tokens_(text) {}

  std::optional<ModuleList> List() {
    if (tokens_.now() != ".version") return std::nullopt;
    while (!tokens_.AtEnd()) {
      const std::string_view token = tokens_.Take();
      bool is_readable = true;
      if (token == ".entry")
        is_readable = ReadKernel();
      else if (token == ".global" || token == ".const")
        is_readable = ReadVariables();
      else if (token == "{")
        is_readable = tokens_.SkipBlock("{", "}");
      if (!is_readable) return std::nullopt;
    }
    return std::move(list_);
  }

 private:
  bool ReadKernel() {
    ListedKernel kernel{std::string(tokens_.Take()), {}};
    if (kernel.name.empty() || !IsOfWord(kernel.name[0])) return false;
    if (tokens_.TakeIf("(") && !ReadParameters(kernel.parameters)) return false;
    const auto known = [&](const ListedKernel& other) { return other.name == kernel.name; };
    const bool is_declared_before = !list_.kernels.empty() && known(list_.kernels.back());
    if (!is_declared_before) list_.kernels.push_back(std::move(kernel));
    return true;
  }
  // Each at its alignment.
  bool ReadParameters(std::vector<KernelParameter>& parameters) {
    std::uint64_t offset = 0;
    while (!tokens_.TakeIf(")")) {
      DeclaredType type;
      Declared parameter;
      const bool is_readable = tokens_.TakeIf(".param") && type.Read(tokens_) &&
                               ReadDeclared(tokens_, type, parameter) &&
                               (tokens_.TakeIf(",") || tokens_.now() == ")");
      if (!is_readable || parameter.size_bytes == 0) return false;
      offset = (offset + parameter.alignment_bytes - 1) / parameter.alignment_bytes *
               parameter.alignment_bytes;
      if (offset + parameter.size_bytes > kMostParameterBytes) return false;
      parameters.push_back(
          {static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(parameter.size_bytes)});
      offset += parameter.size_bytes;
    }
    return true;
  }
  bool ReadVariables() {
    DeclaredType type;
    if (!type.Read(tokens_)) return false;
    do {
      Declared variable;
      if (!ReadDeclared(tokens_, type, variable)) return false;
      if (variable.size_bytes != 0)
        list_.variables.push_back({std::string(variable.name), variable.size_bytes});
      if (tokens_.TakeIf("=") && !SkipInitialiser()) return false;
    } while (tokens_.TakeIf(","));
    return tokens_.TakeIf(";");
  }
  // Stands at the comma or semicolon behind it.
  bool SkipInitialiser() {
    while (!tokens_.AtEnd() && tokens_.now() != "," && tokens_.now() != ";") {
      if (tokens_.Take() == "{" && !tokens_.SkipBlock("{", "}")) return false;
    }
    return !tokens_.AtEnd();
  }

  Tokens tokens_;
  ModuleList list_;
};

}  // namespace

std::optional<ModuleList> ListPtx(std::string_view text) { return PtxLister(text).List(); }

}  // namespace spillway::simulator
