#include "tests/bench/fused/fused_workloads.h"

#include "absl/strings/str_cat.h"
#include "tests/testlib/bench_graphs.h"
#include "tests/testlib/static_graph_builder.h"

namespace tensord {

Graph OneOpGraph(CoreOp op, DType dtype, int64_t elements) {
  StaticGraphBuilder g("one op");
  const ValueId x = g.Input("x", dtype, {elements});
  if (Def(op).op_class == OpClass::kUnary) {
    g.Output("y", g.Unary(op, x));
  } else {
    g.Output("y", g.Binary(op, x, g.Input("z", dtype, {elements})));
  }
  return g.Take();
}

std::vector<FusedWorkload> FusedWorkloads() {
  std::vector<FusedWorkload> workloads = {
      {"G01",
       [] { return ElementwiseChainGraph(4194304); },
       {CoreOp::kTanh, CoreOp::kExp, CoreOp::kRsqrt, CoreOp::kLog1p},
       DType::kF64},
      {"G01_gelu", [] { return GeluGraph(1024, 4096); }, {CoreOp::kTanh}, DType::kF32},
      {"G03", [] { return AdamWGraph(4194304); }, {CoreOp::kDivide, CoreOp::kSqrt}, DType::kF32},
      {"G04", [] { return SoftmaxGraph(1024, 4096); }, {CoreOp::kExp, CoreOp::kDivide}, DType::kF32},
      {"G05", [] { return LayerNormGraph(768, 8192); }, {}, DType::kF32},
  };
  constexpr CoreOp kAlone[] = {CoreOp::kExp,  CoreOp::kLog,   CoreOp::kSin,   CoreOp::kCos,
                               CoreOp::kTanh, CoreOp::kExpm1, CoreOp::kLog1p, CoreOp::kPow,
                               CoreOp::kSqrt, CoreOp::kRsqrt, CoreOp::kSign,  CoreOp::kDivide};
  for (const DType dtype : {DType::kF64, DType::kF32}) {
    for (const CoreOp op : kAlone) {
      workloads.push_back({absl::StrCat("G01b_", Def(op).name, "_", Name(dtype)),
                           [op, dtype] { return OneOpGraph(op, dtype, 1048576); },
                           {op},
                           dtype});
    }
  }
  return workloads;
}

}  // namespace tensord
