#include "backends/cpu/jit/jitted_rows.h"

#include <algorithm>

namespace tensord::cpu {

bool IsFoldJitted(DType dtype, int64_t length, int widest_bytes, JitIsa isa) {
  const bool is_number = dtype == DType::kF32 || dtype == DType::kF64 || dtype == DType::kI32 || dtype == DType::kI64;
  // Longer runs are folded a few rows of lanes at a time, and these then.
  constexpr int64_t kMaxBytes = 4096;
  return isa == JitIsa::kAvx512 && is_number && length > 0 && SizeOf(dtype) == widest_bytes &&
         length * SizeOf(dtype) <= kMaxBytes;
}

}  // namespace tensord::cpu

#if TENSORD_HAS_JIT

#include "backends/cpu/jit/turn_emitter.h"

namespace tensord::cpu {

int WidestRegister(const JitRows& rows) {
  int widest = 4;
  for (const JitRows::Stage& stage : rows.stages) {
    widest = std::max({widest, WidestRegister(stage.kept), WidestRegister(stage.loop)});
  }
  for (const JitRows::Element& load : rows.loads) widest = std::max(widest, RegisterBytes(load.dtype));
  return widest;
}

bool IsMapJitted(const JitRows& rows, JitIsa isa) {
  const auto is_fold = [](const JitNode& node) { return node.kind == JitNode::Kind::kFold; };
  const auto is_map = [&](const JitRows::Stage& stage) {
    return stage.results.empty() && std::none_of(stage.loop.nodes.begin(), stage.loop.nodes.end(), is_fold);
  };
  if (isa == JitIsa::kNone || !std::all_of(rows.stages.begin(), rows.stages.end(), is_map)) return false;
  if (isa == JitIsa::kAvx512) return true;
  const int lanes = ShapeOf(WidestRegister(rows), isa).lanes;
  // Beside C128, elements of four bytes or less do not fill even a small vector.
  const auto fills_vectors = [&](const JitProgram& program) {
    return std::all_of(program.nodes.begin(), program.nodes.end(),
                       [&](const JitNode& node) { return lanes * RegisterBytes(node.dtype) >= 16; });
  };
  return rows.length % lanes == 0 && std::all_of(rows.stages.begin(), rows.stages.end(), [&](const auto& stage) {
           return fills_vectors(stage.kept) && fills_vectors(stage.loop);
         });
}

}  // namespace tensord::cpu

#else

namespace tensord::cpu {

int WidestRegister(const JitRows& /*rows*/) { return 0; }
bool IsMapJitted(const JitRows& /*rows*/, JitIsa /*isa*/) { return false; }

}  // namespace tensord::cpu

#endif  // TENSORD_HAS_JIT
