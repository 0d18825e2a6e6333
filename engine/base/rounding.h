#ifndef TENSORD_ENGINE_BASE_ROUNDING_H_
#define TENSORD_ENGINE_BASE_ROUNDING_H_

#include <cstdint>

namespace tensord {

// Rounding of sizes, which are not negative, by units, which are positive; only a multiple above INT64_MAX overflows.

constexpr int64_t CeilDiv(int64_t a, int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }
constexpr int64_t RoundDown(int64_t size, int64_t unit) { return size / unit * unit; }
constexpr int64_t RoundUp(int64_t size, int64_t unit) { return CeilDiv(size, unit) * unit; }

// Returns the begin of share `part` of `parts`; sizes of shares differ by one at most.
constexpr int64_t ShareBegin(int64_t size, int64_t parts, int64_t part) {
  return part * (size / parts) + (part < size % parts ? part : size % parts);
}

}  // namespace tensord

#endif  // TENSORD_ENGINE_BASE_ROUNDING_H_
