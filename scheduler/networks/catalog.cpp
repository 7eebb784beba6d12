#include "scheduler/networks/catalog.h"

#include <charconv>

namespace spillway::scheduler::networks {
namespace {

struct TransformerEntry {
  const char* name;
  TransformerShape shape;
  int64_t batch_size;
  int64_t sequence;
};

TransformerShape Bert(const char* name, int64_t width, int64_t heads, int layers) {
  return {.name = name,
          .width = width,
          .heads = heads,
          .layers = layers,
          .vocabulary = 30522,
          .norm_first = false};
}

TransformerShape Gpt2(const char* name, int64_t width, int64_t heads, int layers) {
  return {.name = name,
          .width = width,
          .heads = heads,
          .layers = layers,
          .vocabulary = 50257,
          .norm_first = true};
}

std::vector<TransformerEntry> Transformers() {
  TransformerShape flash = Gpt2("gpt2_small", 768, 12, 12);
  flash.flash = true;
  flash.element_bytes = 2;
  return {{"bert_base", Bert("bert_base", 768, 12, 12), 32, 128},
          {"bert_base_s384", Bert("bert_base", 768, 12, 12), 16, 384},
          {"bert_large", Bert("bert_large", 1024, 16, 24), 8, 384},
          {"gpt2_small", Gpt2("gpt2_small", 768, 12, 12), 8, 1024},
          {"gpt2_small_flash", flash, 8, 1024},
          {"gpt2_medium", Gpt2("gpt2_medium", 1024, 16, 24), 4, 1024}};
}

// A family's name is a prefix, a number and a suffix: "resnet50_cifar".
std::optional<int> NumberBetween(std::string_view name, std::string_view prefix,
                                 std::string_view suffix) {
  if (!name.starts_with(prefix) || !name.ends_with(suffix) ||
      name.size() <= prefix.size() + suffix.size())
    return {};
  const std::string_view digits =
      name.substr(prefix.size(), name.size() - prefix.size() - suffix.size());
  int number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size()) return {};
  return number;
}

constexpr int kDeepestResNet = 100'000;

std::optional<LayerGraph> MakeResnet(int depth, int64_t batch_size, ResNetVariant variant) {
  if (depth > kDeepestResNet) return std::nullopt;
  const std::optional<ResNetShape> shape = ResnetShape(depth);
  if (!shape) return std::nullopt;
  return Resnet(*shape, batch_size, variant);
}

std::optional<LayerGraph> MakeVgg(int depth, int64_t batch_size, ImageSet images) {
  if (depth != 11 && depth != 13 && depth != 16 && depth != 19) return std::nullopt;
  return Vgg(depth, batch_size, images);
}

}  // namespace

std::optional<LayerGraph> MakeNetwork(std::string_view name, int64_t batch_size) {
  const auto batch = [&](int64_t usual) { return batch_size > 0 ? batch_size : usual; };
  if (name == "alexnet") return Alexnet(batch(200));
  if (name == "inceptionv3") return InceptionV3(batch(32));
  if (name == "inceptionv4") return InceptionV4(batch(32));
  for (const TransformerEntry& entry : Transformers()) {
    if (name == entry.name)
      return Transformer(entry.shape, batch(entry.batch_size), entry.sequence);
  }
  if (const auto depth = NumberBetween(name, "vgg", "_cifar"))
    return MakeVgg(*depth, batch(100), ImageSet::kCifar10);
  if (const auto depth = NumberBetween(name, "vgg", ""))
    return MakeVgg(*depth, batch(64), ImageSet::kImageNet);
  if (const auto depth = NumberBetween(name, "resnet", "_cifar"))
    return MakeResnet(*depth, batch(100), ResNetVariant::kCifar10);
  if (const auto depth = NumberBetween(name, "resnet", "_sn"))
    return MakeResnet(*depth, batch(32), ResNetVariant::kSuperNeurons);
  if (const auto depth = NumberBetween(name, "resnet", ""))
    return MakeResnet(*depth, batch(32), ResNetVariant::kStandard);
  if (const auto depth = NumberBetween(name, "densenet", "")) return Densenet(*depth, batch(32));
  return std::nullopt;
}

std::vector<std::string> NetworkNames() {
  std::vector<std::string> names = {"alexnet"};
  for (const char* depth : {"11", "13", "16", "19"}) {
    names.push_back(std::string("vgg") + depth);
    names.push_back(std::string("vgg") + depth + "_cifar");
  }
  for (const char* depth : {"18", "34", "50", "101", "152"})
    names.push_back(std::string("resnet") + depth);
  for (const char* depth : {"18", "34", "50", "101"})
    names.push_back(std::string("resnet") + depth + "_cifar");
  for (const char* depth : {"50", "101"}) names.push_back(std::string("resnet") + depth + "_sn");
  for (const char* name :
       {"inceptionv3", "inceptionv4", "densenet121", "densenet161", "densenet169", "densenet201"})
    names.push_back(name);
  for (const TransformerEntry& entry : Transformers()) names.push_back(entry.name);
  return names;
}

}  // namespace spillway::scheduler::networks
