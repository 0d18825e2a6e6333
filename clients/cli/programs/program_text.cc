#include "clients/cli/programs/program_text.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "clients/cpp/wire/duration.h"
#include "tensord/dtype.h"
#include "tensord/messages.h"

namespace tensord::cli {
namespace {

std::string DimText(const v1::DimExpr& dim);

std::string CallText(absl::string_view function, const v1::BinaryDimExpr& binary) {
  return absl::StrCat(function, "(", DimText(binary.lhs()), ",", DimText(binary.rhs()), ")");
}

std::string InfixText(absl::string_view sign, const v1::BinaryDimExpr& binary) {
  return absl::StrCat("(", DimText(binary.lhs()), sign, DimText(binary.rhs()), ")");
}

std::string BinaryText(const v1::BinaryDimExpr& binary) {
  switch (binary.kind()) {
    case v1::BinaryDimExpr::KIND_ADD:
      return InfixText("+", binary);
    case v1::BinaryDimExpr::KIND_SUBTRACT:
      return InfixText("-", binary);
    case v1::BinaryDimExpr::KIND_MULTIPLY:
      return InfixText("*", binary);
    case v1::BinaryDimExpr::KIND_FLOOR_DIVIDE:
      return InfixText("/", binary);
    case v1::BinaryDimExpr::KIND_MINIMUM:
      return CallText("min", binary);
    case v1::BinaryDimExpr::KIND_MAXIMUM:
      return CallText("max", binary);
    default:
      return CallText("?", binary);
  }
}

// The depth is bounded: protobuf parses no message nested deeper than 100.
std::string DimText(const v1::DimExpr& dim) {
  switch (dim.expr_case()) {
    case v1::DimExpr::kSize:
      return absl::StrCat(dim.size());
    case v1::DimExpr::kSymbol:
      return dim.symbol();
    case v1::DimExpr::kBinary:
      return BinaryText(dim.binary());
    case v1::DimExpr::kOperand:
      return absl::StrCat("operand ", dim.operand().operand(), " axis ", dim.operand().axis());
    case v1::DimExpr::EXPR_NOT_SET:
      return "?";
  }
  return "?";
}

}  // namespace

std::string DTypeText(v1::DType dtype) {
  if (!client::IsKnownDType(dtype)) return absl::StrCat("dtype ", static_cast<int>(dtype));
  return std::string(client::DTypeName(static_cast<client::DType>(dtype)));
}

std::string TypeText(const v1::TensorType& type) {
  std::vector<std::string> dims;
  for (const v1::DimExpr& dim : type.shape()) dims.push_back(DimText(dim));
  return absl::StrCat(DTypeText(type.dtype()), "[", absl::StrJoin(dims, ","), "]");
}

std::string SourceText(v1::CompileResponse::Source source) {
  const std::string name = v1::CompileResponse::Source_Name(source);
  return absl::AsciiStrToLower(absl::StripPrefix(absl::string_view(name.data(), name.size()), "SOURCE_"));
}

std::string DurationText(const google::protobuf::Duration& duration) {
  const absl::Duration exact = client::ToAbslDuration(duration);
  // Three digits of the unit below are enough for people.
  const absl::Duration unit = exact >= absl::Seconds(1) ? absl::Milliseconds(1) : absl::Microseconds(1);
  return absl::FormatDuration(exact < absl::Milliseconds(1) ? exact : absl::Trunc(exact, unit));
}

}  // namespace tensord::cli
