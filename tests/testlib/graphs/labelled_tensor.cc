#include "tests/testlib/graphs/labelled_tensor.h"

#include <algorithm>

namespace tensord {

bool Has(const Labels& labels, int64_t label) { return std::find(labels.begin(), labels.end(), label) != labels.end(); }

Shape ShapeOf(const Labels& labels, const std::vector<int64_t>& sizes) {
  Shape shape;
  for (const int64_t label : labels) shape.push_back(sizes[static_cast<size_t>(label)]);
  return shape;
}

std::vector<int64_t> PositionsOf(const Labels& labels, const Labels& among) {
  std::vector<int64_t> positions;
  for (const int64_t label : labels) {
    positions.push_back(std::find(among.begin(), among.end(), label) - among.begin());
  }
  return positions;
}

LabelledTensor Contract(StaticGraphBuilder* graph, const LabelledTensor& a, const LabelledTensor& b,
                        const Labels& summed, const Labels& batch) {
  LabelledTensor y;
  for (const LabelledTensor* tensor : {&a, &b}) {
    for (const int64_t label : tensor->labels) {
      if (!Has(summed, label) && !Has(batch, label)) y.labels.push_back(label);
    }
  }
  y.labels.insert(y.labels.end(), batch.begin(), batch.end());
  y.value = graph->Dot(a.value, b.value, PositionsOf(summed, a.labels), PositionsOf(summed, b.labels),
                       PositionsOf(batch, a.labels), PositionsOf(batch, b.labels));
  return y;
}

LabelledTensor Spread(StaticGraphBuilder* graph, const LabelledTensor& tensor, const Labels& labels,
                      const std::vector<int64_t>& sizes) {
  Labels order;
  for (const int64_t label : labels) {
    if (Has(tensor.labels, label)) order.push_back(label);
  }
  const ValueId turned = graph->Transpose(tensor.value, PositionsOf(order, tensor.labels));
  return {graph->Broadcast(turned, ShapeOf(labels, sizes), PositionsOf(order, labels)), labels};
}

}  // namespace tensord
