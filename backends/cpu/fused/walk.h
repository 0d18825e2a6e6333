#ifndef TENSORD_BACKENDS_CPU_FUSED_WALK_H_
#define TENSORD_BACKENDS_CPU_FUSED_WALK_H_

#include <cstdint>
#include <optional>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "engine/tensor/dtype.h"

namespace tensord::cpu {

// The places in a tensor of the points of a space, counted column-major: axes with their strides in elements. Strides
// may be 0 or negative. A value; thread-safe.
class Walk {
 public:
  struct Axis {
    int64_t size = 1;
    int64_t stride = 0;
  };
  static constexpr int kMaxAxes = 64;  // of a tensor, before any are merged

  // One point.
  Walk() = default;
  // Merges axes if possible. At most kMaxAxes axes of more than one element.
  explicit Walk(absl::Span<const Axis> axes);

  absl::Span<const Axis> axes() const { return axes_; }
  // Tells whether point i lies at element i.
  bool is_linear() const { return axes_.empty() || (axes_.size() == 1 && axes_[0].stride == 1); }
  // Returns the number of points after which the walk repeats itself; 0 if it does not.
  int64_t period() const { return period_; }

  // Returns the distance from point `begin` to point `begin + step`, if it is the same from there to each of the
  // `count` points.
  std::optional<int64_t> Stride(int64_t begin, int64_t step, int64_t count) const;
  // Returns the element of point `begin`, where the points [begin, begin + n) are neighbours, one after the other.
  std::optional<int64_t> RunStart(int64_t begin, int64_t n) const;

 private:
  absl::InlinedVector<Axis, 4> axes_;
  int64_t period_ = 0;
};

// Copies the points [begin, begin + n) to out[0], out[1], …; elements of 1, 2, 4, 8 or 16 bytes.
void GatherPoints(const Walk& walk, int64_t element_bytes, const void* base, int64_t begin, int64_t n, void* out);
// Copies x[0], x[1], … to the points [begin, begin + n).
void ScatterPoints(const Walk& walk, int64_t element_bytes, const void* x, int64_t begin, int64_t n, void* base);
// The integers offset + element of the point, as `dtype`.
void NumberPoints(const Walk& walk, DType dtype, int64_t offset, int64_t begin, int64_t n, void* out);
// The integers first, first + step, …, n of them, as `dtype`.
void NumberRun(DType dtype, int64_t first, int64_t step, int64_t n, void* out);
// Repeats the `length` elements of x, one after the other, until n elements are there.
void RepeatRow(const void* x, int64_t element_bytes, int64_t length, int64_t n, void* out);

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_FUSED_WALK_H_
