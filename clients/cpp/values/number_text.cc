#include "clients/cpp/values/number_text.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"

namespace tensord::client {
namespace {

// The bounds within which numbers are written without an exponent.
constexpr double kLeastPositional = 1e-4, kMostPositional = 1e8, kMostRange = 1000;
constexpr double kMostLonePositional = 1e16;

// A number's parts: "-12", "5", "07".
struct Parts {
  std::string whole, fraction, exponent;
};

Parts Split(absl::string_view text) {
  Parts parts;
  const size_t e = text.find('e');
  if (e != absl::string_view::npos) {
    parts.exponent = std::string(text.substr(e + 1));
    text = text.substr(0, e);
  }
  const size_t point = text.find('.');
  parts.whole = std::string(text.substr(0, point));
  if (point != absl::string_view::npos) parts.fraction = std::string(text.substr(point + 1));
  return parts;
}

std::string WithoutTrailingZeros(std::string fraction) {
  fraction.erase(fraction.find_last_not_of('0') + 1);
  return fraction;
}

// Places the point among the digits of a scientific text. Only shifts, so that the digits stay the shortest.
Parts Shift(const std::string& scientific) {
  Parts parts = Split(scientific);
  const std::string sign = parts.whole.front() == '-' ? "-" : "";
  std::string digits = parts.whole.substr(sign.size()) + parts.fraction;
  int exponent = 0;
  if (!absl::SimpleAtoi(parts.exponent, &exponent)) return parts;
  if (exponent < 0) digits.insert(0, static_cast<size_t>(-exponent), '0');
  const size_t whole = 1 + static_cast<size_t>(std::max(exponent, 0));
  if (digits.size() < whole) digits.append(whole - digits.size(), '0');
  return {
      .whole = sign + digits.substr(0, whole), .fraction = WithoutTrailingZeros(digits.substr(whole)), .exponent = ""};
}

std::string Padded(std::string text, size_t width) {
  if (text.size() < width) text.insert(0, width - text.size(), ' ');
  return text;
}

}  // namespace

std::string LoneText(const ShortNumber& number, bool is_part) {
  if (std::isnan(number.value)) return "nan";
  if (std::isinf(number.value)) return number.value < 0 ? "-inf" : "inf";
  const double size = std::abs(number.value);
  if (size != 0 && (size < kLeastPositional || size >= kMostLonePositional)) return number.scientific;
  const Parts parts = Shift(number.scientific);
  if (!parts.fraction.empty()) return absl::StrCat(parts.whole, ".", parts.fraction);
  return is_part ? parts.whole : absl::StrCat(parts.whole, ".0");
}

NumberColumn::NumberColumn(absl::Span<const ShortNumber> numbers, int precision, bool has_plus)
    : precision_(static_cast<size_t>(std::clamp(precision, 0, 17))), has_plus_(has_plus) {
  double least = std::numeric_limits<double>::infinity(), most = 0;
  bool is_any_finite = false;
  for (const ShortNumber& number : numbers) {
    if (!std::isfinite(number.value)) continue;
    is_any_finite = true;
    if (number.value == 0) continue;
    least = std::min(least, std::abs(number.value));
    most = std::max(most, std::abs(number.value));
  }
  has_exponent_ = most > 0 && (most >= kMostPositional || least < kLeastPositional || most / least > kMostRange);
  for (const ShortNumber& number : numbers) {
    if (!is_any_finite || !std::isfinite(number.value)) continue;
    const Parts parts = Split(has_exponent_ ? Scientific(number, precision_) : Positional(number, precision_));
    left_ = std::max(left_, parts.whole.size());
    right_ = std::max(right_, parts.fraction.size());
    if (has_exponent_) exponent_digits_ = std::max(exponent_digits_, parts.exponent.size() - 1);
  }
  if (has_exponent_) {
    digits_ = right_;
    right_ += exponent_digits_ + 2;
  }
  for (const ShortNumber& number : numbers) {
    if (std::isfinite(number.value)) continue;
    const bool has_sign = has_plus_ || number.value < 0;
    const size_t characters = 3 + (has_sign ? 1 : 0);
    if (characters > right_ + 1) left_ = std::max(left_, characters - right_ - 1);
  }
}

// With up to `digits` digits behind the point, without trailing zeros.
std::string NumberColumn::Positional(const ShortNumber& number, size_t digits) const {
  Parts parts = Shift(number.scientific);
  // Digits before the point are the value's own, where the shortest ones end before it.
  const size_t places = parts.fraction.empty() ? 0 : digits;
  if (parts.fraction.empty() || parts.fraction.size() > digits) {
    parts = Split(absl::StrFormat("%.*f", static_cast<int>(places), number.value));
    parts.fraction = WithoutTrailingZeros(parts.fraction);
  }
  return absl::StrCat(has_plus_ && parts.whole.front() != '-' ? "+" : "", parts.whole, ".", parts.fraction);
}

std::string NumberColumn::Scientific(const ShortNumber& number, size_t digits) const {
  Parts parts = Split(number.scientific);
  if (parts.fraction.size() > digits) {
    parts = Split(absl::StrFormat("%.*e", static_cast<int>(digits), number.value));
    parts.fraction = WithoutTrailingZeros(parts.fraction);
  }
  return absl::StrCat(has_plus_ && parts.whole.front() != '-' ? "+" : "", parts.whole, ".", parts.fraction, "e",
                      parts.exponent);
}

std::string NumberColumn::Text(const ShortNumber& number) const {
  if (!std::isfinite(number.value)) {
    const bool is_nan = std::isnan(number.value);
    const std::string sign = !is_nan && number.value < 0 ? "-" : has_plus_ ? "+" : "";
    return Padded(sign + (is_nan ? "nan" : "inf"), left_ + right_ + 1);
  }
  if (has_exponent_) {
    // As NumPy does, fills up with the value's own further digits, not with zeros.
    const std::string plus = has_plus_ && !std::signbit(number.value) ? "+" : "";
    const Parts parts = Split(plus + absl::StrFormat("%.*e", static_cast<int>(digits_), number.value));
    std::string exponent = parts.exponent.substr(1);
    exponent.insert(0, exponent_digits_ - exponent.size(), '0');
    return absl::StrCat(Padded(parts.whole, left_), ".", parts.fraction, "e", parts.exponent.substr(0, 1), exponent);
  }
  Parts parts = Split(Positional(number, precision_));
  parts.fraction.append(right_ - parts.fraction.size(), ' ');
  return absl::StrCat(Padded(parts.whole, left_), ".", parts.fraction);
}

}  // namespace tensord::client
