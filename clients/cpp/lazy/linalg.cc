#include "tensord/linalg.h"

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "clients/cpp/lazy/matrix_operation.h"
#include "clients/cpp/lazy/recorded_call.h"
#include "clients/cpp/lazy/refused_operation.h"
#include "tensord/elementwise.h"
#include "tensord/linalg/v1/linalg.pb.h"
#include "tensord/reduction.h"
#include "tensord/structural.h"
#include "tensord/v1/graph.pb.h"

namespace tensord::client {
namespace {

using Matrices = MatrixOperation::Matrices;

DType ComplexOf(DType dtype) { return dtype == DType::kF32 || dtype == DType::kC64 ? DType::kC64 : DType::kC128; }

Tensor Transposed(const Tensor& x) {
  if (!x.ok()) return x;
  std::vector<int64_t> permutation;
  for (int64_t axis = 0; axis < x.rank(); ++axis) permutation.push_back(axis);
  std::swap(permutation[permutation.size() - 1], permutation[permutation.size() - 2]);
  return Transpose(x, permutation);
}

// Records op(a, b) for matrices whose batch axes broadcast, or a vector b, which is one column.
template <typename Record>
Tensor OnColumns(absl::string_view name, const Tensor& a, const Tensor& b, Record record) {
  if (!a.ok()) return a;
  if (!b.ok()) return b;
  const bool is_vector = b.rank() == 1;
  const Tensor columns = is_vector ? ExpandDims(b, 1) : b;
  if (a.rank() < 2 || columns.rank() < 2) {
    return RefusedOperation(name, absl::StrCat("needs matrices, and matrices or one vector beside them: ",
                                               ShapeToString(a.shape()), " and ", ShapeToString(b.shape())));
  }
  absl::StatusOr<Shape> batch = BroadcastShapes(name, absl::MakeConstSpan(a.shape()).first(a.shape().size() - 2),
                                                absl::MakeConstSpan(columns.shape()).first(columns.shape().size() - 2));
  if (!batch.ok()) return Tensor::Failed(batch.status());
  const auto with_batch = [&](const Tensor& x) {
    Shape shape = *batch;
    shape.insert(shape.end(), x.shape().end() - 2, x.shape().end());
    return BroadcastLike(x, shape, {a, columns});
  };
  const Tensor x = record(with_batch(a), with_batch(columns));
  return is_vector ? Squeeze(x, -1) : x;
}

// Records a solution x[n,r] of a[m,n] x = b[m,r].
Tensor SolveWith(absl::string_view name, const Tensor& a, const Tensor& b, const google::protobuf::Message& message,
                 Matrices matrices) {
  return OnColumns(name, a, b, [&](const Tensor& left, const Tensor& right) {
    if (left.ok() && right.ok() &&
        !MayBeEqual(left.shape()[left.shape().size() - 2], right.shape()[right.shape().size() - 2])) {
      return RefusedOperation(name, absl::StrCat("the matrices have unlike rows: ", ShapeToString(a.shape()), " and ",
                                                 ShapeToString(b.shape())));
    }
    const MatrixOperation operation(name, {left, right}, matrices);
    const int64_t solutions = right.ok() ? right.shape().back() : 0;
    return operation.RunForOne(message, {operation.dtype(), {operation.columns(), solutions}});
  });
}

template <typename Message>
Message WithCutoff(std::optional<double> relative_cutoff) {
  Message message;
  if (relative_cutoff.has_value()) message.set_relative_cutoff(*relative_cutoff);
  return message;
}

}  // namespace

Tensor Solve(const TensorArg& a, const TensorArg& b) {
  const RecordedCall call("Solve", a.place());
  return SolveWith("Solve", a, b, linalg::v1::Solve(), Matrices::kSquare);
}

Tensor TriangularSolve(const TensorArg& a, const TensorArg& b, const TriangularOptions& options) {
  const RecordedCall call("TriangularSolve", a.place());
  linalg::v1::TriangularSolve message;
  message.set_left_side(true);
  message.set_lower(options.lower);
  message.set_unit_diagonal(options.unit_diagonal);
  message.set_transpose_a(static_cast<linalg::v1::TriangularSolve::TransposeA>(options.transpose));
  return SolveWith("TriangularSolve", a, b, message, Matrices::kSquare);
}

Tensor Lstsq(const TensorArg& a, const TensorArg& b, std::optional<double> relative_cutoff) {
  const RecordedCall call("Lstsq", a.place());
  return SolveWith("Lstsq", a, b, WithCutoff<linalg::v1::LeastSquares>(relative_cutoff), Matrices::kAny);
}

Tensor Inverse(const TensorArg& a) {
  const RecordedCall call("Inverse", a.place());
  const MatrixOperation operation("Inverse", {a}, Matrices::kSquare);
  return operation.RunForOne(linalg::v1::Inverse(), {operation.dtype(), {operation.rows(), operation.rows()}});
}

Tensor Pinv(const TensorArg& a, std::optional<double> relative_cutoff) {
  const RecordedCall call("Pinv", a.place());
  const MatrixOperation operation("Pinv", {a}, Matrices::kAny);
  return operation.RunForOne(WithCutoff<linalg::v1::PseudoInverse>(relative_cutoff),
                             {operation.dtype(), {operation.columns(), operation.rows()}});
}

Tensor Det(const TensorArg& a) {
  const RecordedCall call("Det", a.place());
  const MatrixOperation operation("Det", {a}, Matrices::kSquare);
  return operation.RunForOne(linalg::v1::Determinant(), {operation.dtype(), {}});
}

SlogDetResult SlogDet(const TensorArg& a) {
  const RecordedCall call("SlogDet", a.place());
  const MatrixOperation operation("SlogDet", {a}, Matrices::kSquare);
  const std::vector<Tensor> results =
      operation.Run(linalg::v1::SignLogDeterminant(), {{operation.dtype(), {}}, {RealPart(operation.dtype()), {}}});
  return {.sign = results[0], .logabs = results[1]};
}

Tensor Cholesky(const TensorArg& a) {
  const RecordedCall call("Cholesky", a.place());
  const MatrixOperation operation("Cholesky", {a}, Matrices::kSquare);
  return operation.RunForOne(linalg::v1::Cholesky(), {operation.dtype(), {operation.rows(), operation.rows()}});
}

LuResult Lu(const TensorArg& a) {
  const RecordedCall call("Lu", a.place());
  const MatrixOperation operation("Lu", {a}, Matrices::kAny);
  const DType dtype = operation.dtype();
  const int64_t m = operation.rows(), n = operation.columns(), k = operation.least();
  const std::vector<Tensor> results =
      operation.Run(linalg::v1::Lu(), {{dtype, {m, m}}, {dtype, {m, k}}, {dtype, {k, n}}, {dtype, {}}});
  // The wire's permutation is that of P A = L U.
  return {.p = Transposed(results[0]), .l = results[1], .u = results[2]};
}

QrResult Qr(const TensorArg& a, Factors factors) {
  const RecordedCall call("Qr", a.place());
  const MatrixOperation operation("Qr", {a}, Matrices::kAny);
  const bool is_full = factors == Factors::kFull;
  const int64_t inner = is_full ? operation.rows() : operation.least();
  linalg::v1::Qr message;
  message.set_full(is_full);
  const std::vector<Tensor> results = operation.Run(
      message, {{operation.dtype(), {operation.rows(), inner}}, {operation.dtype(), {inner, operation.columns()}}});
  return {.q = results[0], .r = results[1]};
}

SvdResult Svd(const TensorArg& a, Factors factors) {
  const RecordedCall call("Svd", a.place());
  const MatrixOperation operation("Svd", {a}, Matrices::kAny);
  const bool is_full = factors == Factors::kFull;
  const DType dtype = operation.dtype();
  const int64_t m = operation.rows(), n = operation.columns(), k = operation.least();
  linalg::v1::Svd message;
  message.set_full(is_full);
  const std::vector<Tensor> results =
      operation.Run(message, {{dtype, {m, is_full ? m : k}}, {RealPart(dtype), {k}}, {dtype, {is_full ? n : k, n}}});
  return {.u = results[0], .s = results[1], .vh = results[2]};
}

Tensor SvdValues(const TensorArg& a) {
  const RecordedCall call("SvdValues", a.place());
  const MatrixOperation operation("SvdValues", {a}, Matrices::kAny);
  return operation.RunForOne(linalg::v1::SvdValues(), {RealPart(operation.dtype()), {operation.least()}});
}

EigenResult Eigh(const TensorArg& a) {
  const RecordedCall call("Eigh", a.place());
  const MatrixOperation operation("Eigh", {a}, Matrices::kSquare);
  const int64_t n = operation.rows();
  const std::vector<Tensor> results =
      operation.Run(linalg::v1::Eigh(), {{RealPart(operation.dtype()), {n}}, {operation.dtype(), {n, n}}});
  return {.values = results[0], .vectors = results[1]};
}

Tensor EighValues(const TensorArg& a) {
  const RecordedCall call("EighValues", a.place());
  const MatrixOperation operation("EighValues", {a}, Matrices::kSquare);
  return operation.RunForOne(linalg::v1::EighValues(), {RealPart(operation.dtype()), {operation.rows()}});
}

EigenResult Eig(const TensorArg& a) {
  const RecordedCall call("Eig", a.place());
  const MatrixOperation operation("Eig", {a}, Matrices::kSquare);
  const int64_t n = operation.rows();
  const DType dtype = ComplexOf(operation.dtype());
  const std::vector<Tensor> results = operation.Run(linalg::v1::Eig(), {{dtype, {n}}, {dtype, {n, n}}});
  return {.values = results[0], .vectors = results[1]};
}

Tensor EigValues(const TensorArg& a) {
  const RecordedCall call("EigValues", a.place());
  const MatrixOperation operation("EigValues", {a}, Matrices::kSquare);
  return operation.RunForOne(linalg::v1::EigValues(), {ComplexOf(operation.dtype()), {operation.rows()}});
}

Tensor MatrixRank(const TensorArg& a, std::optional<double> relative_cutoff) {
  const RecordedCall call("MatrixRank", a.place());
  const MatrixOperation operation("MatrixRank", {a}, Matrices::kAny);
  return operation.RunForOne(WithCutoff<linalg::v1::MatrixRank>(relative_cutoff), {DType::kI64, {}});
}

Tensor Norm(const TensorArg& x) {
  const RecordedCall call("Norm", x.place());
  std::vector<int64_t> axes;
  for (int64_t axis = 0; axis < x.rank(); ++axis) axes.push_back(axis);
  return Norm(x, axes);
}

Tensor Norm(const TensorArg& x, const Axes& axes, bool keep_dims) {
  const RecordedCall call("Norm", x.place());
  if (x.ok() && !IsFloat(x.dtype()) && !IsComplex(x.dtype())) {
    return RefusedOperation(
        "Norm", absl::StrCat("needs a floating-point or complex tensor; convert it: ", DTypeName(x.dtype())));
  }
  const Tensor length = Abs(x);
  return Sqrt(Sum(length * length, axes, keep_dims));
}

}  // namespace tensord::client
