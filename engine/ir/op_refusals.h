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

// Returns the refusals of every op: sizes that do not fit, expressions that grow too large.
std::vector<OpRefusal> CommonRefusals();

// Returns the refusals that an op's declaration implies without a rule: operand counts, dtypes, and forbidden values of
// attributes of a kind.
std::vector<OpRefusal> DeclaredRefusals(const OpDef& op);

// Returns the declared ones and those of the op's own rule: with the common ones, all that can refuse a node of the op.
std::vector<OpRefusal> RefusalsOf(const OpDef& op);

}  // namespace tensord

#endif  // TENSORD_ENGINE_IR_OP_REFUSALS_H_
