#include "interposer/entry/pytorch_names.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string_view>

namespace spillway::entry {
namespace {

constexpr std::string_view kNative = "_ZN2at6native";
constexpr std::string_view kReduce = "_ZN2at6native13reduce_kernelI";
constexpr std::string_view kConcatenate = "CatArrayBatchedCopy";  // and its variants
constexpr std::string_view kElementwise = "_ZN2at6native18elementwise_kernelILi128ELi";

// The closure of a function template, whose argument is the function for each element.
constexpr std::string_view kCallers[] = {"EZNS0_22gpu_kernel_impl_nocastI",
                                         "EZNS0_15gpu_kernel_implI"};
constexpr std::string_view kClosure = "EUliE_EEvi";

// Classes of PyTorch's own, all in at::native.
struct Functor {
  std::string_view begins;
  std::uint8_t inputs;
};
constexpr Functor kFunctors[] = {
    {"NS0_13BinaryFunctorI", 2},         {"NS0_13AUnaryFunctorI", 1},
    {"NS0_13BUnaryFunctorI", 1},         {"NS0_15CUDAFunctor_addI", 2},
    {"NS0_21CUDAFunctorOnSelf_addI", 1}, {"NS0_22CUDAFunctorOnOther_addI", 1},
    {"NS0_11FillFunctorI", 0},
};

bool Skip(std::string_view* text, std::string_view what) {
  if (!text->starts_with(what)) return false;
  text->remove_prefix(what.size());
  return true;
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

std::size_t SkipNumber(std::string_view* text) {
  std::size_t number = 0;
  for (; !text->empty() && IsDigit(text->front()); text->remove_prefix(1))
    number = 10 * number + static_cast<std::size_t>(text->front() - '0');
  return number;
}

// A number and so many characters.
bool SkipIdentifier(std::string_view* text) {
  const std::size_t length = SkipNumber(text);
  if (length == 0 || length > text->size()) return false;
  text->remove_prefix(length);
  return true;
}

// Something named before: S, digits and capitals, _.
bool SkipSubstitution(std::string_view* text) {
  const std::size_t end = text->find('_');
  if (!text->starts_with('S') || end == std::string_view::npos) return false;
  const std::string_view number = text->substr(1, end - 1);
  text->remove_prefix(end + 1);
  return std::all_of(number.begin(), number.end(),
                     [](char c) { return IsDigit(c) || (c >= 'A' && c <= 'Z'); });
}

// A number, or a class by its namespaces, with such types as arguments.
bool SkipType(std::string_view* text) {
  constexpr std::string_view kNumbers = "abcdfhijlmstxy";
  if (!text->empty() && kNumbers.find(text->front()) != std::string_view::npos)
    return Skip(text, text->substr(0, 1));
  if (!Skip(text, "N")) return SkipSubstitution(text);
  while (!Skip(text, "E")) {
    if (Skip(text, "I")) {
      while (!Skip(text, "E")) {
        if (!SkipType(text)) return false;
      }
    } else if (!(text->starts_with('S') ? SkipSubstitution(text) : SkipIdentifier(text))) {
      return false;
    }
  }
  return true;
}

// Of a closure's name, which ends with its parameters: Ul, types, E, perhaps a number, _.
std::optional<std::uint8_t> ParametersOfClosure(std::string_view name) {
  const std::size_t begin = name.rfind("Ul");
  if (begin == std::string_view::npos) return std::nullopt;
  std::string_view text = name.substr(begin + 2);
  std::uint8_t count = 0;
  if (!Skip(&text, "v")) {
    for (; !text.starts_with('E'); ++count) {
      if (count == UINT8_MAX - 1 || !SkipType(&text)) return std::nullopt;
    }
  }
  if (!Skip(&text, "E")) return std::nullopt;
  SkipNumber(&text);
  if (text != "_") return std::nullopt;
  return count;
}

std::optional<std::uint8_t> InputsOf(std::string_view function) {
  if (function.starts_with('Z')) return ParametersOfClosure(function);
  for (const Functor& functor : kFunctors) {
    if (function.starts_with(functor.begins)) return functor.inputs;
  }
  return std::nullopt;
}

// The text behind kElementwise: a number, the caller with the function, the closure's own name.
KnownStruct ElementwiseOf(std::string_view text) {
  SkipNumber(&text);
  const bool is_known =
      std::any_of(std::begin(kCallers), std::end(kCallers),
                  [&text](std::string_view caller) { return Skip(&text, caller); });
  const std::size_t closure = text.rfind(kClosure);
  if (!is_known || closure == std::string_view::npos) return {};
  // The caller's arguments and name end, and it returns void.
  const std::size_t end = text.substr(0, closure).rfind("EEv");
  if (end == std::string_view::npos) return {};
  const auto inputs = InputsOf(text.substr(0, end));
  if (!inputs) return {};
  return {ByValue::kElementwise, static_cast<std::uint8_t>(*inputs + 1)};
}

}  // namespace

KnownStruct StructOf(const char* kernel) {
  const std::string_view name = kernel;
  if (name.starts_with(kReduce)) return {ByValue::kReduction};
  if (name.starts_with(kElementwise)) return ElementwiseOf(name.substr(kElementwise.size()));
  const bool concatenates =
      name.starts_with(kNative) && name.find(kConcatenate) != std::string_view::npos;
  return {concatenates ? ByValue::kConcatenation : ByValue::kNone};
}

}  // namespace spillway::entry
