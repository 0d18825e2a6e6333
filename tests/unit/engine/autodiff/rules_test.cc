#include <string>

#include "absl/strings/str_cat.h"
#include "engine/ops/core_ops.h"
#include "gtest/gtest.h"
#include "tests/unit/engine/autodiff/rule_case.h"

namespace tensord {
namespace {

TEST(DerivativeRules, AreThoseOfElementwiseFunctions) {
  for (const char* op : {"negate", "conj",  "abs",      "exp",   "log",  "sin",   "cos",  "tanh", "sqrt", "rsqrt",
                         "expm1",  "log1p", "logistic", "real",  "imag", "tan",   "cbrt", "sinh", "cosh", "asin",
                         "acos",   "atan",  "asinh",    "atanh", "log2", "log10", "exp2", "sign"}) {
    const RuleCase c{op, "%x = input : T[4]", absl::StrCat("%y = ", op, "(%x)")};
    ExpectRightRule(c, "f64");
    ExpectRightRule(c, "c128");
  }
  for (const char* op : {"erf", "floor", "ceil", "round_nearest_even"}) {
    ExpectRightRule({op, "%x = input : T[4]", absl::StrCat("%y = ", op, "(%x)"), 0.55, 0.9}, "f64");
  }
  ExpectRightRule({"acosh", "%x = input : T[4]", "%y = acosh(%x)", 1.5, 3}, "f64");
  ExpectRightRule({"acosh", "%x = input : T[4]", "%y = acosh(%x)", -3, -1.5}, "c128");
}

// Returns how many nodes of the VJP are of an op.
int NodesOf(CoreOp op, const RuleCase& c) {
  const auto vjp = Differentiate(Parsed(c, "f64"), {.mode = DerivativeMode::kVjp, .wrt = {}, .keep_outputs = false});
  EXPECT_TRUE(vjp.ok()) << vjp.status();
  int count = 0;
  for (const Node& node : vjp->nodes()) count += Is(*node.op, op) ? 1 : 0;
  return count;
}

TEST(DerivativeRules, JoinTheCotangentsOfSlicesThatShareNothing) {
  const std::string x = "%x = input : T[6,5] ";
  const auto sliced = [](absl::string_view name, absl::string_view starts, absl::string_view limits) {
    return absl::StrCat("%", name, " = slice(%x) {start_indices = [", starts, "], limit_indices = [", limits, "]} ");
  };
  const auto sum = [](absl::string_view name, absl::string_view part) {
    return absl::StrCat("%", name, "s = sin(%", part, ") %", name, " = reduce(%", name,
                        "s) {kind = sum, dimensions = [0, 1]} ");
  };
  const std::string quarters = sliced("a", "0, 0", "2, 3") + sliced("b", "2, 0", "6, 3") + sliced("c", "2, 3", "6, 5") +
                               sum("u", "a") + sum("v", "b") + sum("w", "c") + "%uv = add(%u, %v) ";
  const RuleCase all{"three quarters", x, quarters + "%y = multiply(%uv, %w)"};
  const RuleCase two{"a slice that nobody asks for", x, quarters + "%y = add(%uv, %uv)"};
  const RuleCase whole{"slices and the whole", x, quarters + sum("t", "x") + "%m = multiply(%uv, %w) %y = add(%m, %t)"};
  for (const RuleCase& c : {all, two, whole}) {
    ExpectRightRule(c, "f64");
    ExpectRightRule(c, "c128");
    EXPECT_EQ(NodesOf(CoreOp::kPad, c), 0) << c.name;
    EXPECT_GT(NodesOf(CoreOp::kConcatenate, c), 0) << c.name;
  }
  // Slices that share elements, have strides, or wind around a middle that no cut sets apart, are padded.
  const RuleCase shared{"shared", x,
                        sliced("a", "0, 0", "4, 5") + sliced("b", "3, 0", "6, 5") + sum("u", "a") + sum("v", "b") +
                            "%y = multiply(%u, %v)"};
  const RuleCase strided{"strided", x,
                         R"(%a = slice(%x) {start_indices = [0, 0], limit_indices = [6, 5], strides = [2, 1]}
                            %b = slice(%x) {start_indices = [1, 0], limit_indices = [6, 5], strides = [2, 1]} )" +
                             sum("u", "a") + sum("v", "b") + "%y = multiply(%u, %v)"};
  const RuleCase winding{"winding", x,
                         sliced("a", "0, 0", "2, 4") + sliced("b", "0, 4", "5, 5") + sliced("c", "5, 1", "6, 5") +
                             sliced("d", "2, 0", "6, 1") + sum("u", "a") + sum("v", "b") + sum("w", "c") +
                             sum("t", "d") + "%uv = add(%u, %v) %wt = add(%w, %t) %y = multiply(%uv, %wt)"};
  for (const RuleCase& c : {shared, strided, winding}) {
    ExpectRightRule(c, "f64");
    EXPECT_GT(NodesOf(CoreOp::kPad, c), 0) << c.name;
    EXPECT_EQ(NodesOf(CoreOp::kConcatenate, c), 0) << c.name;
  }
}

TEST(DerivativeRules, AreThoseOfFunctionsOfTwoNumbers) {
  for (const char* op : {"add", "subtract", "multiply", "divide", "maximum", "minimum", "pow", "remainder", "atan2"}) {
    const RuleCase c{op, "%a = input : T[5] %b = input : T[5]", absl::StrCat("%y = ", op, "(%a, %b)")};
    ExpectRightRule(c, "f64");
    if (op != std::string("remainder") && op != std::string("atan2")) ExpectRightRule(c, "c128");
  }
  ExpectRightRule({"complex", "%a = input : T[5] %b = input : T[5]", "%z = complex(%a, %b) %y = multiply(%z, %z)"},
                  "f64");
  ExpectRightRule({"squared", "%a = input : T[5]", "%y = multiply(%a, %a)"}, "c128");
  ExpectRightRule({"one operand", "%a = input : T[5]", "%e = exp(%a) %y = divide(%a, %e)"}, "c128");
}

TEST(DerivativeRules, AreThoseOfSelections) {
  const std::string ab = "%a = input : T[6] %b = input : T[6]";
  ExpectRightRule({"select", ab, "%p = compare(%a, %b) {direction = lt} %e = exp(%a) %y = select(%p, %e, %b)"}, "f64");
  ExpectRightRule({"clamp", ab + " %c = input : T[6]", "%y = clamp(%a, %b, %c)"}, "f64");
  ExpectRightRule({"clamp by numbers", "%a = input : T[] %b = input : T[6] %c = input : T[]", "%y = clamp(%a, %b, %c)"},
                  "f64");
  ExpectRightRule({"convert", "%a = input : f64[4] %b = input : c128[4]",
                   "%z = convert(%a) {dtype = c128} %w = multiply(%z, %b) %y = convert(%w) {dtype = f64}"},
                  "f64");
}

TEST(DerivativeRules, AreThoseOfStructure) {
  const std::string x = "%x = input : T[2,3,2]";
  for (const char* dtype : {"f64", "c128"}) {
    for (const char* node :
         {"transpose(%s) {permutation = [2, 0, 1]}", "reshape(%s) {shape = [3, 4]}",
          "reshape(%s) {shape = [6, 2], order = row_major}",
          "broadcast_in_dim(%s) {shape = [3, 2, 4, 2], broadcast_dimensions = [1, 0, 3]}",
          "slice(%s) {start_indices = [0, 1, 0], limit_indices = [2, 3, 1], strides = [1, 2, 1]}",
          "slice(%s) {start_indices = [0, 0, 1], limit_indices = [2, 3, 2]}", "reverse(%s) {dimensions = [0, 1]}",
          "extract_diag(%s) {axis_a = 0, axis_b = 2}", "extract_diag(%s) {axis_a = 2, axis_b = 0}",
          "embed_diag(%s) {axis_a = 1, axis_b = 0}", "embed_diag(%s) {axis_a = 1, axis_b = 3}",
          "tril(%s) {diagonal = 0}", "triu(%s) {diagonal = 1}", "optimization_barrier(%s, %x, %s)",
          "concatenate(%s, %x, %s) {dimension = 1}"}) {
      ExpectRightRule({node, x, absl::StrCat("%s = sin(%x) %y = ", node)}, dtype);
    }
    ExpectRightRule({"repeated axis", "%x = input : T[1,3]",
                     "%y = broadcast_in_dim(%x) {shape = [3, 4, 2], broadcast_dimensions = [1, 0]}"},
                    dtype);
    for (const char* pad : {"edge_padding_low = [1, 2], edge_padding_high = [0, 1], interior_padding = [2, 0]",
                            "edge_padding_low = [-1, 2], edge_padding_high = [1, -1], interior_padding = [1, 1]",
                            "edge_padding_low = [-1, 0], edge_padding_high = [2, 0]"}) {
      ExpectRightRule(
          {pad, "%x = input : T[3,2] %v = input : T[]", absl::StrCat("%s = sin(%x) %y = pad(%s, %v) {", pad, "}")},
          dtype);
    }
  }
}

TEST(DerivativeRules, AreThoseOfReductions) {
  for (const char* kind : {"sum", "product", "max", "min"}) {
    for (const char* dimensions : {"[1]", "[0, 2]", "[]", "[2, 1, 0]"}) {
      const RuleCase c{absl::StrCat(kind, dimensions), "%x = input : T[2,5,3]",
                       absl::StrCat("%s = sin(%x) %y = reduce(%s) {kind = ", kind, ", dimensions = ", dimensions, "}")};
      ExpectRightRule(c, "f64");
      ExpectRightRule(c, "c128");
    }
  }
  ExpectRightRule({"nothing", "%x = input : T[2,0]", "%y = reduce(%x) {kind = product, dimensions = [1]}"}, "f64");
  ExpectRightRule({"product of zeros", "%x = input : T[6]",
                   "%f = floor(%x) %g = multiply(%f, %x) %y = reduce(%g) {kind = product, dimensions = [0]}"},
                  "f64");
}

TEST(DerivativeRules, AreThoseOfContractions) {
  for (const char* dtype : {"f64", "c128"}) {
    ExpectRightRule({"matrices", "%a = input : T[2,3] %b = input : T[3,4]",
                     "%y = dot_general(%a, %b) {lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]}"},
                    dtype);
    ExpectRightRule(
        {"two of each", "%a = input : T[2,3,4,5,6] %b = input : T[6,3,2,5]",
         "%y = dot_general(%a, %b) {lhs_contracting_dimensions = [1, 0], rhs_contracting_dimensions = [1, 2], "
         "lhs_batching_dimensions = [4, 3], rhs_batching_dimensions = [0, 3]}"},
        dtype);
    ExpectRightRule({"with itself", "%a = input : T[3,3]",
                     "%y = dot_general(%a, %a) {lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]}"},
                    dtype);
  }
}

TEST(DerivativeRules, AreThoseOfProductsInOtherAlgebras) {
  for (const char* algebra : {"max_plus", "min_plus", "max_times"}) {
    const std::string attrs = absl::StrCat(", algebra = ", algebra, "}");
    ExpectRightRule(
        {algebra, "%a = input : T[2,3] %b = input : T[3,4]",
         "%y = dot_general(%a, %b) {lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]" + attrs},
        "f64");
    ExpectRightRule({absl::StrCat(algebra, " of two of each"), "%a = input : T[2,3,2,2,4] %b = input : T[4,3,2,2]",
                     "%y = dot_general(%a, %b) {lhs_contracting_dimensions = [1, 0], rhs_contracting_dimensions = [1, "
                     "2], lhs_batching_dimensions = [4, 3], rhs_batching_dimensions = [0, 3]" +
                         attrs},
                    "f64");
    ExpectRightRule({absl::StrCat(algebra, " with itself, beside others"), "%a = input : T[n,n]",
                     "%e = exp(%a) %d = dot_general(%e, %e) {lhs_contracting_dimensions = [0], "
                     "rhs_contracting_dimensions = [1]" +
                         attrs + " %y = multiply(%d, %a)"},
                    "f64");
  }
}

TEST(DerivativeRules, AreThoseOfIndexing) {
  const std::string gather =
      "{offset_dims = [0], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 1, slice_sizes = [2, "
      "1]}";
  const std::string scatter =
      "{update_window_dims = [0], inserted_window_dims = [1], scatter_dims_to_operand_dims = [1], index_vector_dim = 1";
  const std::string indices = "%i = constant() {value = i32[4] [1, 7, 1, -2]}";
  for (const char* dtype : {"f64", "c128"}) {
    ExpectRightRule({"gather", "%x = input : T[3,4]", indices + "%s = sin(%x) %y = gather(%s, %i) " + gather}, dtype);
    for (const char* combiner : {"add", "set", "multiply", "minimum", "maximum"}) {
      ExpectRightRule(
          {combiner, "%x = input : T[3,4] %u = input : T[2,4]",
           absl::StrCat(indices, "%s = sin(%x) %y = scatter(%s, %i, %u) ", scatter, ", combiner = ", combiner, "}")},
          dtype);
    }
    const std::string at = "%i = constant() {value = i64[2] [5, 1]}";
    ExpectRightRule(
        {"dynamic_slice", "%x = input : T[3,4]", at + "%s = sin(%x) %y = dynamic_slice(%s, %i) {slice_sizes = [2, 2]}"},
        dtype);
    ExpectRightRule({"dynamic_update_slice", "%x = input : T[3,4] %u = input : T[2,2]",
                     at + "%s = sin(%x) %y = dynamic_update_slice(%s, %u, %i)"},
                    dtype);
    ExpectRightRule({"pad_to_match", "%x = input : T[3,4] %u = input : T[5,2]",
                     "%s = sin(%x) %y = pad_to_match(%s, %u) {dimension = 0}"},
                    dtype);
    ExpectRightRule({"dynamic_truncate", "%x = input : T[3,4]",
                     "%n = constant() {value = i64[] [2]} %s = sin(%x) %t = dynamic_truncate(%s, %n) {dimension = 1} "
                     "%m = multiply(%t, %t) %y = reduce(%m) {kind = sum, dimensions = [0, 1]}"},
                    dtype);
  }
}

TEST(DerivativeRules, HoldForSymbolicSizes) {
  for (const char* dtype : {"f64", "c128"}) {
    const std::string x = "%x = input : T[n,2] %u = input : T[m,2]";
    for (const char* nodes :
         {"%y = slice(%s) {start_indices = [1, 0], limit_indices = [3, 2], strides = [2, 1]}",
          "%y = concatenate(%s, %u, %s) {dimension = 0}", "%y = reduce(%s) {kind = product, dimensions = [0]}",
          "%y = reduce(%s) {kind = max, dimensions = [0]}", "%y = reshape(%s) {shape = [2*n]}",
          "%y = broadcast_in_dim(%s) {shape = [m, n, 2], broadcast_dimensions = [1, 2]}",
          "%i = constant() {value = i32[2] [2, 0]} %y = gather(%s, %i) {offset_dims = [1], collapsed_slice_dims = [0], "
          "start_index_map = [0], index_vector_dim = 1, slice_sizes = [1, 2]}",
          "%i = constant() {value = i32[3] [2, 0, 2]} %y = scatter(%s, %i, %u) {update_window_dims = [1], "
          "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1, combiner = multiply}",
          "%y = dot_general(%s, %u) {lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]}"}) {
      ExpectRightRule({nodes, x, absl::StrCat("%s = sin(%x) ", nodes)}, dtype);
    }
  }
}

}  // namespace
}  // namespace tensord
