#ifndef TENSORD_TESTS_TESTLIB_MICRO_RANDOM_MICRO_PROGRAM_H_
#define TENSORD_TESTS_TESTLIB_MICRO_RANDOM_MICRO_PROGRAM_H_

#include <functional>
#include <random>
#include <vector>

#include "engine/fusion/micro_program.h"

namespace tensord {

struct RandomMicroOptions {
  bool reduces = false;
  int64_t max_points = 4096;
  int instructions = 12;                              // besides leaves and what makes reductions exact
  std::function<bool(CoreOp op, DType dtype)> takes;  // whether an elementwise op is to be used on operands of a dtype
};

// A micro program of every kind of instruction: any dtypes, levels, strides (dense, permuted, repeated, with gaps,
// backwards), several stages, several results, sizes down to 0. Sums and products of floats are of whole numbers, so
// that their order does not show.
struct RandomMicro {
  MicroProgram program;
  std::vector<int64_t> tensor_elements;  // that each operand needs
};

RandomMicro MakeRandomMicroProgram(const RandomMicroOptions& options, std::mt19937_64* random);

}  // namespace tensord

#endif  // TENSORD_TESTS_TESTLIB_MICRO_RANDOM_MICRO_PROGRAM_H_
