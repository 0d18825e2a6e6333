#include "tests/testlib/property/growth_rules.h"
#include "tests/testlib/property/rounding.h"

namespace tensord::property {

void GrowReduce(GrowingGraph& graph, CoreOp op, DType dtype) {
  const ValueId x = graph.Any(dtype, NeedsExactOperand(op, 0, dtype, dtype));
  const int64_t kinds = dtype == DType::kBool ? 6 : 4;
  graph.Append(op, AttrsOf(op).Set("kind", graph.Between(1, kinds)).Set("dimensions", graph.SomeAxes(graph.rank(x), 2)),
               {x});
}

void GrowDotGeneral(GrowingGraph& graph, CoreOp op, DType dtype) {
  const ValueId x = graph.Any(dtype, /*exact=*/false), y = graph.Any(dtype, /*exact=*/false);
  Ints lc, rc, lb, rb;
  Ints right = graph.Permutation(graph.rank(y));
  for (int64_t a : graph.Permutation(graph.rank(x))) {
    for (auto b = right.begin(); b != right.end(); ++b) {
      const Dim &l = graph.Type(x).shape[static_cast<size_t>(a)], &r = graph.Type(y).shape[static_cast<size_t>(*b)];
      if (!(l == r) && !(graph.LeastSize(l) == graph.LeastSize(r) && graph.GreatestSize(l) == graph.GreatestSize(r))) {
        continue;
      }
      const int64_t role = graph.Below(4);
      if (role == 3) break;
      (role < 2 ? lc : lb).push_back(a);
      (role < 2 ? rc : rb).push_back(*b);
      right.erase(b);
      break;
    }
  }
  DType result = DType::kInvalid;
  if (graph.OneIn(3)) {
    switch (dtype) {
      case DType::kF16:
      case DType::kBF16:
        result = graph.OneIn(2) ? DType::kF32 : DType::kF64;
        break;
      case DType::kF32:
        result = DType::kF64;
        break;
      case DType::kI32:
        result = DType::kI64;
        break;
      case DType::kC64:
        result = DType::kC128;
        break;
      default:
        result = dtype;
    }
  }
  graph.Append(op,
               AttrsOf(op)
                   .Set("lhs_contracting_dimensions", lc)
                   .Set("rhs_contracting_dimensions", rc)
                   .Set("lhs_batching_dimensions", lb)
                   .Set("rhs_batching_dimensions", rb)
                   .Set("result_dtype", result),
               {x, y});
}

}  // namespace tensord::property
