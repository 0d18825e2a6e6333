#ifndef TENSORD_TESTS_TESTLIB_MICRO_MICRO_PROGRAMS_H_
#define TENSORD_TESTS_TESTLIB_MICRO_MICRO_PROGRAMS_H_

#include <string>
#include <vector>

#include "engine/fusion/micro_program.h"

namespace tensord {

// A micro program with a name that says what it is for.
struct NamedMicroProgram {
  std::string name;
  MicroProgram program;
};

// Programs over the given axes that between them use every instruction with every dtype that it takes: unary and binary
// ops, comparisons, select, clamp, conversions between all dtypes, iotas, constants.
std::vector<NamedMicroProgram> ElementwisePrograms(const std::vector<MicroAxis>& axes);

// Loads and iotas of every form: dense, broadcast, transposed, sliced, reversed, repeated, with distances between.
std::vector<NamedMicroProgram> AccessPrograms();

// Programs with reduced axes: every kind of reduction of every dtype over rows, panels and mixed axes, short and long,
// empty ones among them; softmax, LayerNorm, variance; several results of all levels and several dtypes.
std::vector<NamedMicroProgram> ReducePrograms();

// How many elements each operand has to have.
std::vector<int64_t> OperandElements(const MicroProgram& program);

}  // namespace tensord

#endif  // TENSORD_TESTS_TESTLIB_MICRO_MICRO_PROGRAMS_H_
