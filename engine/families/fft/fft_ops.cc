#include "engine/families/fft/fft_ops.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/families/fft/fft_derivative.h"
#include "engine/families/fft/fft_steps.h"
#include "engine/ops/axis_checks.h"
#include "engine/ops/axis_order.h"
#include "engine/ops/index_walk.h"

namespace tensord {
namespace {

constexpr int64_t kMaxAxes = kMaxRank;
constexpr DTypeSet kTransformed = {DType::kF32, DType::kF64, DType::kC64, DType::kC128};

DType RealOf(DType dtype) { return dtype == DType::kC64 ? DType::kF32 : dtype == DType::kC128 ? DType::kF64 : dtype; }

// Returns the length of the transform along axes[i], which is at least 1.
absl::StatusOr<Dim> LengthOf(InferContext& context, FftKind kind, size_t i) {
  const std::vector<int64_t>&axes = context.attrs().Ints("axes"), &lengths = context.attrs().Ints("lengths");
  if (!lengths.empty()) return Dim(lengths[i]);
  const Dim& size = context.operand(0).shape[static_cast<size_t>(axes[i])];
  if (kind == FftKind::kIrfft && i + 1 == axes.size()) {
    RETURN_IF_ERROR(context.RequireAtMost(
        Dim(2), size, absl::StrCat("irfft without lengths needs two bins at least along axis ", axes[i])));
    ASSIGN_OR_RETURN(const DimExpr bins, DimExpr::Subtract(size.size, DimExpr(1)));
    ASSIGN_OR_RETURN(DimExpr length, DimExpr::Multiply(bins, DimExpr(2)));
    return Dim(std::move(length));
  }
  RETURN_IF_ERROR(
      context.RequireAtMost(Dim(1), size, absl::StrCat("there is nothing to transform along axis ", axes[i])));
  return size;
}

absl::StatusOr<ResultTypes> InferFft(InferContext& context) {
  const TensorType& operand = context.operand(0);
  const FftKind kind = static_cast<FftKind>(context.attrs().Int("kind"));
  const std::vector<int64_t>&axes = context.attrs().Ints("axes"), &lengths = context.attrs().Ints("lengths");
  RETURN_IF_ERROR(CheckDType(operand.dtype, kTransformed, "the operand"));
  if (kind == FftKind::kRfft)
    RETURN_IF_ERROR(CheckDType(operand.dtype, {DType::kF32, DType::kF64}, "what rfft transforms"));
  if (static_cast<int64_t>(axes.size()) > kMaxAxes) {
    return Refuse(Refusal::kAttributeInvalid,
                  absl::StrCat("axes may have ", kMaxAxes, " entries, and has ", axes.size()));
  }
  if (axes.empty() && (kind == FftKind::kRfft || kind == FftKind::kIrfft)) {
    return Refuse(Refusal::kAttributeInvalid, "rfft and irfft need an axis, and axes is empty");
  }
  for (int64_t axis : axes) RETURN_IF_ERROR(CheckAxis(axis, operand.rank(), "axes"));
  if (!lengths.empty()) RETURN_IF_ERROR(CheckLength(lengths.size(), static_cast<int64_t>(axes.size()), "lengths"));
  for (int64_t length : lengths) {
    if (length < 1) {
      return Refuse(Refusal::kAttributeInvalid, absl::StrCat("lengths must be positive, and one is ", length));
    }
  }
  TensorType result = operand;
  result.dtype = kind == FftKind::kIrfft ? RealOf(operand.dtype) : ComplexOf(operand.dtype).value_or(operand.dtype);
  for (size_t i : FftOrder(kind, axes.size())) {
    ASSIGN_OR_RETURN(Dim length, LengthOf(context, kind, i));
    if (kind == FftKind::kRfft && i + 1 == axes.size()) {
      ASSIGN_OR_RETURN(const DimExpr half, DimExpr::FloorDivide(length.size, DimExpr(2)));
      ASSIGN_OR_RETURN(DimExpr bins, DimExpr::Add(half, DimExpr(1)));
      length = Dim(std::move(bins));
    }
    result.shape[static_cast<size_t>(axes[i])] = std::move(length);
  }
  return ResultTypes{std::move(result)};
}

// The reference computes with this whatever the dtype.
using Wide = std::complex<long double>;

struct WideTensor {
  Shape shape;
  std::vector<Wide> values;  // column-major
};

template <typename T>
std::vector<Wide> Widen(const Literal& literal) {
  std::vector<Wide> values;
  for (const T& value : literal.values<T>()) values.emplace_back(Wide(value));
  return values;
}

WideTensor ReadTensor(const Literal& literal) {
  switch (literal.dtype()) {
    case DType::kF32:
      return {literal.shape(), Widen<float>(literal)};
    case DType::kF64:
      return {literal.shape(), Widen<double>(literal)};
    case DType::kC64:
      return {literal.shape(), Widen<std::complex<float>>(literal)};
    default:
      return {literal.shape(), Widen<std::complex<double>>(literal)};
  }
}

template <typename T>
void Narrow(const std::vector<Wide>& values, Literal* into) {
  const absl::Span<T> to = into->mutable_values<T>();
  for (size_t i = 0; i < values.size(); ++i) {
    if constexpr (std::is_floating_point_v<T>) {
      to[i] = static_cast<T>(values[i].real());
    } else {
      using Real = typename T::value_type;
      to[i] = T(static_cast<Real>(values[i].real()), static_cast<Real>(values[i].imag()));
    }
  }
}

void WriteTensor(const WideTensor& tensor, Literal* into) {
  switch (into->dtype()) {
    case DType::kF32:
      return Narrow<float>(tensor.values, into);
    case DType::kF64:
      return Narrow<double>(tensor.values, into);
    case DType::kC64:
      return Narrow<std::complex<float>>(tensor.values, into);
    default:
      return Narrow<std::complex<double>>(tensor.values, into);
  }
}

// Returns the terms of the definition's sum: the line, cut or with zeros after it, and for IRFFT the bins that follow
// from the others.
std::vector<Wide> TermsOf(const std::vector<Wide>& line, const FftStep& step) {
  std::vector<Wide> terms(static_cast<size_t>(step.length));
  const size_t given = step.kind == FftKind::kIrfft ? terms.size() / 2 + 1 : terms.size();
  for (size_t k = 0; k < std::min(given, line.size()); ++k) terms[k] = line[k];
  if (step.kind != FftKind::kIrfft) return terms;
  terms[0] = terms[0].real();
  if (terms.size() % 2 == 0) terms[terms.size() / 2] = terms[terms.size() / 2].real();
  for (size_t k = given; k < terms.size(); ++k) terms[k] = std::conj(terms[terms.size() - k]);
  return terms;
}

WideTensor Apply(const FftStep& step, long double scale, const WideTensor& in) {
  const size_t axis = static_cast<size_t>(step.axis), n = static_cast<size_t>(step.length);
  std::vector<Wide> roots(n);
  for (size_t k = 0; k < n; ++k) {
    const long double turn = 2 * std::acos(-1.0L) * static_cast<long double>(k) / static_cast<long double>(n);
    roots[k] = Wide(std::cos(turn), step.forward() ? -std::sin(turn) : std::sin(turn));
  }
  WideTensor out{.shape = in.shape, .values = {}};
  out.shape[axis] = step.result_size();
  out.values.resize(static_cast<size_t>(NumElements(out.shape).value_or(0)));
  const Shape in_strides = ColumnMajorStrides(in.shape), out_strides = ColumnMajorStrides(out.shape);
  Shape starts = in.shape;
  starts[axis] = 1;
  for (IndexWalk i(starts); !i.done(); i.Next()) {
    int64_t from = 0, into = 0;
    for (size_t a = 0; a < starts.size(); ++a) {
      from += i[a] * in_strides[a];
      into += i[a] * out_strides[a];
    }
    std::vector<Wide> line;
    for (int64_t k = 0; k < in.shape[axis]; ++k)
      line.push_back(in.values[static_cast<size_t>(from + k * in_strides[axis])]);
    const std::vector<Wide> terms = TermsOf(line, step);
    for (size_t k = 0; k < static_cast<size_t>(out.shape[axis]); ++k) {
      Wide sum = 0;
      for (size_t j = 0; j < n; ++j) sum += terms[j] * roots[j * k % n];
      out.values[static_cast<size_t>(into + static_cast<int64_t>(k) * out_strides[axis])] = sum * scale;
    }
  }
  return out;
}

absl::Status ReferenceFft(const ReferenceCall& call) {
  WideTensor tensor = ReadTensor(*call.operands[0]);
  for (const FftStep& step : FftSteps(call.attrs, call.operands[0]->shape())) {
    tensor = Apply(step, FftScale(call.attrs, step), tensor);
  }
  WriteTensor(tensor, &call.results[0]);
  return absl::OkStatus();
}

PermutedCall PermuteFft(const PermuteContext& context) {
  const AxisOrder& order = context.orders[0];
  PermutedCall call{.attrs = context.attrs, .operand_orders = {order}, .result_order = order};
  call.attrs.Set("axes", MapAxes(context.attrs.Ints("axes"), order));
  return call;
}

constexpr absl::string_view kKinds[] = {"unspecified", "fft", "ifft", "rfft", "irfft"};
constexpr absl::string_view kNorms[] = {"backward", "ortho", "forward"};
constexpr AttrDef kAttrs[] = {{.name = "kind", .kind = AttrKind::kEnum, .enumerators = kKinds},
                              {.name = "axes", .kind = AttrKind::kInts},
                              {.name = "lengths", .kind = AttrKind::kInts},
                              {.name = "norm", .kind = AttrKind::kEnum, .enumerators = kNorms, .may_be_unset = true}};

constexpr RefusalRule kRefusals[] = {
    {Refusal::kDtypeUnsupported, "rfft of complex numbers"},
    {Refusal::kAttributeInvalid, "axes has more than 64 entries"},
    {Refusal::kAttributeInvalid, "axes is empty, and the kind is rfft or irfft"},
    {Refusal::kAxisOutOfRange, "axes names an axis that the operand lacks"},
    {Refusal::kAttributeInvalid, "lengths has neither one entry an axis nor none"},
    {Refusal::kAttributeInvalid, "a length is not positive"},
    {Refusal::kShapeMismatch, "an axis without elements is transformed, and there are no lengths"},
    {Refusal::kShapeMismatch, "irfft of less than two bins, and there are no lengths"}};

// n·log n along each axis.
double FftWork(const WorkCall& call) {
  double elements = 1, levels = 0;
  const Shape &from = call.operands[0].shape, &to = call.results[0].shape;
  for (size_t axis = 0; axis < to.size(); ++axis) elements *= static_cast<double>(std::max(from[axis], to[axis]));
  for (const int64_t axis : call.attrs.Ints("axes")) {
    levels += std::log2(static_cast<double>(2 + to[static_cast<size_t>(axis)]));
  }
  return 3 * elements * std::max(levels, 1.0);
}

constexpr OpDef kOps[] = {
    {.family = "fft",
     .index = 0,
     .name = "tensord.fft.v1.Fft",
     .summary =
         "Discrete Fourier transforms along axes, one after the other, with NumPy's conventions: the last of the "
         "axes first, but for irfft last.",
     .op_class = OpClass::kExtension,
     .min_operands = 1,
     .max_operands = 1,
     .attrs = kAttrs,
     .traits = kJoinsSessions,
     .dtypes = kTransformed,
     .infer = &InferFft,
     .refusals = kRefusals,
     .reference = &ReferenceFft,
     .permute = &PermuteFft,
     .jvp = &JvpFft,
     .linear_transpose = &TransposeFft,
     .work = &FftWork}};

}  // namespace

absl::Span<const OpDef> FftOps() { return kOps; }

}  // namespace tensord
