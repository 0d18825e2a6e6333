#include "engine/families/fft/fft_derivative.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "engine/families/fft/fft_ops.h"
#include "engine/families/fft/fft_steps.h"
#include "engine/ir/derivative.h"
#include "engine/ops/derivatives/terms.h"

namespace tensord {
namespace {

// One step of a transform, with symbolic sizes along its axis.
struct AdjointStep {
  size_t axis = 0;
  FftKind kind = FftKind::kUnspecified;
  Dim read;         // the operand's size
  DimExpr length;   // of the transform
  DimExpr written;  // the result's size
};

absl::StatusOr<DimExpr> HalfOf(const DimExpr& length) {
  absl::StatusOr<DimExpr> half = DimExpr::FloorDivide(length, DimExpr(2));
  return half.ok() ? DimExpr::Add(*half, DimExpr(1)) : half;
}

absl::StatusOr<DimExpr> LengthFromBins(const DimExpr& bins) {
  absl::StatusOr<DimExpr> less = DimExpr::Subtract(bins, DimExpr(1));
  return less.ok() ? DimExpr::Multiply(*less, DimExpr(2)) : less;
}

// Writes the adjoint of a node's steps.
class FftAdjoint {
 public:
  explicit FftAdjoint(TransposeCall& call) : call_(call), e_(call.graph) {
    switch (static_cast<FftNorm>(call.attrs.Int("norm"))) {
      case FftNorm::kBackward:
        norm_ = FftNorm::kForward;
        break;
      case FftNorm::kForward:
        norm_ = FftNorm::kBackward;
        break;
      case FftNorm::kOrtho:
        norm_ = FftNorm::kOrtho;
        break;
    }
  }

  ValueId Run() {
    shape_ = call_.operand_types[0]->shape;
    std::vector<AdjointStep> steps;
    if (!FindSteps(&steps)) return {};
    ValueId ct = call_.cotangents[0];
    for (size_t i = steps.size(); i-- > 0;) ct = Undo(steps[i], ct);
    return e_.Convert(ct, call_.operand_types[0]->dtype);
  }

 private:
  // Leaves shape_ as the result's. As in FftSteps, lengths come from the operand's shape, not from the step before.
  bool FindSteps(std::vector<AdjointStep>* steps) {
    const SymbolicShape operand = shape_;
    const FftKind kind = static_cast<FftKind>(call_.attrs.Int("kind"));
    const std::vector<int64_t>&axes = call_.attrs.Ints("axes"), &lengths = call_.attrs.Ints("lengths");
    for (size_t i : FftOrder(kind, axes.size())) {
      const bool is_last = i + 1 == axes.size();
      AdjointStep step{.axis = static_cast<size_t>(axes[i]), .kind = kind, .read = {}, .length = {}, .written = {}};
      if (kind == FftKind::kRfft && !is_last) step.kind = FftKind::kFft;
      if (kind == FftKind::kIrfft && !is_last) step.kind = FftKind::kIfft;
      step.read = shape_[step.axis];
      const DimExpr& size = operand[step.axis].size;
      absl::StatusOr<DimExpr> length = !lengths.empty()               ? DimExpr(lengths[i])
                                       : step.kind == FftKind::kIrfft ? LengthFromBins(size)
                                                                      : size;
      absl::StatusOr<DimExpr> written = length;
      if (length.ok() && step.kind == FftKind::kRfft) written = HalfOf(*length);
      if (!written.ok()) {
        call_.graph.Fail(written.status());
        return false;
      }
      step.length = *std::move(length);
      step.written = *std::move(written);
      shape_[step.axis] = Dim(step.written);
      steps->push_back(std::move(step));
    }
    return true;
  }

  ValueId Undo(const AdjointStep& step, ValueId ct) {
    if (step.kind == FftKind::kIrfft) {
      ct = Transformed(FftKind::kRfft, step, ct);
      if (!call_.graph.ok()) return {};
      const TensorType bins = call_.graph.type(ct);
      shape_[step.axis] = bins.shape[step.axis];
      ct = e_.Mul(ct, BinWeights(step, bins.dtype));
    } else if (step.kind == FftKind::kRfft) {
      // Bins that are not there are zero.
      ct = e_.Resized(ct, shape_, step.axis, Dim(step.length));
      ct = e_.Unary(CoreOp::kReal, Transformed(FftKind::kIfft, step, ct));
      shape_[step.axis] = Dim(step.length);
    } else {
      ct = Transformed(step.kind == FftKind::kFft ? FftKind::kIfft : FftKind::kFft, step, ct);
    }
    ct = e_.Resized(ct, shape_, step.axis, step.read);
    shape_[step.axis] = step.read;
    return ct;
  }

  ValueId Transformed(FftKind kind, const AdjointStep& step, ValueId ct) {
    Attributes attrs(call_.op.attrs);
    attrs.Set("kind", static_cast<int64_t>(kind));
    attrs.Set("axes", std::vector<int64_t>{static_cast<int64_t>(step.axis)});
    attrs.Set("norm", static_cast<int64_t>(norm_));
    return call_.graph.Add(call_.op, std::move(attrs), {ct});
  }

  // Each bin stands for itself and its conjugate, but for the first, and the middle one of an even length.
  ValueId BinWeights(const AdjointStep& step, DType dtype) {
    const TensorType bins{.dtype = DType::kI64, .shape = {shape_[step.axis]}};
    const ValueId bin = e_.Counting(bins.shape[0]);
    const ValueId length = e_.Broadcast(e_.SizeOf(step.length), bins.shape, {});
    const ValueId is_first = e_.Compare(CompareDirection::kEq, bin, e_.Zeros(bins));
    const ValueId is_middle = e_.Compare(CompareDirection::kEq, e_.Add(bin, bin), length);
    const TensorType weights{.dtype = dtype, .shape = bins.shape};
    const ValueId weight =
        e_.Select(e_.Binary(CoreOp::kOr, is_first, is_middle), e_.Full(1, weights), e_.Full(2, weights));
    return e_.Broadcast(weight, shape_, {static_cast<int64_t>(step.axis)});
  }

  TransposeCall& call_;
  Terms e_;
  FftNorm norm_ = FftNorm::kBackward;
  SymbolicShape shape_;  // of the cotangent on its way
};

}  // namespace

void JvpFft(JvpCall& call) { call.result_tangents[0] = call.graph.Add(call.op, call.attrs, {call.tangents[0]}); }

void TransposeFft(TransposeCall& call) { call.operand_cotangents[0] = FftAdjoint(call).Run(); }

}  // namespace tensord
