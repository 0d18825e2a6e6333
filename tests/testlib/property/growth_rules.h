#ifndef TENSORD_TESTS_TESTLIB_PROPERTY_GROWTH_RULES_H_
#define TENSORD_TESTS_TESTLIB_PROPERTY_GROWTH_RULES_H_

#include "engine/ops/core_ops.h"
#include "tests/testlib/property/growing_graph.h"

namespace tensord::property {

// Appends one node of `op` whose first computed operand (its result, if it takes none) has that dtype, and the nodes
// that make its operands. It may find that nothing fits, and append none.
using GrowthRule = void (*)(GrowingGraph& graph, CoreOp op, DType dtype);

// The rule of an op; nullptr if there is none, which AllOpsGrow in tests/e2e/property finds out.
GrowthRule FindGrowthRule(CoreOp op);

// Rules by file.
void GrowUnary(GrowingGraph& graph, CoreOp op, DType dtype);
void GrowBinary(GrowingGraph& graph, CoreOp op, DType dtype);
void GrowCompare(GrowingGraph& graph, CoreOp op, DType dtype);
void GrowSelect(GrowingGraph& graph, CoreOp op, DType dtype);
void GrowClamp(GrowingGraph& graph, CoreOp op, DType dtype);
void GrowConvert(GrowingGraph& graph, CoreOp op, DType dtype);

void GrowConstant(GrowingGraph& graph, CoreOp op, DType dtype);
void GrowIota(GrowingGraph& graph, CoreOp op, DType dtype);
void GrowTranspose(GrowingGraph& graph, CoreOp op, DType dtype);
void GrowReshape(GrowingGraph& graph, CoreOp op, DType dtype);
void GrowBroadcastInDim(GrowingGraph& graph, CoreOp op, DType dtype);

void GrowReduce(GrowingGraph& graph, CoreOp op, DType dtype);
void GrowDotGeneral(GrowingGraph& graph, CoreOp op, DType dtype);

void GrowSlice(GrowingGraph& graph, CoreOp op, DType dtype);
void GrowPad(GrowingGraph& graph, CoreOp op, DType dtype);
void GrowConcatenate(GrowingGraph& graph, CoreOp op, DType dtype);
void GrowReverse(GrowingGraph& graph, CoreOp op, DType dtype);

void GrowExtractDiag(GrowingGraph& graph, CoreOp op, DType dtype);
void GrowEmbedDiag(GrowingGraph& graph, CoreOp op, DType dtype);
void GrowTriangle(GrowingGraph& graph, CoreOp op, DType dtype);

void GrowGather(GrowingGraph& graph, CoreOp op, DType dtype);
void GrowGatherDynamicSliceSizes(GrowingGraph& graph, CoreOp op, DType dtype);
void GrowScatter(GrowingGraph& graph, CoreOp op, DType dtype);

void GrowDynamicSlice(GrowingGraph& graph, CoreOp op, DType dtype);
void GrowDynamicUpdateSlice(GrowingGraph& graph, CoreOp op, DType dtype);
void GrowDynamicTruncate(GrowingGraph& graph, CoreOp op, DType dtype);
void GrowShapeOf(GrowingGraph& graph, CoreOp op, DType dtype);
void GrowOptimizationBarrier(GrowingGraph& graph, CoreOp op, DType dtype);
void GrowPadToMatch(GrowingGraph& graph, CoreOp op, DType dtype);

}  // namespace tensord::property

#endif  // TENSORD_TESTS_TESTLIB_PROPERTY_GROWTH_RULES_H_
