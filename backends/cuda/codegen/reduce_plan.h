#ifndef TENSORD_BACKENDS_CUDA_CODEGEN_REDUCE_PLAN_H_
#define TENSORD_BACKENDS_CUDA_CODEGEN_REDUCE_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "backends/cuda/codegen/printer.h"
#include "engine/fusion/micro_program.h"

namespace tensord {

// One walk over the reduced axes: the values that depend on reductions up to stage `number`, and the reductions of the
// stage after.
struct CudaPass {
  int32_t number = 0;
  std::vector<int32_t> values;      // computed in each point, in order: those of level kFull
  std::vector<int32_t> carried;     // computed in each point of an earlier pass, and kept until this one
  std::vector<int32_t> reductions;  // what the points' values are joined to
  std::vector<size_t> results;      // stored in each point
};

// The place in which a thread keeps the values of one pass for the next.
enum class CudaCarry : uint8_t { kNone, kRegisters, kShared };

// The spread of a program with reduced axes over threads. `lanes` threads share a kept index: each takes every lanes-th
// reduced index of the block's part. A block has `group` kept indices. With a width above 1 each of these is so many
// neighbours along axis 0, in memory as well, which the thread takes one after the other: reduced ones in rows, else
// kept ones. Sizes alone decide, and not how pointers are aligned, so that the bits do not depend on that.
struct CudaReducePlan {
  int64_t kept = 0;     // points
  int64_t reduced = 0;  // points
  bool is_rows = true;  // a reduced axis leads in memory: lanes are neighbours; else kept indices are
  int64_t width = 1;    // a power of two
  int64_t lanes = 1;    // a power of two
  int64_t group = 1;    // likewise; lanes times group is a multiple of 32
  int64_t blocks = 1;   // that it takes for all kept indices
  // Parts of the reduced range, each a block's. If there are several, each pass is a launch, and one more joins.
  int64_t splits = 1;
  int64_t split_length = 0;  // reduced indices of a part; the last may have fewer
  CudaCarry carry = CudaCarry::kNone;
  std::vector<int32_t> places;      // by value: where it is carried, or -1; values of different passes share places
  std::vector<DType> place_dtypes;  // by place
  int64_t join_bytes = 0;           // shared memory that joining takes
  int64_t carry_bytes = 0;          // and what is carried, behind it
  std::vector<CudaPass> passes;

  int64_t threads() const { return lanes * group; }
  // Neighbours that a thread has along the reduced range, and along the kept one.
  int64_t reduced_width() const { return is_rows ? width : 1; }
  int64_t kept_width() const { return is_rows ? 1 : width; }
  // Times that a thread takes neighbours in a pass, and the points that these are.
  int64_t turns() const {
    const int64_t at_once = lanes * reduced_width();
    return (split_length + at_once - 1) / at_once;
  }
  int64_t items() const { return turns() * reduced_width(); }
  // Says it for people: "rows, 32 threads a row, 8 rows a block, 2 passes, values kept in registers".
  std::string Describe() const;
};

// Returns the steps of a pass in one point, as CudaLaunchParts counts them.
double StepsOfPass(const MicroProgram& program, const CudaPass& pass);

CudaReducePlan PlanCudaReduce(const MicroProgram& program, const CudaOptions& options);

}  // namespace tensord

#endif  // TENSORD_BACKENDS_CUDA_CODEGEN_REDUCE_PLAN_H_
