#ifndef TENSORD_ENGINE_IR_OP_REFUSALS_H_
#define TENSORD_ENGINE_IR_OP_REFUSALS_H_

#include <string>
#include <vector>

#include "engine/ir/op_def.h"

namespace tensord {

// A way in which decoding, InferTypes or binding the sizes of a run refuses a node.
struct OpRefusal {
  Refusal reason;
  std::string when;
};

// What holds for a node of every op: sizes that do not fit, expressions that grow too large.
std::vector<OpRefusal> CommonRefusals();

// What the declaration of an op says without a rule: operand counts, dtypes, and what attributes of a kind may not be.
std::vector<OpRefusal> DeclaredRefusals(const OpDef& op);

// The declared ones and those of the op's own rule: with the common ones, all that can refuse a node of the op.
std::vector<OpRefusal> RefusalsOf(const OpDef& op);

}  // namespace tensord

#endif  // TENSORD_ENGINE_IR_OP_REFUSALS_H_
