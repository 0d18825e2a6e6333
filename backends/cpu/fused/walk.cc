#include "backends/cpu/fused/walk.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/elementwise/select_clamp.h"
#include "engine/ops/scalar/scalar_math.h"

namespace tensord::cpu {
namespace {

constexpr int64_t kLongRun = 32;   // elements that are worth a call
constexpr int64_t kShortRun = 16;  // elements that cost less than finding the next ones

// A place in a walk that moves from run to run along its first axis.
class Cursor {
 public:
  Cursor(absl::Span<const Walk::Axis> axes, int64_t point) : axes_(axes) {
    for (size_t d = 0; d < axes_.size(); ++d) {
      const bool last = d + 1 == axes_.size();
      index_[d] = last ? point : point % axes_[d].size;
      if (!last) point /= axes_[d].size;
      offset_ += index_[d] * axes_[d].stride;
    }
  }

  int64_t offset() const { return offset_; }
  int64_t stride() const { return axes_[0].stride; }
  int64_t run() const { return axes_[0].size - index_[0]; }

  // Advances by `run` points, which do not cross the end of the first axis.
  void Advance(int64_t run) {
    index_[0] += run;
    offset_ += run * axes_[0].stride;
    Carry(0);
  }

  // Whole runs along the second axis, of at most so many points; 0 if a run has begun. There are two axes.
  int64_t whole_runs(int64_t points) const {
    if (index_[0] != 0) return 0;
    const int64_t runs = points / axes_[0].size;
    return axes_.size() == 2 ? runs : std::min(runs, axes_[1].size - index_[1]);
  }
  void AdvanceRuns(int64_t runs) {
    index_[1] += runs;
    offset_ += runs * axes_[1].stride;
    Carry(1);
  }

 private:
  // From axes that end to the next ones.
  void Carry(size_t first) {
    for (size_t d = first; d + 1 < axes_.size() && index_[d] == axes_[d].size; ++d) {
      offset_ += axes_[d + 1].stride - axes_[d].size * axes_[d].stride;
      index_[d] = 0;
      ++index_[d + 1];
    }
  }

  const absl::Span<const Walk::Axis> axes_;
  int64_t offset_ = 0;
  int64_t index_[Walk::kMaxAxes];
};

// Calls body(offset, stride, run, done) for each run of the points [begin, begin + n).
template <typename Body>
void ForEachRun(const Walk& walk, int64_t begin, int64_t n, const Body& body) {
  if (n <= 0) return;
  if (walk.axes().empty()) return body(int64_t{0}, int64_t{1}, int64_t{1}, int64_t{0});
  Cursor cursor(walk.axes(), begin);
  for (int64_t done = 0; done < n;) {
    const int64_t run = std::min(n - done, cursor.run());
    body(cursor.offset(), cursor.stride(), run, done);
    cursor.Advance(run);
    done += run;
  }
}

struct Pair {
  uint64_t low, high;
};

// Calls visitor(T()) with a type of that size.
template <typename Visitor>
void VisitWidth(int64_t bytes, Visitor&& visitor) {
  switch (bytes) {
    case 1:
      return visitor(uint8_t());
    case 2:
      return visitor(uint16_t());
    case 4:
      return visitor(uint32_t());
    case 8:
      return visitor(uint64_t());
    default:
      return visitor(Pair());
  }
}

template <typename T>
void GatherRun(const T* from, int64_t stride, int64_t run, T* to) {
  if (stride == 1) {
    if (run >= kLongRun) {
      std::memcpy(to, from, static_cast<size_t>(run) * sizeof(T));
    } else {
      for (int64_t i = 0; i < run; ++i) std::memcpy(to + i, from + i, sizeof(T));
    }
  } else if (stride == 0) {
    T value;
    std::memcpy(&value, from, sizeof(T));
    for (int64_t i = 0; i < run; ++i) std::memcpy(to + i, &value, sizeof(T));
  } else {
    for (int64_t i = 0; i < run; ++i) std::memcpy(to + i, from + i * stride, sizeof(T));
  }
}

// Short runs, `step` apart.
template <int64_t kLength, typename T>
void GatherRunsOf(const T* from, int64_t stride, int64_t length, int64_t step, int64_t runs, T* to) {
  const int64_t count = kLength > 0 ? kLength : length;
  for (; runs > 0; --runs, from += step, to += count) {
    for (int64_t i = 0; i < count; ++i) std::memcpy(to + i, from + i * stride, sizeof(T));
  }
}

template <typename T>
void GatherShortRuns(const Walk& walk, const T* base, int64_t begin, int64_t n, T* out) {
  const int64_t length = walk.axes()[0].size, stride = walk.axes()[0].stride, step = walk.axes()[1].stride;
  const auto gather = length == 2   ? GatherRunsOf<2, T>
                      : length == 3 ? GatherRunsOf<3, T>
                      : length == 4 ? GatherRunsOf<4, T>
                                    : GatherRunsOf<0, T>;
  Cursor cursor(walk.axes(), begin);
  for (int64_t done = 0; done < n;) {
    if (const int64_t runs = cursor.whole_runs(n - done); runs > 0) {
      gather(base + cursor.offset(), stride, length, step, runs, out + done);
      cursor.AdvanceRuns(runs);
      done += runs * length;
      continue;
    }
    const int64_t run = std::min(n - done, cursor.run());
    GatherRun(base + cursor.offset(), stride, run, out + done);
    cursor.Advance(run);
    done += run;
  }
}

template <typename T>
void ScatterRun(const T* from, int64_t stride, int64_t run, T* to) {
  if (stride == 1 && run >= kLongRun) {
    std::memcpy(to, from, static_cast<size_t>(run) * sizeof(T));
  } else {
    for (int64_t i = 0; i < run; ++i) std::memcpy(to + i * stride, from + i, sizeof(T));
  }
}

}  // namespace

Walk::Walk(absl::Span<const Axis> axes) {
  for (const Axis& axis : axes) {
    if (axis.size == 1) continue;
    if (!axes_.empty() && axes_.back().stride * axes_.back().size == axis.stride) {
      axes_.back().size *= axis.size;
    } else {
      axes_.push_back(axis);
    }
  }
  if (axes_.empty() || axes_.back().stride != 0) return;
  period_ = 1;
  for (size_t d = 0; d + 1 < axes_.size(); ++d) period_ *= axes_[d].size;
}

std::optional<int64_t> Walk::RunStart(int64_t begin, int64_t n) const {
  if (axes_.empty()) return 0;
  if (axes_[0].stride != 1) return std::nullopt;
  if (axes_.size() == 1) return begin;
  const int64_t row = begin / axes_[0].size;
  int64_t offset = begin - row * axes_[0].size;
  if (offset + n > axes_[0].size) return std::nullopt;
  int64_t rest = row;
  for (size_t d = 1; d + 1 < axes_.size(); ++d) {
    const int64_t slower = rest / axes_[d].size;
    offset += (rest - slower * axes_[d].size) * axes_[d].stride;
    rest = slower;
  }
  return offset + rest * axes_.back().stride;
}

std::optional<int64_t> Walk::Stride(int64_t begin, int64_t step, int64_t count) const {
  for (size_t d = 0; d < axes_.size(); ++d) {
    const bool is_last = d + 1 == axes_.size();
    if (is_last || step < axes_[d].size) {
      // Along this axis alone, without a step over its end.
      const bool stays = is_last || begin % axes_[d].size + (count - 1) * step < axes_[d].size;
      return stays ? std::optional<int64_t>(step * axes_[d].stride) : std::nullopt;
    }
    if (step % axes_[d].size != 0) return std::nullopt;
    step /= axes_[d].size;
    begin /= axes_[d].size;
  }
  return 0;
}

void GatherPoints(const Walk& walk, int64_t element_bytes, const void* base, int64_t begin, int64_t n, void* out) {
  VisitWidth(element_bytes, [&]<typename T>(T) {
    if (walk.axes().size() > 1 && walk.axes()[0].size < kShortRun) {
      return GatherShortRuns(walk, static_cast<const T*>(base), begin, n, static_cast<T*>(out));
    }
    ForEachRun(walk, begin, n, [&](int64_t offset, int64_t stride, int64_t run, int64_t done) {
      GatherRun(static_cast<const T*>(base) + offset, stride, run, static_cast<T*>(out) + done);
    });
  });
}

void ScatterPoints(const Walk& walk, int64_t element_bytes, const void* x, int64_t begin, int64_t n, void* base) {
  VisitWidth(element_bytes, [&]<typename T>(T) {
    ForEachRun(walk, begin, n, [&](int64_t offset, int64_t stride, int64_t run, int64_t done) {
      ScatterRun(static_cast<const T*>(x) + done, stride, run, static_cast<T*>(base) + offset);
    });
  });
}

namespace {

template <typename T>
void FillNumbers(int64_t first, int64_t step, int64_t n, T* to) {
  if (step == 0) {
    std::fill_n(to, n, scalar::ConvertElement<T>(first));
  } else if (step == 1) {
    for (int64_t i = 0; i < n; ++i) to[i] = scalar::ConvertElement<T>(first + i);
  } else {
    for (int64_t i = 0; i < n; ++i) to[i] = scalar::ConvertElement<T>(first + i * step);
  }
}

}  // namespace

void NumberPoints(const Walk& walk, DType dtype, int64_t offset, int64_t begin, int64_t n, void* out) {
  VisitDType(dtype, [&]<typename T>(TypeTag<T>) {
    T* const to = static_cast<T*>(out);
    ForEachRun(walk, begin, n, [&](int64_t element, int64_t stride, int64_t run, int64_t done) {
      FillNumbers(offset + element, stride, run, to + done);
    });
  });
}

void NumberRun(DType dtype, int64_t first, int64_t step, int64_t n, void* out) {
  VisitDType(dtype, [&]<typename T>(TypeTag<T>) { FillNumbers(first, step, n, static_cast<T*>(out)); });
}

void RepeatRow(const void* x, int64_t element_bytes, int64_t length, int64_t n, void* out) {
  if (length == 1) return Splat(x, element_bytes, out, n);
  char* const to = static_cast<char*>(out);
  const int64_t bytes = n * element_bytes;
  int64_t done = std::min(bytes, length * element_bytes);
  if (x != out) std::memcpy(to, x, static_cast<size_t>(done));
  while (done < bytes) {  // what is there is a whole number of rows
    const int64_t more = std::min(done, bytes - done);
    std::memcpy(to + done, to, static_cast<size_t>(more));
    done += more;
  }
}

}  // namespace tensord::cpu
