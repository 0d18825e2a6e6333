#ifndef TENSORD_ENGINE_FUSION_MICRO_PROGRAM_H_
#define TENSORD_ENGINE_FUSION_MICRO_PROGRAM_H_

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "engine/ops/core_ops.h"
#include "engine/tensor/literal.h"

namespace tensord {

// The axes over which a value of a micro program has elements.
enum class MicroLevel : uint8_t {
  kUniform,  // one for the whole kernel
  kKept,     // one for each index of the kept axes; only in programs with reduced axes
  kFull,     // one for each index of all axes
};

// An axis of the space that a micro program runs over. Axis 0 is the fastest in memory.
struct MicroAxis {
  int64_t size = 1;
  bool is_reduced = false;  // a reduction runs along it
  friend bool operator==(const MicroAxis&, const MicroAxis&) = default;
};

// Element `offset + sum of index[d] * strides[d]`: of a tensor's memory, counted in elements, or of the integers
// (iota). One stride an axis of the program; 0 along axes that the value does not have or repeats over. Strides may be
// negative.
struct MicroAccess {
  int64_t offset = 0;
  absl::InlinedVector<int64_t, 6> strides;
  friend bool operator==(const MicroAccess&, const MicroAccess&) = default;
};

enum class MicroKind : uint8_t {
  kLoad,      // operand `tensor` at `access`
  kIota,      // the integer at `access`, as `dtype`
  kConstant,  // `constant`, one element
  kUnary,     // `op` of a
  kBinary,    // `op` of a, b
  kCompare,   // `direction` of a, b
  kSelect,    // a ? b : c
  kClamp,     // minimum(maximum(b, a), c): operands in the order of the op Clamp
  kConvert,   // a as `dtype`
  kReduce,    // `reduce` of a over the reduced axes: kFull in, kKept out
};

// Computes one value; the values are numbered as the instructions are. An operand is at the instruction's level or a
// lower one; at a lower one its element stands for all points that it spans. An instruction means the same as its op
// (engine/ops/scalar/scalar_math.h), rounded to `dtype`.
struct MicroInstruction {
  MicroKind kind = MicroKind::kLoad;
  MicroLevel level = MicroLevel::kFull;
  DType dtype = DType::kInvalid;                   // of the value
  CoreOp op = CoreOp::kAdd;                        // kUnary, kBinary
  CompareDirection direction = {};                 // kCompare
  ReduceKind reduce = {};                          // kReduce
  int32_t tensor = -1;                             // kLoad: which operand of the kernel
  std::array<int32_t, 3> operands = {-1, -1, -1};  // a, b, c: instructions before this one
  // Reductions on the longest way from a leaf to the value, its own included. A value of stage s cannot be computed
  // before all elements of some value of stage s - 1 are there.
  int32_t stage = 0;
  MicroAccess access;   // kLoad, kIota
  LiteralPtr constant;  // kConstant
  std::string node;     // the graph's node that it computes, for Explain
};

// A result of the kernel: dense column-major over the axes of its value's level.
struct MicroResult {
  int32_t value = 0;
};

// A fused kernel, independent of the device that runs it: loops over `axes`, in each point the instructions. All sizes
// are known. A value type; backends make code of it, tests evaluate it.
struct MicroProgram {
  absl::InlinedVector<MicroAxis, 6> axes;  // neighbours that no access tells apart are one; sizes of 1 are dropped
  std::vector<DType> tensors;              // of the kernel's operands
  std::vector<MicroInstruction> instructions;
  std::vector<MicroResult> results;  // by result of the kernel

  bool has_reduced_axes() const;
  int64_t num_points(MicroLevel level) const;  // products of the sizes; 1 for kUniform
  int32_t num_stages() const;                  // 1 + the largest stage
};

// Tells whether the access is dense column-major over the axes of `level`, from offset 0 on.
bool IsDense(const MicroProgram& program, const MicroAccess& access, MicroLevel level);

// Returns pairs {result, operand} of which the result may be given the operand's memory: there is one stage, the
// elements have one size, and the operand is read only at the very element that is written, by no instruction after the
// one that computes the result. Holds for executors that, in each point, run the instructions in order and write a
// result as soon as its value is there.
std::vector<std::pair<int32_t, int32_t>> InPlacePairs(const MicroProgram& program);

// Returns one line an axis list, an instruction, a result; stable, for golden tests and Explain:
//   axes 1024r 4096
//   v0 = load t0[0 + 1*i0 + 1024*i1] : f32 full
//   v1 = reduce max(v0) : f32 kept stage 1
//   result 0 = v1
std::string ToString(const MicroProgram& program);

}  // namespace tensord

#endif  // TENSORD_ENGINE_FUSION_MICRO_PROGRAM_H_
