#ifndef TENSORD_BACKENDS_CPU_JOINS_SPLIT_REDUCTION_H_
#define TENSORD_BACKENDS_CPU_JOINS_SPLIT_REDUCTION_H_

#include <optional>
#include <vector>

#include "engine/fusion/micro_program.h"

namespace tensord::cpu {

// A fused reduction as two programs: one that reduces, and one that computes the results from its output.
struct SplitReduction {
  MicroProgram reductions;        // its results are reductions, of the operands of the whole
  std::vector<ReduceKind> kinds;  // by result of these
  // The program over the kept axes; its operands are those of the whole and then the reductions. Nothing if the results
  // of the whole are the reductions.
  std::optional<MicroProgram> rest;
};

// Returns nothing if there is more than one stage of reductions, or a result has elements along the reduced axes.
std::optional<SplitReduction> Split(const MicroProgram& whole);

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_JOINS_SPLIT_REDUCTION_H_
