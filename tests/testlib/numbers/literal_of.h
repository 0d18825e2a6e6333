#ifndef TENSORD_TESTS_TESTLIB_NUMBERS_LITERAL_OF_H_
#define TENSORD_TESTS_TESTLIB_NUMBERS_LITERAL_OF_H_

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "engine/tensor/literal.h"

namespace tensord {

// Elements in storage order; the element type is the dtype.
template <typename T>
Literal LiteralOf(const std::vector<T>& elements, Shape shape) {
  Literal literal = Literal::Create({kDTypeOf<T>, std::move(shape)}).value();
  std::copy(elements.begin(), elements.end(), literal.mutable_values<T>().begin());
  return literal;
}

template <typename T>
Literal LiteralOf(const std::vector<T>& elements) {
  return LiteralOf(elements, {static_cast<int64_t>(elements.size())});
}

}  // namespace tensord

#endif  // TENSORD_TESTS_TESTLIB_NUMBERS_LITERAL_OF_H_
