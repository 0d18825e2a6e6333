#include "engine/ops/affine_dot.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/checked_math.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/ops/axis_checks.h"
#include "engine/ops/contraction.h"
#include "engine/ops/engine_family.h"
#include "engine/ops/index_walk.h"
#include "engine/ops/scalar/dot_arithmetic.h"

namespace tensord {
namespace {

constexpr AttrDef kAttrs[] = {{.name = "sizes", .kind = AttrKind::kInts},
                              {.name = "num_summed", .kind = AttrKind::kInt},
                              {.name = "lhs_starts", .kind = AttrKind::kInts},
                              {.name = "lhs_steps", .kind = AttrKind::kInts},
                              {.name = "rhs_starts", .kind = AttrKind::kInts},
                              {.name = "rhs_steps", .kind = AttrKind::kInts},
                              {.name = "shape", .kind = AttrKind::kInts},
                              {.name = "result_dtype", .kind = AttrKind::kDType, .may_be_unset = true},
                              {.name = "lhs_conj", .kind = AttrKind::kInt},
                              {.name = "rhs_conj", .kind = AttrKind::kInt}};

size_t NumOfResult(const Attributes& attrs) {
  return attrs.Ints("sizes").size() - static_cast<size_t>(attrs.Int("num_summed"));
}

absl::Status CheckRead(const AffineRead& read, const std::vector<int64_t>& sizes, const TensorType& operand) {
  const int64_t rank = operand.rank();
  RETURN_IF_ERROR(CheckLength(read.starts.size(), rank, "starts"));
  RETURN_IF_ERROR(CheckLength(read.steps.size(), rank * static_cast<int64_t>(sizes.size()), "steps"));
  for (size_t axis = 0; axis < read.starts.size(); ++axis) {
    std::optional<int64_t> last = read.starts[axis];
    for (size_t i = 0; i < sizes.size() && last.has_value(); ++i) {
      const int64_t step = read.Step(i, axis);
      if (step < 0) return Refuse(Refusal::kAttributeInvalid, absl::StrCat("a step is negative: ", step));
      const std::optional<int64_t> way = CheckedMul(step, sizes[i] - 1);
      last = way.has_value() ? CheckedAdd(*last, *way) : std::nullopt;
    }
    if (!last.has_value()) return Refuse(Refusal::kShapeOverflow, "a place in an operand overflows 64 bits");
  }
  return absl::OkStatus();
}

bool Moves(const AffineRead& read, size_t index) {
  for (size_t axis = 0; axis < read.starts.size(); ++axis) {
    if (read.Step(index, axis) != 0) return true;
  }
  return false;
}

absl::StatusOr<ResultTypes> InferAffineDot(InferContext& context) {
  const TensorType &lhs = context.operand(0), &rhs = context.operand(1);
  const Attributes& attrs = context.attrs();
  const std::vector<int64_t>& sizes = attrs.Ints("sizes");
  const int64_t num_summed = attrs.Int("num_summed");
  RETURN_IF_ERROR(CheckSameDType(lhs, rhs, "lhs and rhs"));
  if (num_summed < 0 || num_summed > static_cast<int64_t>(sizes.size())) {
    return Refuse(Refusal::kAttributeInvalid, absl::StrCat("num_summed is ", num_summed, " of ", sizes.size()));
  }
  if (std::any_of(sizes.begin(), sizes.end(), [](int64_t size) { return size < 1; })) {
    return Refuse(Refusal::kAttributeInvalid, "a size is less than 1");
  }
  const AffineRead lhs_read = LhsReadOf(attrs), rhs_read = RhsReadOf(attrs);
  RETURN_IF_ERROR(CheckRead(lhs_read, sizes, lhs));
  RETURN_IF_ERROR(CheckRead(rhs_read, sizes, rhs));
  const size_t of_result = NumOfResult(attrs);
  for (size_t i = 0; i < sizes.size(); ++i) {
    const bool in_lhs = Moves(lhs_read, i), in_rhs = Moves(rhs_read, i);
    if (i < of_result ? in_lhs || in_rhs : in_lhs && in_rhs) continue;
    return Refuse(Refusal::kAttributeInvalid, absl::StrCat("index ", i, " does not move what it should"));
  }
  const std::vector<int64_t>& shape = attrs.Ints("shape");
  const std::optional<int64_t> elements = NumElements(absl::MakeConstSpan(sizes).first(of_result));
  if (!elements.has_value() || NumElements(shape) != elements) {
    return Refuse(Refusal::kShapeMismatch, "shape has another number of elements than the indices of the result");
  }
  ASSIGN_OR_RETURN(const DType dtype, DotResultDType(lhs.dtype, attrs.GetDType("result_dtype")));
  return ResultTypes{{.dtype = dtype, .shape = SymbolicShape(shape.begin(), shape.end())}};
}

// Returns the element that the indices name; 0 if there is none.
template <typename T>
T ElementAt(const AffineRead& read, const Shape& shape, absl::Span<const T> elements,
            absl::Span<const int64_t> indices) {
  int64_t offset = 0, stride = 1;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    int64_t place = read.starts[axis];
    for (size_t i = 0; i < indices.size(); ++i) place += read.Step(i, axis) * indices[i];
    if (place < 0 || place >= shape[axis]) return T();
    offset += place * stride;
    stride *= shape[axis];
  }
  return elements[static_cast<size_t>(offset)];
}

absl::Status ReferenceAffineDot(const ReferenceCall& call) {
  const Literal &lhs = *call.operands[0], &rhs = *call.operands[1];
  const std::vector<int64_t>& sizes = call.attrs.Ints("sizes");
  const AffineRead lhs_read = LhsReadOf(call.attrs), rhs_read = RhsReadOf(call.attrs);
  const bool conj_lhs = call.attrs.Int("lhs_conj") != 0, conj_rhs = call.attrs.Int("rhs_conj") != 0;
  const size_t of_result = NumOfResult(call.attrs);
  const absl::Span<const int64_t> all = sizes;
  Literal& out = call.results[0];
  VisitDType(lhs.dtype(), [&]<typename T>(TypeTag<T>) {
    VisitDType(out.dtype(), [&]<typename R>(TypeTag<R>) {
      using Accumulator = typename DotAccumulator<R>::type;
      const absl::Span<const T> a = lhs.values<T>(), b = rhs.values<T>();
      const auto results = out.mutable_values<R>();
      std::vector<int64_t> indices(sizes.size());
      for (IndexWalk i(all.first(of_result)); !i.done(); i.Next()) {
        std::copy(i.index().begin(), i.index().end(), indices.begin());
        Accumulator sum = scalar::ConvertElement<Accumulator>(int32_t{0});
        for (IndexWalk c(all.subspan(of_result)); !c.done(); c.Next()) {
          std::copy(c.index().begin(), c.index().end(), indices.begin() + static_cast<ptrdiff_t>(of_result));
          sum = AddProduct(sum, DotFactor<Accumulator>(ElementAt(lhs_read, lhs.shape(), a, indices), conj_lhs),
                           DotFactor<Accumulator>(ElementAt(rhs_read, rhs.shape(), b, indices), conj_rhs));
        }
        results[static_cast<size_t>(i.linear())] = RoundedSum<R>(sum);
      }
    });
  });
  return absl::OkStatus();
}

double AffineDotWork(const WorkCall& call) {
  double products = 1;
  for (const int64_t size : call.attrs.Ints("sizes")) products *= static_cast<double>(size);
  return 2 * products;
}

constexpr OpDef kAffineDot = {.family = kEngineFamily,
                              .index = 1,
                              .name = "affine_dot",
                              .summary = "A contraction that reads windows of its operands where they lie.",
                              .op_class = OpClass::kPlain,
                              .min_operands = 2,
                              .max_operands = 2,
                              .attrs = kAttrs,
                              .traits = kNoTraits,
                              .dtypes = kAnyDType,
                              .infer = &InferAffineDot,
                              .refusals = RefusalTable::None("a pass makes it of nodes that were accepted"),
                              .reference = &ReferenceAffineDot,
                              .permute = Facet<PermuteRule>::None("it is made when layouts are settled"),
                              .jvp = Facet<JvpRule>::None("a pass makes it, and no client has it"),
                              .linear_transpose = Facet<TransposeRule>::None("a pass makes it, and no client has it"),
                              .work = &AffineDotWork};

}  // namespace

const OpDef& AffineDotOp() { return kAffineDot; }

AffineRead LhsReadOf(const Attributes& attrs) { return {attrs.Ints("lhs_starts"), attrs.Ints("lhs_steps")}; }
AffineRead RhsReadOf(const Attributes& attrs) { return {attrs.Ints("rhs_starts"), attrs.Ints("rhs_steps")}; }

}  // namespace tensord
