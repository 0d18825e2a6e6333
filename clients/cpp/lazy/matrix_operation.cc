#include "clients/cpp/lazy/matrix_operation.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tensord/structural.h"

namespace tensord::client {
namespace {

absl::Status Invalid(absl::string_view name, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(name, ": ", what));
}

bool IsLapackType(DType dtype) { return IsComplex(dtype) || dtype == DType::kF32 || dtype == DType::kF64; }

// Moves the last `count` axes to the front, or back where `is_result`.
Tensor MoveAxes(const Tensor& x, int64_t count, bool is_result) {
  if (!x.ok() || count == 0 || x.rank() == count) return x;
  std::vector<int64_t> permutation(x.shape().size());
  std::iota(permutation.begin(), permutation.end(), 0);
  std::rotate(permutation.begin(), is_result ? permutation.begin() + count : permutation.end() - count,
              permutation.end());
  return Transpose(x, permutation);
}

}  // namespace

MatrixOperation::MatrixOperation(absl::string_view name, std::vector<Tensor> operands, Matrices matrices)
    : operands_(std::move(operands)) {
  if (!std::all_of(operands_.begin(), operands_.end(), [](const Tensor& operand) { return operand.ok(); })) return;
  const absl::Status checked = Check(name, matrices);
  if (!checked.ok()) operands_.front() = Tensor::Failed(checked);
}

absl::Status MatrixOperation::Check(absl::string_view name, Matrices matrices) {
  const Tensor& first = operands_.front();
  dtype_ = first.dtype();
  for (const Tensor& operand : operands_) {
    if (!IsLapackType(operand.dtype())) {
      return Invalid(name, absl::StrCat("needs f32, f64, c64 or c128, convert it: ", DTypeName(operand.dtype()),
                                        ShapeToString(operand.shape())));
    }
    if (operand.dtype() != dtype_) {
      return Invalid(name, absl::StrCat("dtypes differ, and nothing is converted unasked: ", DTypeName(dtype_), " and ",
                                        DTypeName(operand.dtype())));
    }
    if (operand.rank() < 2) {
      return Invalid(name, absl::StrCat("needs matrices in the last two axes: ", ShapeToString(operand.shape())));
    }
  }
  rows_ = first.shape()[first.shape().size() - 2];
  columns_ = first.shape().back();
  batch_.assign(first.shape().begin(), first.shape().end() - 2);
  if (matrices == Matrices::kSquare && !MayBeEqual(rows_, columns_)) {
    return Invalid(name, absl::StrCat("needs square matrices: ", ShapeToString(first.shape())));
  }
  for (const Tensor& operand : operands_) {
    if (!std::equal(batch_.begin(), batch_.end(), operand.shape().begin(), operand.shape().end() - 2, MayBeEqual)) {
      return Invalid(name, absl::StrCat("batch axes differ: ", ShapeToString(first.shape()), " and ",
                                        ShapeToString(operand.shape())));
    }
  }
  return absl::OkStatus();
}

int64_t MatrixOperation::least() const {
  if (rows_ == columns_) return rows_;
  return IsRunTimeSize(rows_) || IsRunTimeSize(columns_) ? kRunTimeSize : std::min(rows_, columns_);
}

std::vector<Tensor> MatrixOperation::Run(const google::protobuf::Message& message,
                                         const std::vector<ResultType>& results) const {
  std::vector<Tensor> operands;
  for (const Tensor& operand : operands_) operands.push_back(MoveAxes(operand, 2, /*is_result=*/false));
  std::vector<ResultType> types = results;
  for (ResultType& type : types) type.shape.insert(type.shape.end(), batch_.begin(), batch_.end());
  v1::Node op;
  op.mutable_extension()->mutable_op()->PackFrom(message);
  std::vector<Tensor> tensors = Tensor::FromOp(std::move(op), operands, types);
  for (size_t i = 0; i < tensors.size(); ++i) {
    tensors[i] = MoveAxes(tensors[i], static_cast<int64_t>(results[i].shape.size()), /*is_result=*/true);
  }
  return tensors;
}

Tensor MatrixOperation::RunForOne(const google::protobuf::Message& message, ResultType result) const {
  return Run(message, {std::move(result)}).front();
}

}  // namespace tensord::client
