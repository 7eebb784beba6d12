#include "cli/options/option_manual.h"

#include <cctype>

namespace spillway::cli {
namespace {

constexpr std::string_view kCapitals = "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";

std::string LowerCase(std::string_view text) {
  std::string lower(text);
  for (char& letter : lower) letter = static_cast<char>(std::tolower(letter));
  return lower;
}

std::string ItemHead(const Option& option) {
  std::string head = ".It ";
  if (option.letter != 0) head += std::string("Fl ") + option.letter + " , ";
  head += "Fl Fl " + std::string(option.name);
  const std::string value = LowerCase(option.value.name);
  if (option.value.need == Need::kAlways) head += " Ar " + value;
  if (option.value.need == Need::kMaybe) head += " Ns Op = Ns Ar " + value;
  return head + '\n';
}

// A literal between backquotes is one word.
std::vector<std::string> SplitIntoWords(const std::string& text) {
  std::vector<std::string> words(1);
  bool is_literal = false;
  for (char letter : text) {
    if (letter == '`') is_literal = !is_literal;
    if (letter == ' ' && !is_literal)
      words.emplace_back();
    else
      words.back() += letter;
  }
  return words;
}

bool IsCapitals(std::string_view word) {
  return word.find_first_not_of(kCapitals) == std::string_view::npos;
}

std::string OptionMacro(const std::string& word) {
  const size_t equals = word.find('=');
  const std::string macro = "Fl Fl " + word.substr(2, equals - 2);
  return equals == std::string::npos ? macro : macro + " Ns = Ns Cm " + word.substr(equals + 1);
}

// Empty for a word of the text.
std::string MacroFor(const std::string& word) {
  if (word.starts_with("--")) return OptionMacro(word);
  if (word.starts_with("$") && IsCapitals(word.substr(1))) return "Ev " + word.substr(1);
  if (IsCapitals(word) && word.find('_') != std::string::npos) return "Ev " + word;
  if (word.starts_with("/") || word.starts_with("~/") || word.starts_with("$")) return "Pa " + word;
  if (word.starts_with("`")) return "Ql " + word.substr(1, word.size() - 2);
  return "";
}

// mdoc wants a word's punctuation as arguments of its own.
std::string MacroLine(const std::string& word) {
  const size_t begin = word.starts_with('(') ? 1 : 0;
  const size_t end = word.find_last_not_of(".,;:)") + 1;
  const std::string macro = end > begin ? MacroFor(word.substr(begin, end - begin)) : "";
  if (macro.empty()) return "";
  std::string line = begin == 0 ? "." + macro : ".No \\&( Ns " + macro;
  for (size_t at = end; at < word.size(); ++at) line += std::string(" ") + word[at];
  return line;
}

std::string Sentence(const std::string& description) {
  std::string sentence = description + '.';
  sentence[0] = static_cast<char>(std::toupper(sentence[0]));
  return sentence;
}

std::string Mdoc(const std::string& text) {
  std::string mdoc;
  bool begins_line = true;
  for (const std::string& word : SplitIntoWords(text)) {
    const std::string macro = MacroLine(word);
    if (macro.empty()) {
      const bool looks_like_macro = begins_line && (word[0] == '.' || word[0] == '\'');
      mdoc += (begins_line ? "" : " ") + std::string(looks_like_macro ? "\\&" : "") + word;
      begins_line = word.ends_with('.');
      if (begins_line) mdoc += '\n';
    } else {
      mdoc += (begins_line ? "" : "\n") + macro + '\n';
      begins_line = true;
    }
  }
  return begins_line ? mdoc : mdoc + '\n';
}

}  // namespace

std::string OptionsManual(const std::vector<Option>& options) {
  std::string list = ".Bl -tag -width Ds\n";
  for (const Option& option : options)
    list += ItemHead(option) + Mdoc(Sentence(DescriptionOf(option)));
  return list + ".El\n";
}

}  // namespace spillway::cli
