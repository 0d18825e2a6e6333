#include "engine/ops/contraction.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/ops/axis_checks.h"
#include "engine/ops/axis_order.h"
#include "engine/ops/index_walk.h"
#include "engine/ops/scalar/dot_arithmetic.h"
#include "engine/ops/semiring.h"

namespace tensord {
namespace {

// Returns the dtypes that a product of operands of a dtype may be accumulated in and returned as.
DTypeSet ResultDTypes(DType operand) {
  switch (operand) {
    case DType::kF16:
    case DType::kBF16:
      return {operand, DType::kF32, DType::kF64};
    case DType::kF32:
      return {DType::kF32, DType::kF64};
    case DType::kI32:
      return {DType::kI32, DType::kI64};
    case DType::kC64:
      return {DType::kC64, DType::kC128};
    default:
      return {operand};
  }
}

struct SideNames {
  absl::string_view side, contracting, batch;
};
constexpr SideNames kLhs = {"lhs", "lhs_contracting_dimensions", "lhs_batching_dimensions"};
constexpr SideNames kRhs = {"rhs", "rhs_contracting_dimensions", "rhs_batching_dimensions"};

// The contracted and batch axes of one operand.
absl::Status CheckRoles(const TensorType& operand, const std::vector<int64_t>& contracting,
                        const std::vector<int64_t>& batch, const SideNames& names) {
  RETURN_IF_ERROR(CheckAxes(contracting, operand.rank(), names.contracting));
  RETURN_IF_ERROR(CheckAxes(batch, operand.rank(), names.batch));
  for (int64_t axis : contracting) {
    if (std::find(batch.begin(), batch.end(), axis) != batch.end()) {
      return Refuse(Refusal::kAxisDuplicate,
                    absl::StrCat("axis ", axis, " of ", names.side, " is both contracted and batch"));
    }
  }
  return absl::OkStatus();
}

// Refuses a wider dtype in another algebra: the zero of one dtype is not that of another.
absl::Status CheckResult(Algebra algebra, DType operands, DType result) {
  if (algebra == Algebra::kStandard || result == operands) return absl::OkStatus();
  return Refuse(Refusal::kDtypeUnsupported,
                absl::StrCat("a product in the algebra ", kAlgebraNames[static_cast<size_t>(algebra)],
                             " has the operands' dtype, ", Name(operands), ", and result_dtype is ", Name(result),
                             "; leave it unset"));
}

// Computes the sum of products over `contracted` for one element of the result, whose operands begin at l and r.
template <typename Step>
void ForEachTerm(const Shape& contracted, absl::Span<const int64_t> lhs_axes, absl::Span<const int64_t> rhs_axes,
                 const Shape& lhs_strides, const Shape& rhs_strides, int64_t l, int64_t r, const Step& step) {
  for (IndexWalk c(contracted); !c.done(); c.Next()) {
    int64_t x = l, y = r;
    for (size_t n = 0; n < lhs_axes.size(); ++n) {
      x += c[n] * lhs_strides[static_cast<size_t>(lhs_axes[n])];
      y += c[n] * rhs_strides[static_cast<size_t>(rhs_axes[n])];
    }
    step(static_cast<size_t>(x), static_cast<size_t>(y));
  }
}

// Returns the one of two sizes that the result takes, if a guard makes them equal. The same for either order of the
// sides: a pass may swap them, and must not change the type.
const Dim& EitherOf(const Dim& a, const Dim& b) {
  if (a.extent != b.extent) return a.extent < b.extent ? a : b;
  if (a.size.is_constant() != b.size.is_constant()) return a.size.is_constant() ? a : b;
  return DimExpr::Compare(a.size, b.size) <= 0 ? a : b;
}

}  // namespace

absl::StatusOr<DType> DotResultDType(DType operand, DType wanted) {
  if (wanted == DType::kInvalid || wanted == operand) return operand;
  RETURN_IF_ERROR(CheckDType(wanted, ResultDTypes(operand), absl::StrCat("the product of ", Name(operand))));
  return wanted;
}

std::vector<int64_t> FreeAxes(int64_t rank, absl::Span<const int64_t> contracting, absl::Span<const int64_t> batch) {
  std::vector<int64_t> free;
  for (int64_t axis = 0; axis < rank; ++axis) {
    if (std::find(contracting.begin(), contracting.end(), axis) == contracting.end() &&
        std::find(batch.begin(), batch.end(), axis) == batch.end()) {
      free.push_back(axis);
    }
  }
  return free;
}

absl::StatusOr<ResultTypes> InferDotGeneral(InferContext& context) {
  const TensorType &lhs = context.operand(0), &rhs = context.operand(1);
  const Attributes& attrs = context.attrs();
  const auto &lc = attrs.Ints("lhs_contracting_dimensions"), &rc = attrs.Ints("rhs_contracting_dimensions"),
             &lb = attrs.Ints("lhs_batching_dimensions"), &rb = attrs.Ints("rhs_batching_dimensions");
  RETURN_IF_ERROR(CheckSameDType(lhs, rhs, "lhs and rhs"));
  for (absl::string_view flag : {"lhs_conj", "rhs_conj"}) {
    if (attrs.Int(flag) != 0 && attrs.Int(flag) != 1) {
      return Refuse(Refusal::kAttributeInvalid, absl::StrCat(flag, " must be 0 or 1, and is ", attrs.Int(flag)));
    }
  }
  RETURN_IF_ERROR(CheckRoles(lhs, lc, lb, kLhs));
  RETURN_IF_ERROR(CheckRoles(rhs, rc, rb, kRhs));
  if (lc.size() != rc.size() || lb.size() != rb.size()) {
    return Refuse(Refusal::kAttributeInvalid,
                  absl::StrCat("lhs and rhs must name as many contracted and as many batch axes, and name ", lc.size(),
                               " and ", rc.size(), " contracted, ", lb.size(), " and ", rb.size(), " batch"));
  }
  const auto require_pairs = [&](const std::vector<int64_t>& l, const std::vector<int64_t>& r,
                                 absl::string_view role) -> absl::Status {
    for (size_t i = 0; i < l.size(); ++i) {
      const Dim &left = lhs.shape[static_cast<size_t>(l[i])], &right = rhs.shape[static_cast<size_t>(r[i])];
      if (left == right) continue;  // before the text, which costs more
      RETURN_IF_ERROR(context.RequireEqual(
          left, right, absl::StrCat("sizes of the ", role, " axes ", l[i], " of lhs and ", r[i], " of rhs differ")));
    }
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(require_pairs(lc, rc, "contracted"));
  RETURN_IF_ERROR(require_pairs(lb, rb, "batch"));
  ASSIGN_OR_RETURN(const DType dtype, DotResultDType(lhs.dtype, attrs.GetDType("result_dtype")));
  RETURN_IF_ERROR(CheckElements(AlgebraOf(attrs), lhs.dtype));
  RETURN_IF_ERROR(CheckResult(AlgebraOf(attrs), lhs.dtype, dtype));
  TensorType result{.dtype = dtype};
  for (int64_t axis : FreeAxes(lhs.rank(), lc, lb)) result.shape.push_back(lhs.shape[static_cast<size_t>(axis)]);
  for (int64_t axis : FreeAxes(rhs.rank(), rc, rb)) result.shape.push_back(rhs.shape[static_cast<size_t>(axis)]);
  for (size_t i = 0; i < lb.size(); ++i) {
    result.shape.push_back(EitherOf(lhs.shape[static_cast<size_t>(lb[i])], rhs.shape[static_cast<size_t>(rb[i])]));
  }
  const auto& permutation = attrs.Ints("result_permutation");
  if (!permutation.empty()) {
    RETURN_IF_ERROR(CheckEngineAxes(permutation, result.rank(), result.rank(), "result_permutation"));
    SymbolicShape natural = std::move(result.shape);
    result.shape.clear();
    for (int64_t axis : permutation) result.shape.push_back(natural[static_cast<size_t>(axis)]);
  }
  return ResultTypes{std::move(result)};
}

absl::Status ReferenceDotGeneral(const ReferenceCall& call) {
  const Literal &lhs = *call.operands[0], &rhs = *call.operands[1];
  const auto &lc = call.attrs.Ints("lhs_contracting_dimensions"), &rc = call.attrs.Ints("rhs_contracting_dimensions"),
             &lb = call.attrs.Ints("lhs_batching_dimensions"), &rb = call.attrs.Ints("rhs_batching_dimensions");
  const std::vector<int64_t> lf = FreeAxes(lhs.type().rank(), lc, lb), rf = FreeAxes(rhs.type().rank(), rc, rb);
  const Shape ls = ColumnMajorStrides(lhs.shape()), rs = ColumnMajorStrides(rhs.shape());
  Shape contracted;
  for (int64_t axis : lc) contracted.push_back(lhs.shape()[static_cast<size_t>(axis)]);
  Literal& out = call.results[0];
  // The place of each axis of the product in the result.
  const auto& permutation = call.attrs.Ints("result_permutation");
  const AxisOrder place = permutation.empty() ? IdentityOrder(out.type().rank()) : Inverse(permutation);

  // Calls `sum_at(l, r)` for each element of the result; its sum begins at these elements of the operands.
  const auto for_each_result = [&](auto results, const auto& sum_at) {
    for (IndexWalk i(out.shape()); !i.done(); i.Next()) {
      int64_t l = 0, r = 0;
      size_t k = 0;
      const auto next = [&] { return i[static_cast<size_t>(place[k++])]; };
      for (int64_t axis : lf) l += next() * ls[static_cast<size_t>(axis)];
      for (int64_t axis : rf) r += next() * rs[static_cast<size_t>(axis)];
      for (size_t n = 0; n < lb.size(); ++n) {
        const int64_t index = next();
        l += index * ls[static_cast<size_t>(lb[n])];
        r += index * rs[static_cast<size_t>(rb[n])];
      }
      results[static_cast<size_t>(i.linear())] = sum_at(l, r);
    }
  };
  const bool conj_lhs = call.attrs.Int("lhs_conj") != 0, conj_rhs = call.attrs.Int("rhs_conj") != 0;
  const Algebra algebra = AlgebraOf(call.attrs);
  VisitDType(lhs.dtype(), [&]<typename T>(TypeTag<T>) {
    const auto a = lhs.values<T>(), b = rhs.values<T>();
    if (algebra != Algebra::kStandard) {
      for_each_result(out.mutable_values<T>(), [&](int64_t l, int64_t r) {
        T sum = SemiringZero<T>(algebra);
        ForEachTerm(contracted, lc, rc, ls, rs, l, r, [&](size_t x, size_t y) {
          sum = SemiringAdd(algebra, sum, SemiringMultiply(algebra, a[x], b[y]));
        });
        return sum;
      });
      return;
    }
    VisitDType(out.dtype(), [&]<typename R>(TypeTag<R>) {
      using Accumulator = typename DotAccumulator<R>::type;
      for_each_result(out.mutable_values<R>(), [&](int64_t l, int64_t r) {
        Accumulator sum = scalar::ConvertElement<Accumulator>(int32_t{0});
        ForEachTerm(contracted, lc, rc, ls, rs, l, r, [&](size_t x, size_t y) {
          sum = AddProduct(sum, DotFactor<Accumulator>(a[x], conj_lhs), DotFactor<Accumulator>(b[y], conj_rhs));
        });
        return RoundedSum<R>(sum);
      });
    });
  });
  return absl::OkStatus();
}

double DotGeneralWork(const WorkCall& call) {
  double products = 1;
  for (const int64_t size : call.results[0].shape) products *= static_cast<double>(size);
  for (const int64_t axis : call.attrs.Ints("lhs_contracting_dimensions")) {
    products *= static_cast<double>(call.operands[0].shape[static_cast<size_t>(axis)]);
  }
  return 2 * products;
}

PermutedCall PermuteDotGeneral(const PermuteContext& context) {
  const Attributes& attrs = context.attrs;
  // With reversed axes the sides swap, so that the result comes out reversed as well.
  const bool swap = context.reversed_is_natural;
  struct Side {
    AxisOrder order;
    std::vector<int64_t> contracting, batch, free;  // axes as stored
  };
  const auto side = [&](size_t operand, absl::string_view contracting, absl::string_view batch) {
    const AxisOrder& order = context.orders[operand];
    const std::vector<int64_t> free =
        FreeAxes(context.operands[operand]->rank(), attrs.Ints(contracting), attrs.Ints(batch));
    return Side{order, MapAxes(attrs.Ints(contracting), order), MapAxes(attrs.Ints(batch), order),
                MapAxes(free, order)};
  };
  Side lhs = side(0, "lhs_contracting_dimensions", "lhs_batching_dimensions");
  Side rhs = side(1, "rhs_contracting_dimensions", "rhs_batching_dimensions");
  const int64_t lf = static_cast<int64_t>(lhs.free.size()), rf = static_cast<int64_t>(rhs.free.size());
  const int64_t batch = static_cast<int64_t>(lhs.batch.size());

  PermutedCall call{.attrs = attrs};
  // The new place of each free axis among its stored side, in the order of the old result.
  const auto append_free = [&call](const std::vector<int64_t>& free, int64_t offset) {
    for (int64_t axis : free) {
      const auto before = std::count_if(free.begin(), free.end(), [axis](int64_t a) { return a < axis; });
      call.result_order.push_back(offset + before);
    }
  };
  append_free(lhs.free, swap ? rf : 0);
  append_free(rhs.free, swap ? 0 : lf);
  for (int64_t i = 0; i < batch; ++i) call.result_order.push_back(lf + rf + (swap ? batch - 1 - i : i));
  if (swap) {
    std::reverse(lhs.batch.begin(), lhs.batch.end());
    std::reverse(rhs.batch.begin(), rhs.batch.end());
    std::swap(lhs, rhs);
    call.operand_index = {1, 0};
    call.attrs.Set("lhs_conj", attrs.Int("rhs_conj")).Set("rhs_conj", attrs.Int("lhs_conj"));
  }
  if (const auto& permutation = attrs.Ints("result_permutation"); !permutation.empty()) {
    call.result_order = Compose(call.result_order, permutation);
    call.attrs.Set("result_permutation", std::vector<int64_t>());
  }
  call.operand_orders = {context.orders[0], context.orders[1]};
  call.attrs.Set("lhs_contracting_dimensions", std::move(lhs.contracting));
  call.attrs.Set("rhs_contracting_dimensions", std::move(rhs.contracting));
  call.attrs.Set("lhs_batching_dimensions", std::move(lhs.batch));
  call.attrs.Set("rhs_batching_dimensions", std::move(rhs.batch));
  return call;
}

}  // namespace tensord
