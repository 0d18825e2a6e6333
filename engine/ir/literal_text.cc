#include "engine/ir/literal_text.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"

namespace tensord {
namespace {

// Tells whether the number is no NaN, or the NaN that "nan" reads as.
bool IsDecimal(float x) { return !std::isnan(x) || std::bit_cast<uint32_t>(x) == 0x7fc00000; }
bool IsDecimal(double x) { return !std::isnan(x) || std::bit_cast<uint64_t>(x) == 0x7ff8000000000000; }
template <ComplexElement T>
bool IsDecimal(T x) {
  return IsDecimal(x.real()) && IsDecimal(x.imag());
}
template <HalfElement T>
bool IsDecimal(T x) {
  return !std::isnan(static_cast<float>(x)) || x.bits == T(std::bit_cast<float>(uint32_t{0x7fc00000})).bits;
}
template <typename T>
bool IsDecimal(T) {
  return true;
}

template <typename T>
void AppendNumber(std::string* out, T value) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(value)) return void(out->append("nan"));
  }
  char buffer[32];
  out->append(buffer, std::to_chars(buffer, buffer + sizeof(buffer), value).ptr);
}

template <typename T>
void AppendElement(std::string* out, T value) {
  if constexpr (std::is_same_v<T, Bool>) {
    out->append(static_cast<bool>(value) ? "true" : "false");
  } else if constexpr (HalfElement<T>) {
    AppendNumber(out, static_cast<float>(value));
  } else if constexpr (ComplexElement<T>) {
    out->push_back('(');
    AppendNumber(out, value.real());
    out->append(", ");
    AppendNumber(out, value.imag());
    out->push_back(')');
  } else {
    AppendNumber(out, value);
  }
}

template <typename T>
absl::Status ParseNumber(TextCursor& cursor, T* value) {
  const size_t begin = cursor.Position();
  const absl::string_view text = cursor.Number();
  const char* const end = text.data() + text.size();
  const std::from_chars_result read = std::from_chars(text.data(), end, *value);
  if (text.empty() || read.ec == std::errc::invalid_argument || read.ptr != end) {
    return cursor.ErrorAt(begin, Refusal::kTextSyntax, "expected an element of the literal's dtype");
  }
  if (read.ec != std::errc())
    return cursor.ErrorAt(begin, Refusal::kTextSyntax, "the number is beyond the dtype's range");
  return absl::OkStatus();
}

template <typename T>
absl::Status ParseElement(TextCursor& cursor, T* value) {
  if constexpr (std::is_same_v<T, Bool>) {
    const size_t begin = cursor.Position();
    const absl::string_view word = cursor.Word();
    if (word != "true" && word != "false") return cursor.ErrorAt(begin, Refusal::kTextSyntax, "expected true or false");
    *value = Bool(word == "true");
  } else if constexpr (HalfElement<T>) {
    double wide = 0;  // one rounding from here to 16 bits
    RETURN_IF_ERROR(ParseNumber(cursor, &wide));
    *value = T(wide);
  } else if constexpr (ComplexElement<T>) {
    typename T::value_type real = 0, imag = 0;
    RETURN_IF_ERROR(cursor.Expect("("));
    RETURN_IF_ERROR(ParseNumber(cursor, &real));
    RETURN_IF_ERROR(cursor.Expect(","));
    RETURN_IF_ERROR(ParseNumber(cursor, &imag));
    RETURN_IF_ERROR(cursor.Expect(")"));
    *value = T(real, imag);
  } else {
    RETURN_IF_ERROR(ParseNumber(cursor, value));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ParseHex(TextCursor& cursor) {
  const size_t begin = cursor.Position();
  ASSIGN_OR_RETURN(const std::string digits, cursor.Quoted());
  const bool valid = digits.size() % 2 == 0 && digits.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (!valid) return cursor.ErrorAt(begin, Refusal::kTextSyntax, "expected pairs of lower-case hexadecimal digits");
  return absl::HexStringToBytes(digits);
}

template <typename T>
absl::StatusOr<std::string> ParseElements(TextCursor& cursor) {
  std::string bytes;
  RETURN_IF_ERROR(cursor.Expect("["));
  if (cursor.Take("]")) return bytes;
  do {
    T element{};
    RETURN_IF_ERROR(ParseElement(cursor, &element));
    bytes.append(reinterpret_cast<const char*>(&element), sizeof(T));
  } while (cursor.Take(","));
  RETURN_IF_ERROR(cursor.Expect("]"));
  return bytes;
}

}  // namespace

std::string LiteralText(const Literal& literal) {
  std::string text = absl::StrCat(ToString(literal.type()), " ");
  VisitDType(literal.dtype(), [&]<typename T>(TypeTag<T>) {
    bool decimal = literal.num_elements() <= kMaxDecimals;
    if (decimal) {
      for (const T& element : literal.values<T>()) decimal = decimal && IsDecimal(element);
    }
    if (!decimal) return absl::StrAppend(&text, "hex \"", absl::BytesToHexString(literal.bytes()), "\"");
    text.push_back('[');
    for (const T& element : literal.values<T>()) {
      if (text.back() != '[') text.append(", ");
      AppendElement(&text, element);
    }
    text.push_back(']');
  });
  return text;
}

absl::StatusOr<Literal> ParseLiteral(TextCursor& cursor) {
  const size_t begin = cursor.Position();
  ASSIGN_OR_RETURN(const TensorType type, ParseType(cursor));
  if (!type.is_static()) return cursor.ErrorAt(begin, Refusal::kTextSyntax, "a literal's sizes must be numbers");
  std::string bytes;
  if (cursor.Take("hex")) {
    ASSIGN_OR_RETURN(bytes, ParseHex(cursor));
  } else {
    ASSIGN_OR_RETURN(bytes, VisitDType(type.dtype, [&]<typename T>(TypeTag<T>) { return ParseElements<T>(cursor); }));
  }
  absl::StatusOr<Literal> literal = Literal::FromBytes(ToConcreteType(type), bytes);
  if (!literal.ok()) return cursor.ErrorAt(begin, Refusal::kTextSyntax, literal.status().message());
  if (type.dtype == DType::kBool) {
    for (char byte : bytes) {
      if (static_cast<unsigned char>(byte) > 1) {
        return cursor.ErrorAt(begin, Refusal::kTextSyntax, "a bool must be 0 or 1");
      }
    }
  }
  return literal;
}

absl::StatusOr<TensorType> ParseType(TextCursor& cursor, bool run_time_sizes) {
  const size_t begin = cursor.Position();
  const std::optional<DType> dtype = DTypeFromName(cursor.Word());
  if (!dtype.has_value()) return cursor.ErrorAt(begin, Refusal::kTextSyntax, "expected a dtype");
  TensorType type{.dtype = *dtype};
  RETURN_IF_ERROR(cursor.Expect("["));
  if (cursor.Take("]")) return type;
  do {
    ASSIGN_OR_RETURN(DimExpr size, cursor.Size(run_time_sizes));
    Dim dim(std::move(size));
    if (run_time_sizes && cursor.Take("<=")) {
      dim.extent = Extent::kUpperBound;
      ASSIGN_OR_RETURN(dim.bound, cursor.Size());
    }
    type.shape.push_back(std::move(dim));
  } while (cursor.Take(","));
  RETURN_IF_ERROR(cursor.Expect("]"));
  return type;
}

}  // namespace tensord
