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

TransformerShape bert(const char* name, int64_t width, int64_t heads, int layers) {
  return {.name = name,
          .width = width,
          .heads = heads,
          .layers = layers,
          .vocabulary = 30522,
          .norm_first = false};
}

TransformerShape gpt2(const char* name, int64_t width, int64_t heads, int layers) {
  return {.name = name,
          .width = width,
          .heads = heads,
          .layers = layers,
          .vocabulary = 50257,
          .norm_first = true};
}

std::vector<TransformerEntry> transformers() {
  TransformerShape flash = gpt2("gpt2_small", 768, 12, 12);
  flash.flash = true;
  flash.element_bytes = 2;
  return {{"bert_base", bert("bert_base", 768, 12, 12), 32, 128},
          {"bert_base_s384", bert("bert_base", 768, 12, 12), 16, 384},
          {"bert_large", bert("bert_large", 1024, 16, 24), 8, 384},
          {"gpt2_small", gpt2("gpt2_small", 768, 12, 12), 8, 1024},
          {"gpt2_small_flash", flash, 8, 1024},
          {"gpt2_medium", gpt2("gpt2_medium", 1024, 16, 24), 4, 1024}};
}

// A family's name is a prefix, a number and a suffix: "resnet50_cifar".
std::optional<int> number_between(std::string_view name, std::string_view prefix, std::string_view suffix) {
  if (!name.starts_with(prefix) || !name.ends_with(suffix) || name.size() <= prefix.size() + suffix.size())
    return {};
  const std::string_view digits = name.substr(prefix.size(), name.size() - prefix.size() - suffix.size());
  int number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size()) return {};
  return number;
}

constexpr int kDeepestResNet = 100'000;

std::optional<LayerGraph> make_resnet(int depth, int64_t batch_size, ResNetVariant variant) {
  if (depth > kDeepestResNet) return std::nullopt;
  const std::optional<ResNetShape> shape = resnet_shape(depth);
  if (!shape) return std::nullopt;
  return resnet(*shape, batch_size, variant);
}

std::optional<LayerGraph> make_vgg(int depth, int64_t batch_size, ImageSet images) {
  if (depth != 11 && depth != 13 && depth != 16 && depth != 19) return std::nullopt;
  return vgg(depth, batch_size, images);
}

}  // namespace

std::optional<LayerGraph> make_network(std::string_view name, int64_t batch_size) {
  const auto batch = [&](int64_t usual) { return batch_size > 0 ? batch_size : usual; };
  if (name == "alexnet") return alexnet(batch(200));
  if (name == "inceptionv3") return inception_v3(batch(32));
  if (name == "inceptionv4") return inception_v4(batch(32));
  for (const TransformerEntry& entry : transformers()) {
    if (name == entry.name) return transformer(entry.shape, batch(entry.batch_size), entry.sequence);
  }
  if (const auto depth = number_between(name, "vgg", "_cifar"))
    return make_vgg(*depth, batch(100), ImageSet::kCifar10);
  if (const auto depth = number_between(name, "vgg", ""))
    return make_vgg(*depth, batch(64), ImageSet::kImageNet);
  if (const auto depth = number_between(name, "resnet", "_cifar"))
    return make_resnet(*depth, batch(100), ResNetVariant::kCifar10);
  if (const auto depth = number_between(name, "resnet", "_sn"))
    return make_resnet(*depth, batch(32), ResNetVariant::kSuperNeurons);
  if (const auto depth = number_between(name, "resnet", ""))
    return make_resnet(*depth, batch(32), ResNetVariant::kStandard);
  if (const auto depth = number_between(name, "densenet", "")) return densenet(*depth, batch(32));
  return std::nullopt;
}

std::vector<std::string> network_names() {
  std::vector<std::string> names = {"alexnet"};
  for (const char* depth : {"11", "13", "16", "19"}) {
    names.push_back(std::string("vgg") + depth);
    names.push_back(std::string("vgg") + depth + "_cifar");
  }
  for (const char* depth : {"18", "34", "50", "101", "152"}) names.push_back(std::string("resnet") + depth);
  for (const char* depth : {"18", "34", "50", "101"})
    names.push_back(std::string("resnet") + depth + "_cifar");
  for (const char* depth : {"50", "101"}) names.push_back(std::string("resnet") + depth + "_sn");
  for (const char* name :
       {"inceptionv3", "inceptionv4", "densenet121", "densenet161", "densenet169", "densenet201"})
    names.push_back(name);
  for (const TransformerEntry& entry : transformers()) names.push_back(entry.name);
  return names;
}

}  // namespace spillway::scheduler::networks
