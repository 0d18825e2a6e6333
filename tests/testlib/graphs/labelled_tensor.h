#ifndef TENSORD_TESTS_TESTLIB_GRAPHS_LABELLED_TENSOR_H_
#define TENSORD_TESTS_TESTLIB_GRAPHS_LABELLED_TENSOR_H_

#include <cstdint>
#include <vector>

#include "engine/ir/graph.h"
#include "engine/tensor/shape.h"
#include "tests/testlib/graphs/static_graph_builder.h"

namespace tensord {

// Labels of axes, as numbers that index their sizes.
using Labels = std::vector<int64_t>;

// A tensor of a graph, one label an axis.
struct LabelledTensor {
  ValueId value;
  Labels labels;
};

bool Has(const Labels& labels, int64_t label);
Shape ShapeOf(const Labels& labels, const std::vector<int64_t>& sizes);
// Returns the positions of the labels among others, which have them all.
std::vector<int64_t> PositionsOf(const Labels& labels, const Labels& among);

// A dot_general; the result has a's free labels, b's, and those of the batch.
LabelledTensor Contract(StaticGraphBuilder* graph, const LabelledTensor& a, const LabelledTensor& b,
                        const Labels& summed, const Labels& batch);

// Transposed and repeated to have these labels, which are its own and others.
LabelledTensor Spread(StaticGraphBuilder* graph, const LabelledTensor& tensor, const Labels& labels,
                      const std::vector<int64_t>& sizes);

}  // namespace tensord

#endif  // TENSORD_TESTS_TESTLIB_GRAPHS_LABELLED_TENSOR_H_
