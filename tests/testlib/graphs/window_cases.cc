#include "tests/testlib/graphs/window_cases.h"

#include <utility>

namespace tensord {
namespace {

struct Windows {
  Shape operand, indices, updates;  // updates: of Scatter
  std::vector<int64_t> window_dims, dropped, operand_batching, indices_batching, index_map;
  int64_t index_vector_dim = 0;
  Shape sizes;  // of Gather
};

// Rows and columns of a matrix, single elements, vectors of several indices in any place, batching axes in any order,
// windows that overlap, empty and single everything, large ones.
const std::vector<Windows>& GatherWindows() {
  static const auto* const windows =
      new std::vector<Windows>{{{7, 4}, {5}, {}, {1}, {0}, {}, {}, {0}, 1, {1, 4}},
                               {{7, 4}, {5, 1}, {}, {0}, {0}, {}, {}, {0}, 1, {1, 4}},
                               {{4, 7}, {5}, {}, {0}, {1}, {}, {}, {1}, 1, {4, 1}},
                               {{4, 7}, {5}, {}, {1}, {1}, {}, {}, {1}, 1, {3, 1}},
                               {{5}, {300}, {}, {}, {0}, {}, {}, {0}, 1, {1}},
                               {{9}, {40}, {}, {0}, {}, {}, {}, {0}, 1, {3}},
                               {{9}, {40}, {}, {1}, {}, {}, {}, {0}, 1, {3}},
                               {{5, 3}, {2, 40}, {}, {}, {0, 1}, {}, {}, {1, 0}, 0, {1, 1}},
                               {{3, 4, 5}, {2, 2, 3}, {}, {0, 3}, {0}, {}, {}, {2, 0}, 1, {1, 2, 3}},
                               {{2, 5, 3}, {3, 2}, {}, {1}, {1}, {0}, {1}, {1}, 2, {1, 1, 3}},
                               {{2, 3, 6}, {3, 2, 4, 1}, {}, {0}, {}, {0, 1}, {1, 0}, {2}, 3, {1, 1, 2}},
                               {{4, 3}, {4, 3, 0}, {}, {}, {}, {0, 1}, {0, 1}, {}, 2, {1, 1}},
                               {{}, {0}, {}, {}, {}, {}, {}, {}, 0, {}},
                               {{}, {3, 0}, {}, {}, {}, {}, {}, {}, 1, {}},
                               {{5}, {}, {}, {}, {0}, {}, {}, {0}, 0, {1}},
                               {{5}, {}, {}, {0}, {}, {}, {}, {0}, 0, {3}},
                               {{5, 2}, {0}, {}, {1}, {0}, {}, {}, {0}, 1, {1, 2}},
                               {{4, 3}, {2}, {}, {0, 1}, {}, {}, {}, {0}, 1, {0, 3}},
                               {{0, 3}, {2}, {}, {0, 1}, {}, {}, {}, {0}, 1, {0, 3}},
                               {{0, 3}, {0, 2, 0}, {}, {2}, {}, {0}, {0}, {}, 2, {1, 2}},
                               {{9, 8, 7}, {11, 3}, {}, {1, 2, 3}, {}, {}, {}, {0, 1, 2}, 1, {3, 2, 5}},
                               {{257, 33}, {600}, {}, {1}, {0}, {}, {}, {0}, 1, {1, 33}},
                               {{257, 33}, {600}, {}, {0}, {0}, {}, {}, {0}, 1, {1, 33}},
                               {{70001}, {2}, {}, {0}, {}, {}, {}, {0}, 1, {66000}},
                               {{2, 1, 3, 1, 2, 1, 2, 1},
                                {4, 2, 2},
                                {},
                                {0, 2, 3, 4, 6, 7},
                                {1, 3},
                                {},
                                {},
                                {0, 4},
                                1,
                                {1, 1, 2, 1, 1, 1, 2, 1}}};
  return *windows;
}

const std::vector<Windows>& ScatterWindows() {
  static const auto* const windows =
      new std::vector<Windows>{{{7, 4}, {5}, {5, 4}, {1}, {0}, {}, {}, {0}, 1, {}},
                               {{4, 7}, {5}, {4, 5}, {0}, {1}, {}, {}, {1}, 1, {}},
                               {{4, 7}, {5, 1}, {5, 3}, {1}, {1}, {}, {}, {1}, 1, {}},
                               {{5}, {300}, {300}, {}, {0}, {}, {}, {0}, 1, {}},
                               {{9}, {40}, {40, 3}, {1}, {}, {}, {}, {0}, 1, {}},
                               {{9}, {40}, {3, 40}, {0}, {}, {}, {}, {0}, 1, {}},
                               {{5, 3}, {2, 40}, {40}, {}, {0, 1}, {}, {}, {1, 0}, 0, {}},
                               {{5, 6}, {4, 2, 3}, {2, 4, 3, 3}, {0, 3}, {}, {}, {}, {1, 0}, 1, {}},
                               {{3, 4}, {5, 2, 6}, {5, 6}, {}, {0, 1}, {}, {}, {1, 0}, 1, {}},
                               {{3, 5, 2}, {4, 3}, {4, 3, 2}, {2}, {1}, {0}, {1}, {1}, 2, {}},
                               {{2, 3, 6}, {3, 2, 4, 1}, {2, 3, 2, 4}, {0}, {}, {0, 1}, {1, 0}, {2}, 3, {}},
                               {{4, 3}, {4, 3, 0}, {4, 3}, {}, {}, {0, 1}, {0, 1}, {}, 2, {}},
                               {{}, {0}, {}, {}, {}, {}, {}, {}, 0, {}},
                               {{}, {3, 0}, {3}, {}, {}, {}, {}, {}, 1, {}},
                               {{5}, {}, {}, {}, {0}, {}, {}, {0}, 0, {}},
                               {{5}, {}, {3}, {0}, {}, {}, {}, {0}, 0, {}},
                               {{3, 2}, {4, 0}, {4, 3, 2}, {1, 2}, {}, {}, {}, {}, 1, {}},
                               {{5, 2}, {0}, {0, 2}, {1}, {0}, {}, {}, {0}, 1, {}},
                               {{4, 3}, {2}, {0, 3, 2}, {0, 1}, {}, {}, {}, {0}, 1, {}},
                               {{0, 3}, {2}, {2, 0, 3}, {1, 2}, {}, {}, {}, {0}, 1, {}},
                               {{0, 3}, {2}, {2, 3}, {1}, {0}, {}, {}, {0}, 1, {}},
                               {{9, 8, 7}, {11, 3}, {11, 3, 2, 5}, {1, 2, 3}, {}, {}, {}, {0, 1, 2}, 1, {}},
                               {{40, 65}, {900}, {900, 65}, {1}, {0}, {}, {}, {0}, 1, {}},
                               {{65, 40}, {900}, {900, 64}, {1}, {1}, {}, {}, {1}, 1, {}},
                               {{700}, {30, 101}, {30, 101}, {}, {0}, {}, {}, {0}, 2, {}},
                               {{70001}, {2}, {66000, 2}, {0}, {}, {}, {}, {0}, 1, {}},
                               {{2, 1, 3, 1, 2, 1, 2, 1},
                                {4, 2, 2},
                                {1, 4, 2, 1, 1, 2, 2, 1},
                                {0, 2, 3, 4, 5, 7},
                                {1, 3},
                                {},
                                {},
                                {0, 4},
                                1,
                                {}}};
  return *windows;
}

void Add(std::vector<NodeCase>* cases, CoreOp op, Attributes attrs, std::vector<ConcreteType> operands) {
  cases->push_back({.op = &Def(op), .attrs = std::move(attrs), .operands = std::move(operands)});
}

}  // namespace

std::vector<NodeCase> GatherCases() {
  std::vector<NodeCase> cases;
  for (DType d : kAllDTypes) {
    for (const Windows& w : GatherWindows()) {
      const auto with_axes = [&w](CoreOp op) {
        return Attributes(Def(op).attrs)
            .Set("offset_dims", w.window_dims)
            .Set("collapsed_slice_dims", w.dropped)
            .Set("operand_batching_dims", w.operand_batching)
            .Set("start_indices_batching_dims", w.indices_batching)
            .Set("start_index_map", w.index_map)
            .Set("index_vector_dim", w.index_vector_dim);
      };
      std::vector<DimExpr> of_source;
      for (size_t axis = 0; axis < w.sizes.size(); ++axis) {
        of_source.push_back(DimExpr::OperandAxis(2, static_cast<int64_t>(axis)));
      }
      const std::vector<int64_t> sizes(w.sizes.begin(), w.sizes.end());
      for (DType index : {DType::kI32, DType::kI64}) {
        Add(&cases, CoreOp::kGather, with_axes(CoreOp::kGather).Set("slice_sizes", sizes),
            {{d, w.operand}, {index, w.indices}});
      }
      Add(&cases, CoreOp::kGatherDynamicSliceSizes,
          with_axes(CoreOp::kGatherDynamicSliceSizes)
              .Set("slice_sizes", std::vector<DimExpr>(w.sizes.begin(), w.sizes.end())),
          {{d, w.operand}, {DType::kI64, w.indices}});
      Add(&cases, CoreOp::kGatherDynamicSliceSizes,
          with_axes(CoreOp::kGatherDynamicSliceSizes).Set("slice_sizes", of_source),
          {{d, w.operand}, {DType::kI32, w.indices}, {DType::kF32, w.sizes}});
    }
  }
  return cases;
}

std::vector<NodeCase> ScatterCases() {
  std::vector<NodeCase> cases;
  for (DType d : kAllDTypes) {
    for (const Windows& w : ScatterWindows()) {
      for (int64_t combiner = 0; combiner < 5; ++combiner) {
        const DType index = combiner % 2 == 0 ? DType::kI32 : DType::kI64;
        Add(&cases, CoreOp::kScatter,
            Attributes(Def(CoreOp::kScatter).attrs)
                .Set("update_window_dims", w.window_dims)
                .Set("inserted_window_dims", w.dropped)
                .Set("input_batching_dims", w.operand_batching)
                .Set("scatter_indices_batching_dims", w.indices_batching)
                .Set("scatter_dims_to_operand_dims", w.index_map)
                .Set("index_vector_dim", w.index_vector_dim)
                .Set("combiner", combiner),
            {{d, w.operand}, {index, w.indices}, {d, w.updates}});
      }
    }
  }
  return cases;
}

}  // namespace tensord
