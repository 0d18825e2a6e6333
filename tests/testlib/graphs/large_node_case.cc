#include "tests/testlib/graphs/large_node_case.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace tensord {
namespace {

using Ints = std::vector<int64_t>;

class LargeCaseList {
 public:
  Attributes& Add(CoreOp op, std::vector<ConcreteType> operands) {
    std::string name = absl::StrCat(Def(op).name, " large");
    for (const ConcreteType& operand : operands) absl::StrAppend(&name, " ", ToString(operand));
    cases_.push_back(
        {.name = std::move(name), .op = &Def(op), .attrs = Attributes(Def(op).attrs), .operands = std::move(operands)});
    return cases_.back().attrs;
  }
  std::vector<NodeCase> Take() { return std::move(cases_); }

 private:
  std::vector<NodeCase> cases_;
};

void AddMoves(DType d, LargeCaseList* list) {
  list->Add(CoreOp::kTranspose, {{d, {900, 701}}}).Set("permutation", Ints{1, 0});
  list->Add(CoreOp::kTranspose, {{d, {70, 50, 9, 31}}}).Set("permutation", Ints{2, 0, 3, 1});
  list->Add(CoreOp::kReshape, {{d, {801, 700}}})
      .Set("shape", std::vector<DimExpr>{700, 801})
      .Set("order", static_cast<int64_t>(Order::kRowMajor));
  list->Add(CoreOp::kBroadcastInDim, {{d, {701}}})
      .Set("shape", std::vector<DimExpr>{900, 701})
      .Set("broadcast_dimensions", Ints{1});
  list->Add(CoreOp::kBroadcastInDim, {{d, {901}}})
      .Set("shape", std::vector<DimExpr>{901, 700})
      .Set("broadcast_dimensions", Ints{0});
  list->Add(CoreOp::kSlice, {{d, {1001, 700}}})
      .Set("start_indices", Ints{3, 1})
      .Set("limit_indices", Ints{1000, 699})
      .Set("strides", Ints{2, 1});
  list->Add(CoreOp::kPad, {{d, {801, 500}}, {d, {}}})
      .Set("edge_padding_low", Ints{3, -1})
      .Set("edge_padding_high", Ints{1, 4})
      .Set("interior_padding", Ints{0, 1});
  list->Add(CoreOp::kConcatenate, {{d, {501, 400}}, {d, {300, 400}}}).Set("dimension", int64_t{0});
  list->Add(CoreOp::kExtractDiag, {{d, {300, 7, 300, 9}}}).Set("axis_a", int64_t{0}).Set("axis_b", int64_t{2});
  list->Add(CoreOp::kEmbedDiag, {{d, {701, 3}}}).Set("axis_a", int64_t{0}).Set("axis_b", int64_t{2});
  list->Add(CoreOp::kTril, {{d, {700, 801}}});
  list->Add(CoreOp::kDynamicSlice, {{d, {901, 700}}, {DType::kI64, {2}}}).Set("slice_sizes", Ints{800, 611});
  list->Add(CoreOp::kDynamicUpdateSlice, {{d, {901, 700}}, {d, {800, 611}}, {DType::kI64, {2}}});
  list->Add(CoreOp::kPadToMatch, {{d, {701, 500}}, {d, {900, 800}}}).Set("dimension", int64_t{1});
  list->Add(CoreOp::kReverse, {{d, {701, 800}}}).Set("dimensions", Ints{0, 1});
}

void AddReductions(DType d, LargeCaseList* list) {
  const std::pair<Shape, Ints> shapes[] = {{{300001}, {0}},           {{2, 150001}, {1}},   {{150001, 2}, {0}},
                                           {{513, 1030}, {0}},        {{513, 1030}, {1}},   {{513, 1030}, {0, 1}},
                                           {{600, 3, 4, 50}, {0, 2}}, {{70, 50, 120}, {1}}, {{70, 50, 120}, {0, 2}}};
  for (int64_t kind = 1; kind <= 6; ++kind) {
    if (kind >= 5 && d != DType::kBool) continue;
    for (const auto& [shape, dimensions] : shapes) {
      list->Add(CoreOp::kReduce, {{d, shape}}).Set("kind", kind).Set("dimensions", dimensions);
    }
  }
}

void AddContractions(DType d, LargeCaseList* list) {
  struct Dot {
    Shape lhs, rhs;
    Ints lc, rc, lb, rb;
  };
  const Dot dots[] = {{{301, 280}, {280, 299}, {1}, {0}, {}, {}},
                      {{280, 301}, {299, 280}, {0}, {1}, {}, {}},
                      {{200001}, {200001}, {0}, {0}, {}, {}},
                      {{901, 700}, {700}, {1}, {0}, {}, {}},
                      {{700}, {700, 901}, {0}, {0}, {}, {}},
                      {{40, 9001}, {9001, 30}, {1}, {0}, {}, {}},
                      {{5001, 6}, {6, 7}, {1}, {0}, {}, {}},
                      {{3001}, {70}, {}, {}, {}, {}},
                      {{31, 40, 50}, {31, 50, 60}, {2}, {1}, {0}, {0}},
                      {{4, 3, 9001}, {3, 5, 9001}, {1}, {0}, {2}, {2}}};
  for (const Dot& dot : dots) {
    list->Add(CoreOp::kDotGeneral, {{d, dot.lhs}, {d, dot.rhs}})
        .Set("lhs_contracting_dimensions", dot.lc)
        .Set("rhs_contracting_dimensions", dot.rc)
        .Set("lhs_batching_dimensions", dot.lb)
        .Set("rhs_batching_dimensions", dot.rb);
  }
}

}  // namespace

std::vector<NodeCase> LargeCoreOpCases() {
  LargeCaseList list;
  for (const DType d : kAllDTypes) {
    AddMoves(d, &list);
    AddReductions(d, &list);
    AddContractions(d, &list);
    if (d == DType::kBool) continue;
    const TensorType type = ToTensorType({d, {701, 400}});
    list.Add(CoreOp::kIota, {}).Set("type", type).Set("dimension", int64_t{1});
  }
  // Streamed past the cache, where that is of 16 MiB or less.
  list.Add(CoreOp::kAdd, {{DType::kF64, {1100001}}, {DType::kF64, {1100001}}});
  return list.Take();
}

}  // namespace tensord
