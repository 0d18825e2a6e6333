#include "proto/codec/tensor_codec.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "proto/codec/known_fields.h"
#include "proto/codec/reverse_order.h"
#include "proto/codec/type_codec.h"

namespace tensord::codec {

absl::StatusOr<TensorHeader> DecodeTensorHeader(v1::DType dtype, absl::Span<const int64_t> shape, v1::MemoryOrder order,
                                                Order default_order, const GraphLimits& limits) {
  TensorHeader header;
  ASSIGN_OR_RETURN(header.type.dtype, DecodeDType(dtype));
  ASSIGN_OR_RETURN(header.order, DecodeOrder(order, default_order));
  RETURN_IF_ERROR(CheckLimit(limits, &GraphLimits::rank, static_cast<int64_t>(shape.size()), "rank of a tensor"));
  for (int64_t size : shape) {
    RETURN_IF_ERROR(CheckLimit(limits, &GraphLimits::dimension, size, "size of an axis"));
  }
  const std::optional<int64_t> bytes = NumBytes(header.type.dtype, shape);
  if (!bytes.has_value()) {
    return Refuse(
        Refusal::kShapeOverflow,
        absl::StrCat("a tensor's size is negative or above 2^56 bytes: ", Name(header.type.dtype), ToString(shape)));
  }
  RETURN_IF_ERROR(CheckLimit(limits, &GraphLimits::tensor_bytes, *bytes, "bytes of a tensor"));
  header.num_bytes = *bytes;
  header.type.shape.assign(shape.begin(), shape.end());
  return header;
}

absl::StatusOr<TensorHeader> DecodeTensorHeader(const v1::Tensor& tensor, Order default_order,
                                                const GraphLimits& limits) {
  RETURN_IF_ERROR(CheckKnownFields(tensor));
  return DecodeTensorHeader(tensor.dtype(), tensor.shape(), tensor.order(), default_order, limits);
}

bool IsBoolData(absl::string_view data) {
  constexpr size_t kWord = sizeof(uint64_t);
  uint64_t seen = 0;
  size_t i = 0;
  for (; i + kWord <= data.size(); i += kWord) {
    uint64_t word;
    std::memcpy(&word, data.data() + i, kWord);
    seen |= word;
  }
  bool valid = (seen & ~uint64_t{0x0101010101010101}) == 0;
  for (; i < data.size(); ++i) valid = valid && static_cast<unsigned char>(data[i]) <= 1;
  return valid;
}

absl::Status CheckTensorData(const TensorHeader& header, absl::string_view data) {
  if (data.size() != static_cast<uint64_t>(header.num_bytes)) {
    return Refuse(Refusal::kDataLengthMismatch, absl::StrCat("a tensor's data has ", data.size(), " bytes where ",
                                                             ToString(header.type), " has ", header.num_bytes));
  }
  if (header.type.dtype == DType::kBool && !IsBoolData(data)) {
    return Refuse(Refusal::kDataInvalid, "a BOOL tensor holds a byte other than 0 and 1; send x != 0");
  }
  return absl::OkStatus();
}

absl::StatusOr<Literal> DecodeLiteral(const v1::Tensor& tensor, Order default_order, const GraphLimits& limits) {
  ASSIGN_OR_RETURN(TensorHeader header, DecodeTensorHeader(tensor, default_order, limits));
  RETURN_IF_ERROR(CheckTensorData(header, tensor.data()));
  const bool reorder = header.order == Order::kRowMajor && header.type.rank() > 1;
  if (!reorder) return Literal::FromBytes(std::move(header.type), tensor.data());
  ASSIGN_OR_RETURN(Literal literal, Literal::Create(std::move(header.type)));
  // Row-major data of this shape are column-major data of the reversed one.
  const Shape reversed(literal.shape().rbegin(), literal.shape().rend());
  ReverseOrder(reversed, SizeOf(literal.dtype()), tensor.data().data(), literal.mutable_data());
  return literal;
}

v1::Tensor EncodeLiteral(const Literal& literal) {
  v1::Tensor tensor;
  tensor.set_dtype(EncodeDType(literal.dtype()));
  tensor.mutable_shape()->Add(literal.shape().begin(), literal.shape().end());
  tensor.set_order(v1::MEMORY_ORDER_COLUMN_MAJOR);
  tensor.set_data(literal.bytes().data(), literal.bytes().size());
  return tensor;
}

}  // namespace tensord::codec
