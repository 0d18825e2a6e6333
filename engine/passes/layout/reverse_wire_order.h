#ifndef TENSORD_ENGINE_PASSES_LAYOUT_REVERSE_WIRE_ORDER_H_
#define TENSORD_ENGINE_PASSES_LAYOUT_REVERSE_WIRE_ORDER_H_

#include "engine/ir/graph.h"

namespace tensord {

// Returns the graph of a row-major client. Row-major bytes of a shape are column-major bytes of the reversed shape, so
// every input takes the reversed shape and is transposed back, and every output is transposed before it leaves. Nothing
// is copied here: FoldTransposes folds the transposes into the ops that read and write. Not a pass of the pipeline,
// since the program's meaning depends on it.
Graph ReverseWireOrder(Graph graph);

}  // namespace tensord

#endif  // TENSORD_ENGINE_PASSES_LAYOUT_REVERSE_WIRE_ORDER_H_
