#include "tests/testlib/graphs/node_case.h"

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/ir/verifier.h"
#include "tests/testlib/graphs/window_cases.h"

namespace tensord {
namespace {

// Shapes that elementwise code must get right: every tail length up to a vector, ranks 0 to 8, empty, large.
const std::vector<Shape>& ElementwiseShapes() {
  static const auto* const shapes = new std::vector<Shape>{{},
                                                           {0},
                                                           {1},
                                                           {2},
                                                           {3},
                                                           {7},
                                                           {16},
                                                           {17},
                                                           {31},
                                                           {64},
                                                           {65},
                                                           {257},
                                                           {3, 5},
                                                           {0, 4},
                                                           {2, 3, 4},
                                                           {1, 1, 1, 1, 1},
                                                           {2, 1, 3, 1, 2, 1, 2, 1},
                                                           {70001}};
  return *shapes;
}

class CaseList {
 public:
  void Add(CoreOp op, Attributes attrs, std::vector<ConcreteType> operands) {
    std::string name(Def(op).name);
    for (const ConcreteType& operand : operands) absl::StrAppend(&name, " ", ToString(operand));
    cases_.push_back({.name = absl::StrCat(name, " #", cases_.size()),
                      .op = &Def(op),
                      .attrs = std::move(attrs),
                      .operands = std::move(operands)});
  }
  void Append(std::vector<NodeCase> cases) {
    for (NodeCase& c : cases) Add(static_cast<CoreOp>(c.op->index), std::move(c.attrs), std::move(c.operands));
  }
  std::vector<NodeCase> Take() { return std::move(cases_); }

 private:
  std::vector<NodeCase> cases_;
};

Attributes AttrsOf(CoreOp op) { return Attributes(Def(op).attrs); }

void AddElementwise(CaseList* list) {
  for (const OpDef& op : CoreOps()) {
    if (op.op_class == OpClass::kPlain) continue;
    for (DType d : kAllDTypes) {
      if (!op.dtypes.Contains(d)) continue;
      for (const Shape& shape : ElementwiseShapes()) {
        std::vector<ConcreteType> operands(static_cast<size_t>(op.max_operands), ConcreteType{d, shape});
        list->Add(static_cast<CoreOp>(op.index), Attributes(op.attrs), std::move(operands));
      }
    }
  }
}

void AddSelection(CaseList* list) {
  for (DType d : kAllDTypes) {
    for (const Shape& shape : ElementwiseShapes()) {
      for (int64_t direction = 1; direction <= 6; ++direction) {
        if (kComplexes.Contains(d) && direction > 2) continue;
        list->Add(CoreOp::kCompare, AttrsOf(CoreOp::kCompare).Set("direction", direction), {{d, shape}, {d, shape}});
      }
      for (DType to : kAllDTypes) {
        list->Add(CoreOp::kConvert, AttrsOf(CoreOp::kConvert).Set("dtype", to), {{d, shape}});
      }
      for (const Shape& pred : {shape, Shape{}}) {
        list->Add(CoreOp::kSelect, AttrsOf(CoreOp::kSelect), {{DType::kBool, pred}, {d, shape}, {d, shape}});
        list->Add(CoreOp::kClamp, AttrsOf(CoreOp::kClamp), {{d, pred}, {d, shape}, {d, shape}});
        list->Add(CoreOp::kClamp, AttrsOf(CoreOp::kClamp), {{d, shape}, {d, shape}, {d, pred}});
      }
      list->Add(CoreOp::kClamp, AttrsOf(CoreOp::kClamp), {{d, {}}, {d, shape}, {d, {}}});
    }
  }
}

void AddLeaves(CaseList* list) {
  for (DType d : kAllDTypes) {
    for (const Shape& shape : {Shape{}, Shape{0}, Shape{5}, Shape{3, 4}}) {
      auto value = std::make_shared<Literal>(Literal::Create({d, shape}).value());
      for (int64_t i = 0; i < value->type().num_bytes(); ++i) {
        value->mutable_data()[i] = static_cast<char>(d == DType::kBool ? i % 2 : i * 7 % 64);
      }
      list->Add(CoreOp::kConstant, AttrsOf(CoreOp::kConstant).Set("value", LiteralPtr(value)), {});
    }
    if (d == DType::kBool) continue;
    for (const Shape& shape :
         {Shape{1}, Shape{0}, Shape{300}, Shape{3, 4, 5}, Shape{2, 0, 3}, Shape{2, 1, 2, 1, 3, 1, 2, 2}}) {
      for (int64_t axis = 0; axis < static_cast<int64_t>(shape.size()); ++axis) {
        const TensorType type = ToTensorType({d, shape});
        list->Add(CoreOp::kIota, AttrsOf(CoreOp::kIota).Set("type", type).Set("dimension", axis), {});
      }
    }
  }
}

std::vector<DimExpr> Dims(const Shape& shape) { return {shape.begin(), shape.end()}; }

void AddStructural(CaseList* list) {
  using Ints = std::vector<int64_t>;
  for (DType d : kAllDTypes) {
    const std::pair<Shape, Ints> transposes[] = {{{}, {}},
                                                 {{5}, {0}},
                                                 {{3, 4}, {1, 0}},
                                                 {{3, 4}, {0, 1}},
                                                 {{0, 4}, {1, 0}},
                                                 {{1, 7}, {1, 0}},
                                                 {{65, 33}, {1, 0}},
                                                 {{3, 4, 5}, {2, 0, 1}},
                                                 {{300, 257}, {1, 0}},
                                                 {{8, 3, 16, 5}, {0, 2, 1, 3}},
                                                 {{2, 3, 2, 3, 2, 3, 2, 3}, {7, 5, 3, 1, 6, 4, 2, 0}}};
    for (const auto& [shape, permutation] : transposes) {
      list->Add(CoreOp::kTranspose, AttrsOf(CoreOp::kTranspose).Set("permutation", permutation), {{d, shape}});
    }
    const std::pair<Shape, Shape> reshapes[] = {
        {{}, {1, 1}},           {{6}, {2, 3}}, {{2, 3, 4}, {4, 6}},  {{0, 3}, {5, 0}},
        {{4, 6}, {2, 2, 3, 2}}, {{1}, {}},     {{33, 65}, {65, 33}}, {{2, 2, 2, 2, 2, 2, 2, 2}, {16, 16}}};
    for (const auto& [from, to] : reshapes) {
      for (int64_t order = 0; order <= 2; ++order) {
        list->Add(CoreOp::kReshape, AttrsOf(CoreOp::kReshape).Set("shape", Dims(to)).Set("order", order), {{d, from}});
      }
    }
    struct Broadcast {
      Shape from, to;
      Ints dimensions;
    };
    const Broadcast broadcasts[] = {{{}, {3, 4}, {}},
                                    {{3}, {3, 4}, {0}},
                                    {{4}, {3, 4}, {1}},
                                    {{1, 4}, {3, 4}, {0, 1}},
                                    {{4, 3}, {3, 4}, {1, 0}},
                                    {{}, {}, {}},
                                    {{2}, {0, 2}, {1}},
                                    {{1}, {65}, {0}},
                                    {{5, 1, 3}, {3, 7, 5}, {2, 1, 0}},
                                    {{33}, {129, 33}, {1}},
                                    {{2, 2}, {2, 3, 2, 1, 2, 1, 1, 2}, {0, 7}}};
    for (const Broadcast& b : broadcasts) {
      list->Add(CoreOp::kBroadcastInDim,
                AttrsOf(CoreOp::kBroadcastInDim).Set("shape", Dims(b.to)).Set("broadcast_dimensions", b.dimensions),
                {{d, b.from}});
    }
  }
}

void AddSlicing(CaseList* list) {
  using Ints = std::vector<int64_t>;
  for (DType d : kAllDTypes) {
    struct Range {
      Shape shape;
      Ints start, limit, stride;
    };
    const Range slices[] = {{{}, {}, {}, {}},
                            {{10}, {2}, {9}, {}},
                            {{10}, {1}, {10}, {3}},
                            {{10}, {4}, {4}, {1}},
                            {{6, 7}, {1, 2}, {5, 7}, {2, 1}},
                            {{6, 7}, {0, 0}, {6, 7}, {1, 3}},
                            {{0, 3}, {0, 1}, {0, 3}, {}},
                            {{70, 50}, {3, 5}, {69, 48}, {}},
                            {{5}, {0}, {5}, {std::numeric_limits<int64_t>::max()}},
                            {{2, 3, 2, 3, 2, 3, 2, 3}, {0, 1, 0, 1, 0, 1, 0, 1}, {2, 3, 2, 3, 2, 3, 2, 2}, {}}};
    for (const Range& s : slices) {
      list->Add(
          CoreOp::kSlice,
          AttrsOf(CoreOp::kSlice).Set("start_indices", s.start).Set("limit_indices", s.limit).Set("strides", s.stride),
          {{d, s.shape}});
    }
    struct Padding {
      Shape shape;
      Ints low, high, interior;
    };
    const Padding pads[] = {{{}, {}, {}, {}},
                            {{5}, {2}, {3}, {}},
                            {{5}, {-1}, {-2}, {}},
                            {{5}, {-2}, {4}, {2}},
                            {{0}, {2}, {1}, {3}},
                            {{3}, {-3}, {0}, {}},
                            {{3, 4}, {1, 0}, {0, 2}, {1, 2}},
                            {{3, 4}, {-1, 5}, {2, -3}, {0, 1}},
                            {{4}, {-5}, {9}, {1}},
                            {{33, 17}, {3, 1}, {2, 4}, {}},
                            {{1, 2, 1, 2, 1, 2, 1, 2}, {1, 0, 0, 1, 0, 0, 1, 0}, {0, 1, 0, 0, 1, 0, 0, 1}, {}}};
    for (const Padding& p : pads) {
      list->Add(CoreOp::kPad,
                AttrsOf(CoreOp::kPad)
                    .Set("edge_padding_low", p.low)
                    .Set("edge_padding_high", p.high)
                    .Set("interior_padding", p.interior),
                {{d, p.shape}, {d, {}}});
    }
    const std::pair<int64_t, std::vector<Shape>> joins[] = {{0, {{3}, {4}}},
                                                            {0, {{0}, {4}, {0}}},
                                                            {1, {{2, 3}, {2, 1}, {2, 5}}},
                                                            {0, {{7, 3}, {2, 3}}},
                                                            {0, {{5}}},
                                                            {2, {{2, 2, 1}, {2, 2, 2}}},
                                                            {1, {{33, 20}, {33, 41}}},
                                                            {3, {{1, 2, 1, 2, 1, 2, 1, 2}, {1, 2, 1, 1, 1, 2, 1, 2}}}};
    for (const auto& [dimension, shapes] : joins) {
      std::vector<ConcreteType> operands;
      for (const Shape& shape : shapes) operands.push_back({d, shape});
      list->Add(CoreOp::kConcatenate, AttrsOf(CoreOp::kConcatenate).Set("dimension", dimension), operands);
    }
    const std::pair<Shape, Ints> reversals[] = {{{}, {}},      {{5}, {0}},      {{5}, {}},
                                                {{3, 4}, {0}}, {{3, 4}, {1}},   {{3, 4}, {1, 0}},
                                                {{0, 4}, {1}}, {{65, 33}, {0}}, {{2, 3, 2, 3, 2, 3, 2, 3}, {0, 3, 7}}};
    for (const auto& [shape, dimensions] : reversals) {
      list->Add(CoreOp::kReverse, AttrsOf(CoreOp::kReverse).Set("dimensions", dimensions), {{d, shape}});
    }
  }
}

void AddDiagonals(CaseList* list) {
  struct Diagonal {
    Shape shape;
    int64_t a, b;
  };
  const Diagonal extracts[] = {{{4, 4}, 0, 1},
                               {{4, 4}, 1, 0},
                               {{1, 1}, 0, 1},
                               {{0, 0}, 0, 1},
                               {{65, 65}, 0, 1},
                               {{5, 3, 5}, 0, 2},
                               {{5, 3, 5}, 2, 0},
                               {{3, 5, 5}, 1, 2},
                               {{17, 17, 33}, 1, 0},
                               {{3, 0, 3}, 0, 2},
                               {{2, 3, 2, 2, 1, 2, 3, 2}, 6, 1}};
  const Diagonal embeds[] = {
      {{4}, 0, 0},       {{4}, 0, 1},       {{1}, 0, 0},    {{0}, 0, 1},       {{129}, 0, 1},
      {{3, 4}, 0, 0},    {{3, 4}, 0, 2},    {{3, 4}, 1, 0}, {{3, 4}, 1, 1},    {{33, 17}, 1, 2},
      {{2, 0, 3}, 2, 1}, {{2, 1, 3}, 1, 3}, {{5, 6}, 0, 1}, {{7, 2, 3}, 0, 2}, {{2, 1, 3, 2, 1, 2, 2}, 2, 5}};
  for (DType d : kAllDTypes) {
    for (const Diagonal& x : extracts) {
      list->Add(CoreOp::kExtractDiag, AttrsOf(CoreOp::kExtractDiag).Set("axis_a", x.a).Set("axis_b", x.b),
                {{d, x.shape}});
    }
    for (const Diagonal& e : embeds) {
      list->Add(CoreOp::kEmbedDiag, AttrsOf(CoreOp::kEmbedDiag).Set("axis_a", e.a).Set("axis_b", e.b), {{d, e.shape}});
    }
  }
}

void AddTriangles(CaseList* list) {
  using Ints = std::vector<int64_t>;
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min(), kMax = std::numeric_limits<int64_t>::max();
  struct Matrices {
    Shape shape;
    Ints axes;
  };
  const Matrices matrices[] = {{{4, 4}, {}},           {{3, 5}, {}},
                               {{5, 3}, {1, 0}},       {{1, 1}, {}},
                               {{0, 3}, {}},           {{3, 0}, {}},
                               {{70, 90}, {}},         {{90, 70}, {1, 0}},
                               {{4, 3, 2}, {0, 2}},    {{4, 3, 2}, {2, 1}},
                               {{3, 2, 65}, {}},       {{17, 40, 33}, {0, 2}},
                               {{17, 40, 33}, {2, 0}}, {{2, 3, 1, 2, 1, 2, 2, 3}, {1, 7}}};
  for (DType d : kAllDTypes) {
    for (const Matrices& m : matrices) {
      for (int64_t k : {int64_t{0}, int64_t{1}, int64_t{-2}, int64_t{60}, int64_t{-100}, kMin, kMax}) {
        for (CoreOp op : {CoreOp::kTril, CoreOp::kTriu}) {
          list->Add(op, AttrsOf(op).Set("diagonal", k).Set("matrix_axes", m.axes), {{d, m.shape}});
        }
      }
    }
  }
  // More than one task, and rows that are cut by its bounds.
  for (const Matrices& m : {Matrices{{700, 300}, {}}, Matrices{{2, 500, 300}, {2, 0}}, Matrices{{90000, 3}, {0, 1}}}) {
    list->Add(CoreOp::kTril, AttrsOf(CoreOp::kTril).Set("diagonal", int64_t{-9}).Set("matrix_axes", m.axes),
              {{DType::kF64, m.shape}});
    list->Add(CoreOp::kTriu, AttrsOf(CoreOp::kTriu).Set("diagonal", int64_t{7}).Set("matrix_axes", m.axes),
              {{DType::kC64, m.shape}});
  }
}

void AddDynamicSlices(CaseList* list) {
  using Ints = std::vector<int64_t>;
  struct Window {
    Shape shape, sizes;
    Ints axes;
  };
  const Window windows[] = {{{}, {}, {}},
                            {{10}, {3}, {}},
                            {{10}, {0}, {}},
                            {{10}, {10}, {}},
                            {{0}, {0}, {}},
                            {{6, 7}, {2, 3}, {}},
                            {{6, 7}, {2, 3}, {1, 0}},
                            {{6, 7}, {6, 1}, {}},
                            {{5, 0, 2}, {3, 0, 1}, {}},
                            {{4, 5, 6}, {2, 5, 3}, {2, 0, 1}},
                            {{70001}, {4097}, {}},
                            {{300, 290}, {257, 200}, {}},
                            {{2, 3, 2, 3, 2, 3, 2, 3}, {1, 2, 2, 1, 1, 3, 1, 2}, {}}};
  for (DType d : kAllDTypes) {
    for (DType index : {DType::kI32, DType::kI64}) {
      for (const Window& w : windows) {
        const ConcreteType starts{index, {static_cast<int64_t>(w.shape.size())}};
        const Ints sizes(w.sizes.begin(), w.sizes.end());
        list->Add(CoreOp::kDynamicSlice,
                  AttrsOf(CoreOp::kDynamicSlice).Set("slice_sizes", sizes).Set("start_axes", w.axes),
                  {{d, w.shape}, starts});
        list->Add(CoreOp::kDynamicUpdateSlice, AttrsOf(CoreOp::kDynamicUpdateSlice).Set("start_axes", w.axes),
                  {{d, w.shape}, {d, w.sizes}, starts});
      }
    }
  }
}

void AddExtents(CaseList* list) {
  struct Padding {
    Shape shape, reference;
    int64_t dimension;
    std::vector<int64_t> reference_axis;
  };
  const Padding pads[] = {{{3}, {5}, 0, {}},           {{5}, {3}, 0, {}},
                          {{0}, {4}, 0, {}},           {{4}, {0}, 0, {}},
                          {{3, 4}, {5, 6, 7}, 0, {}},  {{3, 4}, {5, 6, 7}, 1, {}},
                          {{3, 4}, {5, 6, 7}, 0, {2}}, {{3, 0}, {9, 9}, 0, {}},
                          {{33, 65}, {70, 70}, 0, {}}, {{2, 3, 2, 3, 2, 3, 2, 3}, {4, 4, 4, 4, 4, 4, 4, 4}, 5, {}}};
  for (DType d : kAllDTypes) {
    for (const Shape& shape : {Shape{5}, Shape{0}, Shape{3, 4}, Shape{1, 2, 3, 4, 5, 6, 7, 8}}) {
      for (int64_t axis = 0; axis < static_cast<int64_t>(shape.size()); ++axis) {
        list->Add(CoreOp::kShapeOf, AttrsOf(CoreOp::kShapeOf).Set("dimension", axis), {{d, shape}});
      }
    }
    for (const Shape& shape : {Shape{}, Shape{0}, Shape{3, 4}, Shape{33, 65}, Shape{1, 2, 3, 4, 5, 6, 7, 8}}) {
      list->Add(CoreOp::kOptimizationBarrier, AttrsOf(CoreOp::kOptimizationBarrier), {{d, shape}});
      list->Add(CoreOp::kOptimizationBarrier, AttrsOf(CoreOp::kOptimizationBarrier),
                {{d, shape}, {DType::kBool, {2, 0}}, {d, {7}}});
    }
    for (const Padding& p : pads) {
      for (DType reference : {d, DType::kBool}) {
        list->Add(CoreOp::kPadToMatch,
                  AttrsOf(CoreOp::kPadToMatch).Set("dimension", p.dimension).Set("reference_axis", p.reference_axis),
                  {{d, p.shape}, {reference, p.reference}});
      }
    }
  }
}

void AddReductions(CaseList* list) {
  using Ints = std::vector<int64_t>;
  const std::pair<Shape, Ints> shapes[] = {
      {{}, {}},        {{5}, {}},       {{5}, {0}},      {{0}, {0}},        {{1}, {0}},
      {{1000}, {0}},   {{3, 4}, {0}},   {{3, 4}, {1}},   {{3, 4}, {0, 1}},  {{0, 4}, {0}},
      {{0, 4}, {1}},   {{17, 33}, {0}}, {{17, 33}, {1}}, {{5, 6, 7}, {1}},  {{5, 6, 7}, {0, 2}},
      {{2, 300}, {0}}, {{300, 2}, {1}}, {{70001}, {0}},  {{129, 257}, {1}}, {{2, 2, 2, 2, 2, 2, 2, 2}, {1, 3, 6}}};
  for (DType d : kAllDTypes) {
    for (int64_t kind = 1; kind <= 6; ++kind) {
      if (kind >= 5 && d != DType::kBool) continue;
      for (const auto& [shape, dimensions] : shapes) {
        list->Add(CoreOp::kReduce, AttrsOf(CoreOp::kReduce).Set("kind", kind).Set("dimensions", dimensions),
                  {{d, shape}});
      }
    }
  }
}

void AddContractions(CaseList* list) {
  using Ints = std::vector<int64_t>;
  struct Dot {
    Shape lhs, rhs;
    Ints lc, rc, lb, rb;
  };
  const Dot dots[] = {{{}, {}, {}, {}, {}, {}},
                      {{4}, {4}, {0}, {0}, {}, {}},
                      {{3}, {5}, {}, {}, {}, {}},
                      {{3, 4}, {4, 5}, {1}, {0}, {}, {}},
                      {{4, 3}, {5, 4}, {0}, {1}, {}, {}},
                      {{4, 3}, {4, 5}, {0}, {0}, {}, {}},
                      {{3, 4}, {4}, {1}, {0}, {}, {}},
                      {{4}, {4, 3}, {0}, {0}, {}, {}},
                      {{3, 0}, {0, 5}, {1}, {0}, {}, {}},
                      {{0, 4}, {4, 5}, {1}, {0}, {}, {}},
                      {{3, 4, 2}, {4, 5, 2}, {1}, {0}, {2}, {2}},
                      {{2, 3, 4}, {2, 4, 5}, {2}, {1}, {0}, {0}},
                      {{2, 3}, {2, 3}, {}, {}, {0, 1}, {0, 1}},
                      {{2, 3}, {3, 2}, {}, {}, {0, 1}, {1, 0}},
                      {{3, 4, 5}, {5, 3, 6}, {0, 2}, {1, 0}, {}, {}},
                      {{2, 3, 4, 5}, {5, 7, 2}, {3}, {0}, {0}, {2}},
                      {{33, 65}, {65, 17}, {1}, {0}, {}, {}},
                      {{2, 1, 3, 1, 2, 1, 2, 1}, {1, 2, 1, 2, 1, 3, 1, 2}, {2, 4}, {5, 1}, {0}, {3}}};
  for (DType d : kAllDTypes) {
    for (const Dot& dot : dots) {
      for (DType result : {DType::kInvalid, DType::kF32, DType::kF64, DType::kI64, DType::kC128}) {
        const bool wider = (result == DType::kF32 && SizeOf(d) == 2) ||
                           (result == DType::kF64 && kFloats.Contains(d) && d != DType::kF64) ||
                           (result == DType::kI64 && d == DType::kI32) || (result == DType::kC128 && d == DType::kC64);
        if (result != DType::kInvalid && !wider) continue;
        list->Add(CoreOp::kDotGeneral,
                  AttrsOf(CoreOp::kDotGeneral)
                      .Set("lhs_contracting_dimensions", dot.lc)
                      .Set("rhs_contracting_dimensions", dot.rc)
                      .Set("lhs_batching_dimensions", dot.lb)
                      .Set("rhs_batching_dimensions", dot.rb)
                      .Set("result_dtype", result),
                  {{d, dot.lhs}, {d, dot.rhs}});
      }
    }
  }
}

void AddDynamicTruncate(CaseList* list) {
  for (DType d : kAllDTypes) {
    for (DType size : {DType::kI32, DType::kI64}) {
      for (const Shape& shape :
           std::vector<Shape>{{0}, {1}, {5}, {3, 0}, {4, 7}, {2, 1, 3, 1, 2, 1, 2, 1}, {3, 5001}}) {
        for (size_t axis = 0; axis < shape.size(); ++axis) {
          list->Add(CoreOp::kDynamicTruncate,
                    AttrsOf(CoreOp::kDynamicTruncate).Set("dimension", static_cast<int64_t>(axis)),
                    {{d, shape}, {size, {}}});
        }
      }
    }
  }
}

}  // namespace

Graph GraphOf(const NodeCase& node_case) {
  Graph graph;
  graph.set_name(node_case.name);
  Node node{.name = "n", .op = node_case.op, .attrs = node_case.attrs};
  for (size_t i = 0; i < node_case.operands.size(); ++i) {
    node.operands.push_back(graph.AddInput(absl::StrCat("x", i), ToTensorType(node_case.operands[i])));
  }
  graph.AddOutput("y", graph.AddNode(std::move(node)));
  return graph;
}

std::vector<NodeCase> CoreOpCases() {
  CaseList list;
  AddElementwise(&list);
  AddSelection(&list);
  AddLeaves(&list);
  AddStructural(&list);
  AddSlicing(&list);
  AddDiagonals(&list);
  AddTriangles(&list);
  AddDynamicSlices(&list);
  AddExtents(&list);
  list.Append(GatherCases());
  list.Append(ScatterCases());
  AddReductions(&list);
  AddContractions(&list);
  AddDynamicTruncate(&list);
  return list.Take();
}

}  // namespace tensord
