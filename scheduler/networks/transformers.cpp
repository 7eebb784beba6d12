#include "scheduler/networks/catalog.h"

namespace spillway::scheduler::networks {
namespace {

LayerId Attention(LayerGraph& graph, LayerId x, const TransformerShape& shape, int64_t sequence) {
  const LayerId query = graph.Linear(x, shape.width), key = graph.Linear(x, shape.width);
  const LayerId value = graph.Linear(x, shape.width);
  LayerId mixed;
  if (shape.flash) {
    mixed = graph.FlashAttention(query, key, value, shape.heads);
  } else {
    const LayerId scores =
        graph.Matmul(query, key, {shape.heads, sequence, sequence}, shape.width / shape.heads);
    mixed = graph.Matmul(graph.Dropout(graph.AttentionSoftmax(scores)), value,
                         {sequence, shape.width}, sequence);
  }
  return graph.Dropout(graph.Linear(mixed, shape.width));
}

LayerId FeedForward(LayerGraph& graph, LayerId x, const TransformerShape& shape) {
  return graph.Dropout(graph.Linear(graph.Gelu(graph.Linear(x, 4 * shape.width)), shape.width));
}

}  // namespace

LayerGraph Transformer(const TransformerShape& shape, int64_t batch_size, int64_t sequence) {
  LayerGraph graph(shape.name + (shape.flash ? "_flash" : "") + "_b" + std::to_string(batch_size) +
                       "_s" + std::to_string(sequence),
                   batch_size, shape.element_bytes);
  LayerId x = graph.Embed(graph.Data({sequence}), shape.vocabulary, shape.width);
  x = graph.Dropout(shape.norm_first ? x : graph.LayerNorm(x));
  for (int i = 0; i < shape.layers; ++i) {
    if (shape.norm_first) {
      x = graph.Add(Attention(graph, graph.LayerNorm(x), shape, sequence), x);
      x = graph.Add(FeedForward(graph, graph.LayerNorm(x), shape), x);
    } else {
      x = graph.LayerNorm(graph.Add(Attention(graph, x, shape, sequence), x));
      x = graph.LayerNorm(graph.Add(FeedForward(graph, x, shape), x));
    }
  }
  if (shape.norm_first) x = graph.LayerNorm(x);
  graph.Loss(graph.Linear(x, shape.vocabulary));
  return graph;
}

}  // namespace spillway::scheduler::networks
