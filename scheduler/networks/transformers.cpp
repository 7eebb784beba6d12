#include "scheduler/networks/catalog.h"

namespace spillway::scheduler::networks {
namespace {

LayerId attention(LayerGraph& graph, LayerId x, const TransformerShape& shape, int64_t sequence) {
  const LayerId query = graph.linear(x, shape.width), key = graph.linear(x, shape.width);
  const LayerId value = graph.linear(x, shape.width);
  LayerId mixed;
  if (shape.flash) {
    mixed = graph.flash_attention(query, key, value, shape.heads);
  } else {
    const LayerId scores =
        graph.matmul(query, key, {shape.heads, sequence, sequence}, shape.width / shape.heads);
    mixed = graph.matmul(graph.dropout(graph.attention_softmax(scores)), value, {sequence, shape.width},
                         sequence);
  }
  return graph.dropout(graph.linear(mixed, shape.width));
}

LayerId feed_forward(LayerGraph& graph, LayerId x, const TransformerShape& shape) {
  return graph.dropout(graph.linear(graph.gelu(graph.linear(x, 4 * shape.width)), shape.width));
}

}  // namespace

LayerGraph transformer(const TransformerShape& shape, int64_t batch_size, int64_t sequence) {
  LayerGraph graph(shape.name + (shape.flash ? "_flash" : "") + "_b" + std::to_string(batch_size) + "_s" +
                       std::to_string(sequence),
                   batch_size, shape.element_bytes);
  LayerId x = graph.embed(graph.data({sequence}), shape.vocabulary, shape.width);
  x = graph.dropout(shape.norm_first ? x : graph.layer_norm(x));
  for (int i = 0; i < shape.layers; ++i) {
    if (shape.norm_first) {
      x = graph.add(attention(graph, graph.layer_norm(x), shape, sequence), x);
      x = graph.add(feed_forward(graph, graph.layer_norm(x), shape), x);
    } else {
      x = graph.layer_norm(graph.add(attention(graph, x, shape, sequence), x));
      x = graph.layer_norm(graph.add(feed_forward(graph, x, shape), x));
    }
  }
  if (shape.norm_first) x = graph.layer_norm(x);
  graph.loss(graph.linear(x, shape.vocabulary));
  return graph;
}

}  // namespace spillway::scheduler::networks
