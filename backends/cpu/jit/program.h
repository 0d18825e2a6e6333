#ifndef TENSORD_BACKENDS_CPU_JIT_PROGRAM_H_
#define TENSORD_BACKENDS_CPU_JIT_PROGRAM_H_

#include <array>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "backends/cpu/jit/ids.h"
#include "engine/base/id_vector.h"
#include "engine/fusion/micro_program.h"

namespace tensord::cpu {

// Floats that registers hold as they are.
inline constexpr DTypeSet kLaneFloats = {DType::kF32, DType::kF64};

// The instruction sets that code is made for.
enum class JitIsa : uint8_t {
  kNone,
  kAvx2,    // with FMA: what Highway calls AVX2
  kAvx512,  // F, BW, DQ, VL
};

// Returns this machine's set, as for the vector functions; kNone if this build makes no code.
JitIsa BestJitIsa();
absl::string_view Name(JitIsa isa);
inline int VectorBytes(JitIsa isa) { return isa == JitIsa::kAvx512 ? 64 : 32; }

// One value of a run of elementwise instructions, or one store of a value.
struct JitNode {
  enum class Kind : uint8_t {
    kInput,     // an array at `place`
    kSingle,    // one element at `place`, for all points
    kConstant,  // one element, known now
    kOp,
    kCompareSelect,  // operands 0 and 1 compared, then 2 or 3
    kStore,          // operand 0 to the array at `place`
    kFold,           // operand 0 into one element at `place`, by `op` (JitRows)
  };
  Kind kind = Kind::kOp;
  DType dtype = DType::kInvalid;     // of the value; of the array
  DType computed = DType::kInvalid;  // kOp, kCompareSelect: of operand 0
  MicroKind op_kind = MicroKind::kUnary;
  CoreOp op = CoreOp::kAdd;
  CompareDirection direction = {};
  PlaceId place;
  std::array<JitNodeId, 4> operands;
  std::array<char, 16> constant = {};
  const void* call = nullptr;  // of the vector math functions, where the op is one of them
  bool streams = false;        // kStore: past the cache, in code that streams

  // Returns true for a node with an effect and no value.
  bool is_root() const { return kind == Kind::kStore || kind == Kind::kFold; }
};

using JitNodes = IdVector<JitNodeId, JitNode>;

// The computation of one piece of code at each point, in order: values before their users, stores in the order of the
// program, so that an array may be stored in the place it is read from. Arrays are named by place: positions in the
// table of addresses that the code is called with.
struct JitProgram {
  JitNodes nodes;
};

// Tells whether there is code for an op on a dtype.
bool IsJitted(const JitNode& node, JitIsa isa);
// The same of an op with a number that is known as its second operand.
bool IsJitted(const JitNode& node, const JitNode& second, JitIsa isa);

// Tells whether a math function's code can be inlined, rather than called.
bool IsMathJitted(CoreOp op, DType register_dtype, JitIsa isa);

// Returns the dtype of a value in a register: F32 for 16-bit floats, for others itself.
DType RegisterDType(DType dtype);
// Returns the bytes of its element there; for BOOL, a mask, those of the narrowest.
int RegisterBytes(DType dtype);

// Puts comparisons that only one select reads into it, and drops nodes that nothing reads.
void SimplifyJitProgram(JitProgram* program);

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_JIT_PROGRAM_H_
