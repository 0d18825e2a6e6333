#ifndef TENSORD_CLIENTS_CPP_LAZY_MATRIX_OPERATION_H_
#define TENSORD_CLIENTS_CPP_LAZY_MATRIX_OPERATION_H_

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"
#include "tensord/tensor.h"

namespace tensord::client {

// Operands of an operation of the family linalg: the client's matrices are the last two axes, the wire's the first two.
// A failed one gives failed results. A value; `name` is a literal.
class MatrixOperation {
 public:
  enum class Matrices { kAny, kSquare };

  // Checks dtypes, ranks and batch axes, which must be equal. `kSquare` is about the first operand.
  MatrixOperation(absl::string_view name, std::vector<Tensor> operands, Matrices matrices);

  // Sizes of the first operand's matrices, and their dtype; meaningless if an operand failed.
  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }
  int64_t least() const;
  DType dtype() const { return dtype_; }

  // Records the operation. Each result's type is that for one matrix; batch axes are added.
  std::vector<Tensor> Run(const google::protobuf::Message& message, const std::vector<ResultType>& results) const;
  Tensor RunForOne(const google::protobuf::Message& message, ResultType result) const;

 private:
  absl::Status Check(absl::string_view name, Matrices matrices);

  std::vector<Tensor> operands_;
  Shape batch_;
  int64_t rows_ = 0;
  int64_t columns_ = 0;
  DType dtype_ = DType::kF32;
};

}  // namespace tensord::client

#endif  // TENSORD_CLIENTS_CPP_LAZY_MATRIX_OPERATION_H_
