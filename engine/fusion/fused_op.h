#ifndef TENSORD_ENGINE_FUSION_FUSED_OP_H_
#define TENSORD_ENGINE_FUSION_FUSED_OP_H_

#include "engine/ir/op_def.h"

namespace tensord {

// Returns the op of a node that the pass `fuse` makes: its body, in one kernel. Of the family "engine": no client can
// send it.
//
// Attributes: `space`, the value of the body whose shape the kernel runs over; `reduced_axes`, the axes of that shape
// along which the body reduces.
const OpDef& FusedOp();
inline bool IsFused(const OpDef& op) { return &op == &FusedOp(); }

}  // namespace tensord

#endif  // TENSORD_ENGINE_FUSION_FUSED_OP_H_
