#include "proto/codec/type_codec.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "proto/codec/known_fields.h"

namespace tensord::codec {
namespace {

constexpr size_t kPrintedSymbolBytes = 64;

// Tells whether the text form of a size can hold the symbol.
bool IsSymbol(absl::string_view name) {
  if (name.empty() || absl::ascii_isdigit(static_cast<unsigned char>(name[0])) || name[0] == '.') return false;
  for (char c : name) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '.') return false;
  }
  return name != "dim" && name != "floordiv" && name != "min" && name != "max";
}

v1::DimExpr Constant(int64_t size) {
  v1::DimExpr expr;
  expr.set_size(size);
  return expr;
}

v1::DimExpr Binary(v1::BinaryDimExpr::Kind kind, v1::DimExpr lhs, v1::DimExpr rhs) {
  v1::DimExpr expr;
  v1::BinaryDimExpr& binary = *expr.mutable_binary();
  binary.set_kind(kind);
  *binary.mutable_lhs() = std::move(lhs);
  *binary.mutable_rhs() = std::move(rhs);
  return expr;
}

// Returns a tree of the operation over all parts, of the least depth: the reader bounds the nesting. Needs a part.
v1::DimExpr Combine(v1::BinaryDimExpr::Kind kind, std::vector<v1::DimExpr> parts) {
  while (parts.size() > 1) {
    const size_t half = (parts.size() + 1) / 2;
    for (size_t i = 0; i + half < parts.size(); ++i) {
      parts[i] = Binary(kind, std::move(parts[i]), std::move(parts[i + half]));
    }
    parts.resize(half);
  }
  return std::move(parts[0]);
}

v1::DimExpr EncodeAtom(const DimAtom& atom) {
  v1::DimExpr expr;
  v1::BinaryDimExpr::Kind kind = v1::BinaryDimExpr::KIND_FLOOR_DIVIDE;
  switch (atom.kind) {
    case DimAtom::Kind::kSymbol:
      expr.set_symbol(atom.symbol);
      return expr;
    case DimAtom::Kind::kOperandAxis:
      expr.mutable_operand()->set_operand(atom.operand);
      expr.mutable_operand()->set_axis(atom.axis);
      return expr;
    case DimAtom::Kind::kFloorDivide:
      break;
    case DimAtom::Kind::kMinimum:
      kind = v1::BinaryDimExpr::KIND_MINIMUM;
      break;
    case DimAtom::Kind::kMaximum:
      kind = v1::BinaryDimExpr::KIND_MAXIMUM;
      break;
  }
  return Binary(kind, EncodeDimExpr(atom.args[0]), EncodeDimExpr(atom.args[1]));
}

}  // namespace

absl::StatusOr<DType> DecodeDType(v1::DType dtype) {
  if (dtype == v1::DTYPE_UNSPECIFIED) return Refuse(Refusal::kDtypeUnsupported, "the dtype is unset; set one");
  if (!v1::DType_IsValid(dtype)) {
    return Refuse(Refusal::kDtypeUnsupported, absl::StrCat("there is no dtype of number ", static_cast<int>(dtype)));
  }
  return static_cast<DType>(dtype);
}

v1::DType EncodeDType(DType dtype) { return static_cast<v1::DType>(dtype); }

absl::StatusOr<Order> DecodeOrder(v1::MemoryOrder order, Order unspecified) {
  switch (order) {
    case v1::MEMORY_ORDER_UNSPECIFIED:
      return unspecified;
    case v1::MEMORY_ORDER_COLUMN_MAJOR:
      return Order::kColumnMajor;
    case v1::MEMORY_ORDER_ROW_MAJOR:
      return Order::kRowMajor;
    default:
      break;
  }
  return Refuse(Refusal::kAttributeInvalid,
                absl::StrCat("there is no memory order of number ", static_cast<int>(order)));
}

absl::StatusOr<DimExpr> DimExprDecoder::Decode(const v1::DimExpr& expr, int64_t depth) {
  const int64_t deepest = std::min<int64_t>(limits_.expression_nesting, DimExpr::kMaxDepth);
  if (depth > deepest) {
    return RefuseLimit(Refusal::kDimExprInvalid, "expression_nesting", deepest, depth, "depth of a size expression");
  }
  RETURN_IF_ERROR(CheckKnownFields(expr));
  switch (expr.expr_case()) {
    case v1::DimExpr::kSize:
      return DimExpr(expr.size());
    case v1::DimExpr::kSymbol:
      if (const int64_t bytes = static_cast<int64_t>(expr.symbol().size()); bytes > limits_.name_bytes) {
        return RefuseLimit(Refusal::kDimExprInvalid, "name_bytes", limits_.name_bytes, bytes, "bytes of a symbol");
      }
      if (!IsSymbol(expr.symbol())) {
        return Refuse(
            Refusal::kDimExprInvalid,
            absl::StrCat("a symbol must be letters, digits, '_' and '.', no digit or '.' first, no function's "
                         "name: \"",
                         absl::CHexEscape(expr.symbol().substr(0, kPrintedSymbolBytes)), "\""));
      }
      return DimExpr::Symbol(expr.symbol());
    case v1::DimExpr::kBinary:
      return DecodeBinary(expr.binary(), depth);
    case v1::DimExpr::kOperand:
      if (expr.operand().operand() < 0 || expr.operand().axis() < 0) {
        return Refuse(Refusal::kDimExprInvalid, absl::StrCat("a size names operand ", expr.operand().operand(),
                                                             ", axis ", expr.operand().axis()));
      }
      return DimExpr::OperandAxis(expr.operand().operand(), expr.operand().axis());
    case v1::DimExpr::EXPR_NOT_SET:
      break;
  }
  return Refuse(Refusal::kDimExprInvalid, "a size expression is empty");
}

absl::StatusOr<DimExpr> DimExprDecoder::DecodeBinary(const v1::BinaryDimExpr& binary, int64_t depth) {
  ASSIGN_OR_RETURN(const DimExpr lhs, Decode(binary.lhs(), depth + 1));
  ASSIGN_OR_RETURN(const DimExpr rhs, Decode(binary.rhs(), depth + 1));
  const int64_t l = static_cast<int64_t>(lhs.terms().size()) + 1, r = static_cast<int64_t>(rhs.terms().size()) + 1;
  terms_ += binary.kind() == v1::BinaryDimExpr::KIND_MULTIPLY ? l * r : l + r;
  RETURN_IF_ERROR(CheckLimit(limits_, &GraphLimits::expression_terms, terms_, "terms of the graph's size expressions"));
  switch (binary.kind()) {
    case v1::BinaryDimExpr::KIND_ADD:
      return DimExpr::Add(lhs, rhs);
    case v1::BinaryDimExpr::KIND_SUBTRACT:
      return DimExpr::Subtract(lhs, rhs);
    case v1::BinaryDimExpr::KIND_MULTIPLY:
      return DimExpr::Multiply(lhs, rhs);
    case v1::BinaryDimExpr::KIND_FLOOR_DIVIDE:
      return DimExpr::FloorDivide(lhs, rhs);
    case v1::BinaryDimExpr::KIND_MINIMUM:
      return DimExpr::Minimum(lhs, rhs);
    case v1::BinaryDimExpr::KIND_MAXIMUM:
      return DimExpr::Maximum(lhs, rhs);
    default:
      break;
  }
  return Refuse(Refusal::kDimExprInvalid,
                absl::StrCat("a size expression has no operation of number ", static_cast<int>(binary.kind())));
}

absl::StatusOr<TensorType> DimExprDecoder::DecodeType(const v1::TensorType& type) {
  RETURN_IF_ERROR(CheckKnownFields(type));
  TensorType decoded;
  ASSIGN_OR_RETURN(decoded.dtype, DecodeDType(type.dtype()));
  RETURN_IF_ERROR(CheckLimit(limits_, &GraphLimits::rank, type.shape_size(), "rank of a type"));
  for (const v1::DimExpr& expr : type.shape()) {
    ASSIGN_OR_RETURN(DimExpr size, Decode(expr));
    if (size.is_constant()) {
      RETURN_IF_ERROR(CheckLimit(limits_, &GraphLimits::dimension, size.constant(), "size of an axis"));
    }
    decoded.shape.push_back(Dim(std::move(size)));
  }
  return decoded;
}

v1::DimExpr EncodeDimExpr(const DimExpr& expr) {
  std::vector<v1::DimExpr> sum;
  for (const DimTerm& term : expr.terms()) {
    std::vector<v1::DimExpr> product;
    if (term.coefficient != 1) product.push_back(Constant(term.coefficient));
    for (const DimAtom& atom : term.atoms) product.push_back(EncodeAtom(atom));
    sum.push_back(Combine(v1::BinaryDimExpr::KIND_MULTIPLY, std::move(product)));
  }
  if (expr.constant() != 0 || sum.empty()) sum.push_back(Constant(expr.constant()));
  return Combine(v1::BinaryDimExpr::KIND_ADD, std::move(sum));
}

v1::TensorType EncodeType(const TensorType& type) {
  v1::TensorType encoded;
  encoded.set_dtype(EncodeDType(type.dtype));
  for (const Dim& dim : type.shape) {
    if (dim.extent == Extent::kExact) {
      *encoded.add_shape() = EncodeDimExpr(dim.size);
    } else {
      encoded.add_shape()->set_symbol("?");
    }
  }
  return encoded;
}

}  // namespace tensord::codec
