#ifndef TENSORD_CLIENTS_CPP_VALUES_NUMBER_TEXT_H_
#define TENSORD_CLIENTS_CPP_VALUES_NUMBER_TEXT_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/types/span.h"

namespace tensord::client {

// A floating-point number with the digits that tell it from its neighbours in its own dtype. A value.
struct ShortNumber {
  double value = 0;
  std::string scientific;  // "-1.25e-07": the shortest, none for values that are not finite
};

// Returns a number that stands alone, as NumPy and Python print it: "2.0", "1e+20". The parts of complex numbers have
// no
// ".0".
std::string LoneText(const ShortNumber& number, bool is_part);

// A column of floating-point numbers: all have their point, or their exponent, at one place. NumPy's rules. A value.
class NumberColumn {
 public:
  // `has_plus`: positive numbers have a sign too.
  NumberColumn(absl::Span<const ShortNumber> numbers, int precision, bool has_plus);

  // Returns one of the numbers, or another one, padded to the column's width.
  std::string Text(const ShortNumber& number) const;

 private:
  std::string Positional(const ShortNumber& number, size_t digits) const;
  std::string Scientific(const ShortNumber& number, size_t digits) const;

  const size_t precision_;
  const bool has_plus_;
  bool has_exponent_ = false;
  size_t left_ = 0, right_ = 0;  // characters before the point, and behind it
  size_t digits_ = 0;            // behind the point, of numbers with an exponent
  size_t exponent_digits_ = 2;
};

}  // namespace tensord::client

#endif  // TENSORD_CLIENTS_CPP_VALUES_NUMBER_TEXT_H_
