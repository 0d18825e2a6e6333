#include "tensord/fft.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "clients/cpp/lazy/recorded_call.h"
#include "clients/cpp/lazy/refused_operation.h"
#include "tensord/fft/v1/fft.pb.h"
#include "tensord/v1/graph.pb.h"

namespace tensord::client {
namespace {

using Kind = fft::v1::Fft::Kind;

DType DTypeOfResult(Kind kind, DType dtype) {
  if (kind == fft::v1::Fft::KIND_IRFFT) return RealPart(dtype);
  return dtype == DType::kF32 || dtype == DType::kC64 ? DType::kC64 : DType::kC128;
}

// Returns the size of an axis after a transform of `length` elements; `is_half` tells the last axis of Rfft and Irfft.
int64_t ResultSize(Kind kind, bool is_half, bool has_length, int64_t length) {
  if (!is_half) return length;
  if (kind == fft::v1::Fft::KIND_RFFT) return IsRunTimeSize(length) ? kRunTimeSize : length / 2 + 1;
  if (kind != fft::v1::Fft::KIND_IRFFT || has_length) return length;
  return IsRunTimeSize(length) ? kRunTimeSize : 2 * (length - 1);
}

absl::Status CheckDType(Kind kind, DType dtype) {
  const bool is_taken = dtype == DType::kF32 || dtype == DType::kF64 || IsComplex(dtype);
  if (!is_taken) {
    return absl::InvalidArgumentError(absl::StrCat("needs f32, f64, c64 or c128, convert it: ", DTypeName(dtype)));
  }
  if (kind != fft::v1::Fft::KIND_RFFT || !IsComplex(dtype)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("needs a real operand: ", DTypeName(dtype)));
}

Tensor Transform(absl::string_view name, Kind kind, const Tensor& x, const std::vector<int64_t>& axes,
                 const FftOptions& options) {
  if (!x.ok()) return x;
  const absl::Status dtype = CheckDType(kind, x.dtype());
  if (!dtype.ok()) return RefusedOperation(name, dtype.message());
  absl::StatusOr<std::vector<int64_t>> normalized = NormalizeAxes(name, axes, x.rank());
  if (!normalized.ok()) return Tensor::Failed(normalized.status());
  if (normalized->empty()) return RefusedOperation(name, "needs an axis, and the tensor has rank 0");
  const bool has_lengths = !options.lengths.empty();
  if (has_lengths && options.lengths.size() != axes.size()) {
    return RefusedOperation(name, absl::StrCat("needs one length for each axis: ", options.lengths.size(), " lengths, ",
                                               axes.size(), " axes"));
  }
  fft::v1::Fft message;
  message.set_kind(kind);
  message.set_norm(static_cast<fft::v1::Fft::Norm>(options.norm));
  Shape shape = x.shape();
  for (size_t i = 0; i < axes.size(); ++i) {
    int64_t& size = shape[static_cast<size_t>((*normalized)[i])];
    const int64_t length = has_lengths ? options.lengths[i] : size;
    if (has_lengths && IsRunTimeSize(length)) {
      return RefusedOperation(name,
                              absl::StrCat("a length is a number, and no size that is known only when the graph runs: ",
                                           ShapeToString(options.lengths)));
    }
    const int64_t result = ResultSize(kind, i + 1 == axes.size(), has_lengths, length);
    if (!IsRunTimeSize(result) && (length < 1 || result < 1)) {
      return RefusedOperation(name, absl::StrCat("an axis has no element to transform: length ", length, ", axis ",
                                                 (*normalized)[i], " of ", ShapeToString(x.shape())));
    }
    size = result;
    message.add_axes((*normalized)[i]);
    if (has_lengths) message.add_lengths(length);
  }
  v1::Node op;
  op.mutable_extension()->mutable_op()->PackFrom(message);
  return Tensor::FromOp(std::move(op), {x}, DTypeOfResult(kind, x.dtype()), std::move(shape));
}

std::vector<int64_t> AxesOr(const std::vector<int64_t>& axes, const Tensor& x) {
  if (!axes.empty()) return axes;
  std::vector<int64_t> all(x.shape().size());
  std::iota(all.begin(), all.end(), 0);
  return all;
}

// A constant of so many is 1 GiB, and a message takes less than 2.
constexpr int64_t kMostFrequencies = int64_t{1} << 27;

Tensor Frequencies(absl::string_view name, int64_t n, double spacing, int64_t count, int64_t first_negative) {
  if (n < 1 || !(spacing > 0)) {
    return RefusedOperation(name, absl::StrCat("needs samples, and a positive spacing: n ", n, ", spacing ", spacing));
  }
  if (count > kMostFrequencies) {
    return RefusedOperation(name,
                            absl::StrCat("has more than ", kMostFrequencies,
                                         " frequencies, which become a constant; compute them with Iota: ", count));
  }
  std::vector<double> values(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    const int64_t place = i < first_negative ? i : i - n;
    values[static_cast<size_t>(i)] = static_cast<double>(place) / (static_cast<double>(n) * spacing);
  }
  return Tensor::Constant(*HostTensor::FromVector(std::move(values), {count}));
}

}  // namespace

Tensor Fft(const TensorArg& x, int64_t axis, const FftOptions& options) {
  const RecordedCall call("Fft", x.place());
  return Transform("Fft", fft::v1::Fft::KIND_FFT, x, {axis}, options);
}
Tensor Ifft(const TensorArg& x, int64_t axis, const FftOptions& options) {
  const RecordedCall call("Ifft", x.place());
  return Transform("Ifft", fft::v1::Fft::KIND_IFFT, x, {axis}, options);
}
Tensor Rfft(const TensorArg& x, int64_t axis, const FftOptions& options) {
  const RecordedCall call("Rfft", x.place());
  return Transform("Rfft", fft::v1::Fft::KIND_RFFT, x, {axis}, options);
}
Tensor Irfft(const TensorArg& x, int64_t axis, const FftOptions& options) {
  const RecordedCall call("Irfft", x.place());
  return Transform("Irfft", fft::v1::Fft::KIND_IRFFT, x, {axis}, options);
}

Tensor Fftn(const TensorArg& x, const std::vector<int64_t>& axes, const FftOptions& options) {
  const RecordedCall call("Fftn", x.place());
  return Transform("Fftn", fft::v1::Fft::KIND_FFT, x, AxesOr(axes, x), options);
}
Tensor Ifftn(const TensorArg& x, const std::vector<int64_t>& axes, const FftOptions& options) {
  const RecordedCall call("Ifftn", x.place());
  return Transform("Ifftn", fft::v1::Fft::KIND_IFFT, x, AxesOr(axes, x), options);
}
Tensor Rfftn(const TensorArg& x, const std::vector<int64_t>& axes, const FftOptions& options) {
  const RecordedCall call("Rfftn", x.place());
  return Transform("Rfftn", fft::v1::Fft::KIND_RFFT, x, AxesOr(axes, x), options);
}
Tensor Irfftn(const TensorArg& x, const std::vector<int64_t>& axes, const FftOptions& options) {
  const RecordedCall call("Irfftn", x.place());
  return Transform("Irfftn", fft::v1::Fft::KIND_IRFFT, x, AxesOr(axes, x), options);
}

Tensor FftFreq(int64_t n, double spacing, const SourceLocation& place) {
  const RecordedCall call("FftFreq", place);
  return Frequencies("FftFreq", n, spacing, n, n - n / 2);
}
Tensor RfftFreq(int64_t n, double spacing, const SourceLocation& place) {
  const RecordedCall call("RfftFreq", place);
  return Frequencies("RfftFreq", n, spacing, n / 2 + 1, n / 2 + 1);
}

}  // namespace tensord::client
