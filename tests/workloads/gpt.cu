// gpt: trains a pre-norm transformer with AdamW on synthetic sequences.
//
// Standard output: one line per step (loss with every bit) and the weights' checksum. It never
// depends on time, addresses or the amount of memory.
#include <cuda_runtime.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <string>
#include <vector>

#include "adamw.cuh"
#include "common/device.cuh"
#include "common/feeder.cuh"
#include "common/loss.cuh"
#include "common/step_timer.cuh"
#include "gpt_layers.cuh"

namespace workloads {

struct GptOptions {
  DeviceOptions device;
  GptShape shape = {4, 128, 512, 8};
  int layers = 5;
  int vocabulary = 1024;
  int steps = 3;
  std::string until;
  bool untied = false;
  float learning_rate = 3e-4f;
};

GptOptions parse_gpt_options(int argc, char** argv) {
  GptOptions options;
  Arguments arguments("Trains a transformer on synthetic sequences of tokens.");
  arguments.integer("layers", &options.layers, 1, 10000, "transformer blocks");
  arguments.integer("width", &options.shape.width, 1, 65536, "features per token");
  arguments.integer("heads", &options.shape.heads, 1, 1024,
                    "attention heads, a divisor of the width");
  arguments.integer("sequence", &options.shape.sequence, 1, 65536, "tokens per sequence");
  arguments.integer("batch", &options.shape.batch, 1, 65536, "sequences per step");
  arguments.integer("vocabulary", &options.vocabulary, 2, 1 << 20, "distinct tokens");
  arguments.integer("steps", &options.steps, 1, 1000000, "training steps");
  arguments.text(
      "until", &options.until,
      "a file: where it exists, the step that has begun is the last, however many there should be");
  arguments.flag("untied", &options.untied,
                 "give the output its own matrix instead of the embedding's");
  arguments.rate("rate", &options.learning_rate, "learning rate");
  options.device.declare(&arguments);
  arguments.parse(argc, argv);
  if (options.shape.width % options.shape.heads != 0) {
    fail(2, "--width=%d is no multiple of --heads=%d", options.shape.width, options.shape.heads);
  }
  return options;
}

// A batch on the device, all 32-bit integers: tokens and targets by row. For each vocabulary entry
// also the rows where it is a token (starts[entry] .. starts[entry + 1] in rows), so that its
// gradient is summed in a fixed order.
struct TokenBatch {
  std::int32_t *tokens, *targets, *starts, *rows;

  TokenBatch(unsigned char* bytes, int row_count, int vocabulary)
      : tokens(reinterpret_cast<std::int32_t*>(bytes)),
        targets(tokens + row_count),
        starts(targets + row_count),
        rows(starts + vocabulary + 1) {}

  static std::size_t size_bytes(int row_count, int vocabulary) {
    return (3 * static_cast<std::size_t>(row_count) + static_cast<std::size_t>(vocabulary) + 1) *
           sizeof(std::int32_t);
  }
};

// Sequences that can be learned: nine tokens in ten are common ones, a sixteenth of the vocabulary,
// and follow from the previous token by a fixed rule.
class SyntheticTokens {
 public:
  SyntheticTokens(std::uint64_t seed, const GptOptions& options) : seed_(seed), options_(options) {}

  void draw(int step, TokenBatch batch) const {
    const GptShape& shape = options_.shape;
    for (int b = 0; b < shape.batch; ++b) {
      const std::uint64_t sequence = static_cast<std::uint64_t>(step) * shape.batch + b;
      std::int32_t token = any_token(sequence, 0);
      for (int t = 0; t < shape.sequence; ++t) {
        batch.tokens[b * shape.sequence + t] = token;
        token = next(token, sequence, t + 1);
        batch.targets[b * shape.sequence + t] = token;
      }
    }
    index_rows(batch);
  }

 private:
  std::int32_t any_token(std::uint64_t sequence, int position) const {
    return static_cast<std::int32_t>(random_bits(seed_, kTokens + sequence, position) %
                                     options_.vocabulary);
  }

  std::int32_t next(std::int32_t token, std::uint64_t sequence, int position) const {
    if (random_bits(seed_, kSurprises + sequence, position) % 10 == 0)
      return any_token(sequence, position);
    const std::int64_t common = std::max(2, options_.vocabulary / 16);
    return static_cast<std::int32_t>((static_cast<std::int64_t>(token) * 5 + 7) % common);
  }

  void index_rows(TokenBatch batch) const {
    const int rows = options_.shape.tokens();
    std::vector<std::int32_t> next(static_cast<std::size_t>(options_.vocabulary) + 1, 0);
    for (int row = 0; row < rows; ++row) ++next[batch.tokens[row] + 1];
    for (int entry = 0; entry < options_.vocabulary; ++entry) next[entry + 1] += next[entry];
    std::copy(next.begin(), next.end(), batch.starts);
    for (int row = 0; row < rows; ++row) batch.rows[next[batch.tokens[row]]++] = row;
  }

  static constexpr std::uint64_t kTokens = std::uint64_t{1} << 36,
                                 kSurprises = std::uint64_t{1} << 37;

  const std::uint64_t seed_;
  const GptOptions options_;
};

class GptTrainer {
 public:
  explicit GptTrainer(const GptOptions& options)
      : options_(options),
        data_(options.device.seed, options),
        device_(options.device),
        factory_(&device_),
        token_table_(factory_.uniform({options.vocabulary, options.shape.width},
                                      options.shape.width, kTableGain)),
        position_table_(factory_.uniform({options.shape.sequence, options.shape.width},
                                         options.shape.width, kTableGain)),
        parameters_(build()),
        optimiser_(&device_, parameters_, options.learning_rate),
        meter_(&device_),
        timer_(&device_),
        feeder_(&device_, TokenBatch::size_bytes(options.shape.tokens(), options.vocabulary)) {}

  void train() {
    stage(0);
    for (int step = 0; !is_last_; ++step) train_step(step);
    std::printf("checksum %016" PRIx64 "\n", weights_checksum(parameters_, device_));
    device_.report_peak();
  }

 private:
  Parameters build() {
    for (int layer = 0; layer < options_.layers; ++layer)
      blocks_.add<Block>(&device_, &factory_, options_.shape);
    blocks_.add<LayerNorm>(&device_, &factory_, options_.shape.width);
    Parameters parameters = {&token_table_, &position_table_};
    blocks_.collect(&parameters);
    if (options_.untied) {
      output_table_ = factory_.uniform(token_table_.value.shape, options_.shape.width, kTableGain);
      parameters.push_back(&output_table_);
    }
    return parameters;
  }

  Parameter* output_table() { return options_.untied ? &output_table_ : &token_table_; }

  void stage(int step) {
    feeder_.stage([&](unsigned char* bytes) { data_.draw(step, batch_at(bytes)); });
  }

  TokenBatch batch_at(const unsigned char* bytes) const {
    return TokenBatch(const_cast<unsigned char*>(bytes), options_.shape.tokens(),
                      options_.vocabulary);
  }

  void train_step(int step) {
    const TokenBatch batch = batch_at(feeder_.acquire());
    is_last_ = step + 1 == options_.steps || exists(options_.until);
    if (!is_last_) stage(step + 1);
    Tensor features = blocks_.forward(embedded(batch), Mode::kTrain);
    embedding_gradients(batch, blocks_.backward(head(std::move(features), batch)));
    feeder_.release();
    optimiser_.update();
    device_.memory()->end_step();
    timer_.enqueued();
    meter_.print(step + 1);
    timer_.tell();
  }

  Tensor embedded(const TokenBatch& batch) {
    Tensor x = transient_tensor(device_.memory(), {options_.shape.tokens(), options_.shape.width});
    embed<<<blocks_for(x.elements()), kThreads, 0, device_.compute_stream()>>>(
        batch.tokens, token_table_.value.data(), position_table_.value.data(),
        options_.shape.sequence, options_.shape.width, x.elements(), x.data());
    CHECK_LAUNCH("embed");
    return x;
  }

  // Computes the loss and the gradient of the features, through the logits and the output table's
  // gradient.
  Tensor head(Tensor features, const TokenBatch& batch) {
    const int rows = options_.shape.tokens(), width = options_.shape.width,
              vocabulary = options_.vocabulary;
    const Tensor d_logits = logit_gradients(features, batch);
    Parameter* table = output_table();
    table->gradient = transient_tensor(device_.memory(), table->value.shape);
    gemm(device_, {vocabulary, width, rows}, Form::kTransposed, d_logits.data(), Form::kPlain,
         features.data(), 0.0f, table->gradient.data());
    const Shape feature_shape = features.shape;
    features.reset();
    Tensor d_features = transient_tensor(device_.memory(), feature_shape);
    gemm(device_, {rows, width, vocabulary}, Form::kPlain, d_logits.data(), Form::kPlain,
         table->value.data(), 0.0f, d_features.data());
    return d_features;
  }

  Tensor logit_gradients(const Tensor& features, const TokenBatch& batch) {
    const int rows = options_.shape.tokens();
    const Tensor logits = transient_tensor(device_.memory(), {rows, options_.vocabulary});
    gemm(device_, {rows, options_.vocabulary, options_.shape.width}, Form::kPlain, features.data(),
         Form::kTransposed, output_table()->value.data(), 0.0f, logits.data());
    const Tensor row_losses = transient_tensor(device_.memory(), {rows});
    Tensor d_logits = transient_tensor(device_.memory(), logits.shape);
    cross_entropy<<<blocks_for_rows(rows), kWarpsPerBlock * 32, 0, device_.compute_stream()>>>(
        logits.data(), batch.targets, rows, options_.vocabulary, row_losses.data(),
        d_logits.data());
    CHECK_LAUNCH("cross_entropy");
    meter_.record(row_losses.data(), rows);
    return d_logits;
  }

  void embedding_gradients(const TokenBatch& batch, const Tensor& dx) {
    const int width = options_.shape.width;
    if (options_.untied) {
      token_table_.gradient = transient_tensor(device_.memory(), token_table_.value.shape);
      token_table_gradient<false><<<options_.vocabulary, kThreads, 0, device_.compute_stream()>>>(
          dx.data(), batch.starts, batch.rows, width, token_table_.gradient.data());
    } else {
      token_table_gradient<true><<<options_.vocabulary, kThreads, 0, device_.compute_stream()>>>(
          dx.data(), batch.starts, batch.rows, width, token_table_.gradient.data());
    }
    CHECK_LAUNCH("token_table_gradient");
    const std::size_t table_elements = position_table_.value.elements();
    position_table_.gradient = transient_tensor(device_.memory(), position_table_.value.shape);
    position_table_gradient<<<blocks_for(table_elements), kThreads, 0, device_.compute_stream()>>>(
        dx.data(), options_.shape.batch, table_elements, position_table_.gradient.data());
    CHECK_LAUNCH("position_table_gradient");
  }

  static constexpr float kTableGain =
      0.2f;  // small tables: the first logits are near zero, as in GPT-2

  const GptOptions options_;
  bool is_last_ = false;  // true in the current step
  const SyntheticTokens data_;
  Device device_;
  ParameterFactory factory_;
  Parameter token_table_, position_table_, output_table_;
  Chain blocks_;
  const Parameters parameters_;
  AdamW optimiser_;
  LossMeter meter_;
  StepTimer timer_;
  BatchFeeder feeder_;
};

}  // namespace workloads

int main(int argc, char** argv) {
  workloads::GptTrainer trainer(workloads::parse_gpt_options(argc, argv));
  trainer.train();
  return 0;
}
