#include "tests/testlib/property/reference_bounds.h"

#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "engine/base/status_macros.h"
#include "engine/ops/scalar/scalar_math.h"
#include "engine/reference/evaluator.h"
#include "tests/testlib/property/element_radius.h"
#include "tests/testlib/property/node_radius.h"

namespace tensord::property {
namespace {

// An infinity as the first number past the largest finite one, so that "nearly overflows" and "overflows" are near.
long double Extended(DType dtype, double x) {
  if (!std::isinf(x)) return x;
  const long double next = static_cast<long double>(LargestOf(dtype)) + SpacingAt(dtype, LargestOf(dtype));
  return x > 0 ? next : -next;
}

bool PartIsWithin(DType dtype, double got, double want, double radius) {
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got);
  if (radius == 0) return got == want && std::signbit(got) == std::signbit(want);
  return std::abs(Extended(dtype, got) - Extended(dtype, want)) <= static_cast<long double>(radius);
}

template <typename T>
std::pair<double, double> PartsOf(T x) {
  if constexpr (ComplexElement<T>) {
    return {x.real(), x.imag()};
  } else {
    return {scalar::ConvertElement<double>(x), 0.0};
  }
}

}  // namespace

absl::StatusOr<std::vector<BoundedLiteral>> EvaluateBounded(const Graph& graph, absl::Span<const ShapeGuard> guards,
                                                            absl::Span<const Literal> arguments) {
  // The reference evaluator gives every value, where every value is an output.
  Graph all = graph;
  const size_t outputs = graph.outputs().size();
  for (int32_t i = 0; i < graph.num_values(); ++i) all.AddOutput("", {i});
  ASSIGN_OR_RETURN(std::vector<Literal> literals, EvaluateReference(all, guards, arguments));
  std::vector<BoundedLiteral> values;
  for (size_t i = outputs; i < literals.size(); ++i) values.push_back({.value = std::move(literals[i])});
  for (const Node& node : graph.nodes()) {
    std::vector<const BoundedLiteral*> operands;
    for (ValueId v : node.operands) operands.push_back(&values[static_cast<size_t>(v.index)]);
    BoundedLiteral& result = values[static_cast<size_t>(node.first_result.index)];
    ASSIGN_OR_RETURN(result.radius, NodeRadius(node, operands, result.value));
  }
  std::vector<BoundedLiteral> results;
  for (const GraphOutput& output : graph.outputs()) results.push_back(values[static_cast<size_t>(output.value.index)]);
  return results;
}

std::string DifferenceFrom(const Literal& got, const BoundedLiteral& want) {
  if (!(got.type() == want.value.type())) {
    return absl::StrCat("type ", ToString(got.type()), ", want ", ToString(want.value.type()));
  }
  return VisitDType(got.dtype(), [&]<typename T>(TypeTag<T>) -> std::string {
    const auto g = got.values<T>(), w = want.value.values<T>();
    for (size_t i = 0; i < w.size(); ++i) {
      const double radius = want.radius_at(i);
      if (std::isinf(radius) || std::memcmp(&g[i], &w[i], sizeof(T)) == 0) continue;
      if constexpr (std::is_same_v<T, Bool> || IntegerElement<T>) {
        return absl::StrCat("element ", i, " is ", scalar::ConvertElement<int64_t>(g[i]), ", want ",
                            scalar::ConvertElement<int64_t>(w[i]));
      } else {
        const auto [gr, gi] = PartsOf(g[i]);
        const auto [wr, wi] = PartsOf(w[i]);
        if (PartIsWithin(got.dtype(), gr, wr, radius) && PartIsWithin(got.dtype(), gi, wi, radius)) continue;
        return absl::StrFormat("element %d is (%.17g, %.17g), want (%.17g, %.17g) within %.3g", i, gr, gi, wr, wi,
                               radius);
      }
    }
    return "";
  });
}

double SpacingAt(DType dtype, double x) {
  const int digits = SignificandBits(dtype);
  const int least = dtype == DType::kF16 ? -24 : dtype == DType::kBF16 ? -133 : digits == 24 ? -149 : -1074;
  if (x == 0 || std::isnan(x)) return std::ldexp(1.0, least);
  const double size = std::min(std::abs(x), LargestOf(dtype));
  return std::ldexp(1.0, std::max(std::ilogb(size) - digits + 1, least));
}

}  // namespace tensord::property
