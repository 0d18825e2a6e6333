#ifndef TENSORD_TESTS_TESTLIB_MICRO_MICRO_EVALUATOR_H_
#define TENSORD_TESTS_TESTLIB_MICRO_MICRO_EVALUATOR_H_

#include <functional>
#include <vector>

#include "engine/fusion/micro_program.h"
#include "engine/ops/core_ops.h"
#include "engine/tensor/literal.h"

namespace tensord {

// Computes one op on whole tensors. The operands have one shape.
using EvaluateOp =
    std::function<Literal(CoreOp op, const Attributes& attrs, std::vector<const Literal*> operands, ConcreteType type)>;

// Evaluates by the reference rules of the ops.
Literal EvaluateByReference(CoreOp op, const Attributes& attrs, std::vector<const Literal*> operands,
                            ConcreteType type);

// Evaluates a micro program: each instruction at all points of its level, one after the other. Results are flat.
std::vector<Literal> EvaluateMicroProgram(const MicroProgram& program, const std::vector<Literal>& tensors,
                                          const EvaluateOp& evaluate = EvaluateByReference);

}  // namespace tensord

#endif  // TENSORD_TESTS_TESTLIB_MICRO_MICRO_EVALUATOR_H_
