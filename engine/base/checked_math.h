#ifndef TENSORD_ENGINE_BASE_CHECKED_MATH_H_
#define TENSORD_ENGINE_BASE_CHECKED_MATH_H_

#include <cstdint>
#include <optional>

namespace tensord {

// 64-bit arithmetic on sizes that come from outside; nothing if the result does not fit.

inline std::optional<int64_t> CheckedAdd(int64_t a, int64_t b) {
  int64_t r;
  return __builtin_add_overflow(a, b, &r) ? std::nullopt : std::optional(r);
}

inline std::optional<int64_t> CheckedSub(int64_t a, int64_t b) {
  int64_t r;
  return __builtin_sub_overflow(a, b, &r) ? std::nullopt : std::optional(r);
}

inline std::optional<int64_t> CheckedMul(int64_t a, int64_t b) {
  int64_t r;
  return __builtin_mul_overflow(a, b, &r) ? std::nullopt : std::optional(r);
}

}  // namespace tensord

#endif  // TENSORD_ENGINE_BASE_CHECKED_MATH_H_
