#include "backends/cpu/contraction/panels.h"

#include <algorithm>

#include "backends/cpu/math/half_conversion.h"

namespace tensord::cpu {
namespace {

constexpr int64_t kConvertBlock = int64_t{1} << 15;  // elements of a task, as of elementwise copies
constexpr int64_t kMinRun = 16;                      // shorter ones are copied first, then converted together

template <typename From, typename To>
void ConvertEach(const void* src, void* dst, int64_t count) {
  const From* from = static_cast<const From*>(src);
  To* to = static_cast<To*>(dst);
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<To>(from[i]);
}

// Widens from an operand's dtype to the dtype in which its products are computed.
void WidenRun(DType from, DType to, const void* src, void* dst, int64_t count) {
  if (from == DType::kI32) {
    ConvertEach<int32_t, int64_t>(src, dst, count);
  } else if (from == DType::kF32) {
    ConvertEach<float, double>(src, dst, count);
  } else if (from == DType::kC64) {
    ConvertEach<float, double>(src, dst, 2 * count);
  } else if (to == DType::kF32) {
    WidenHalf(from, static_cast<const uint16_t*>(src), static_cast<float*>(dst), count);
  } else {
    float wide[512];
    for (int64_t i = 0; i < count; i += 512) {
      const int64_t some = std::min<int64_t>(512, count - i);
      WidenHalf(from, static_cast<const uint16_t*>(src) + i, wide, some);
      ConvertEach<float, double>(wide, static_cast<double*>(dst) + i, some);
    }
  }
}

template <typename Real>
void ConjugateEach(const void* src, void* dst, int64_t count) {
  const Real* from = static_cast<const Real*>(src);
  Real* to = static_cast<Real*>(dst);
  for (int64_t i = 0; i < 2 * count; i += 2) {
    to[i] = from[i];
    to[i + 1] = -from[i + 1];
  }
}

// Returns the axes of a box in the order of its dense copy.
DotAxisList DenseOrder(const DotSpace& box, const DotRole (&order)[3]) {
  DotAxisList axes;
  for (DotRole role : order) axes.insert(axes.end(), box.roles[role].begin(), box.roles[role].end());
  return axes;
}

int64_t LayDensely(const DotRole (&order)[3], DotSide side, DotSpace* box) {
  int64_t stride = 1;
  for (DotRole role : order) {
    for (DotAxis& axis : box->roles[role]) {
      axis.strides[side] = stride;
      stride *= axis.size;
    }
  }
  return stride;
}

}  // namespace

DenseRuns::DenseRuns(const DotAxisList& axes, DotSide side) : num_elements_(NumElements(axes)) {
  int64_t expected = 1;
  bool is_run = true;
  for (const DotAxis& axis : axes) {
    const int64_t stride = axis.strides[side];
    if (axis.size == 1) continue;
    if (is_run && stride == expected) {
      length_ *= axis.size;
      expected *= axis.size;
      continue;
    }
    is_run = false;
    if (!loops_.empty() && stride == loops_.back().stride * loops_.back().count) {
      loops_.back().count *= axis.size;
    } else {
      loops_.push_back({axis.size, stride});
    }
  }
}

template <typename Visit>
void DenseRuns::Walk(int64_t begin, int64_t end, Visit visit) const {
  while (begin < end) {
    int64_t rest = begin / length_;
    const int64_t within = begin - rest * length_;
    int64_t offset = within;
    for (const Loop& loop : loops_) {
      offset += rest % loop.count * loop.stride;
      rest /= loop.count;
    }
    const int64_t count = std::min(length_ - within, end - begin);
    visit(offset, begin, count);
    begin += count;
  }
}

DotPanel::DotPanel(DotSide side, bool summed_first, DType from, DType to, bool conjugates, DotSpace* box)
    : from_(from), to_(to), conjugates_(conjugates) {
  const DotRole free = side == kLhs ? kRows : kColumns;
  const DotRole order[] = {summed_first ? kSummed : free, summed_first ? free : kSummed, kBatch};
  const DotAxisList axes = DenseOrder(*box, order);
  LayDensely(order, side, box);
  runs_ = DenseRuns(axes, side);
  if (changes_runs()) return;
  absl::InlinedVector<CopyAxis, 8> copy;
  int64_t dst_stride = 1;
  for (const DotAxis& axis : axes) {
    copy.push_back({axis.size, axis.strides[side], dst_stride});
    dst_stride *= axis.size;
  }
  copy_ = StridedCopy(copy, SizeOf(from_));
}

int64_t DotPanel::Lay(DotSide side, bool summed_first, DotSpace* box) {
  const DotRole free = side == kLhs ? kRows : kColumns;
  const DotRole order[] = {summed_first ? kSummed : free, summed_first ? free : kSummed, kBatch};
  return LayDensely(order, side, box);
}

bool DotPanel::changes_runs() const {
  return changes() && (runs_.length() >= kMinRun || runs_.length() == runs_.num_elements());
}

int64_t DotPanel::staging_bytes() const {
  return from_ != to_ && !changes_runs() ? runs_.num_elements() * SizeOf(from_) : 0;
}

void DotPanel::Change(const char* src, char* dst, int64_t count) const {
  if (from_ != to_) {
    WidenRun(from_, to_, src, dst, count);
    src = dst;
  }
  if (!conjugates_) return;
  if (to_ == DType::kC64) {
    ConjugateEach<float>(src, dst, count);
  } else {
    ConjugateEach<double>(src, dst, count);
  }
}

void DotPanel::Fill(const char* box, char* panel, char* staging, ThreadPool& pool) const {
  const int64_t from_bytes = SizeOf(from_), to_bytes = SizeOf(to_);
  if (changes_runs()) {
    pool.ParallelForBlocks(runs_.num_elements(), kConvertBlock, [&](int64_t begin, int64_t end) {
      runs_.Walk(begin, end, [&](int64_t from, int64_t to, int64_t count) {
        Change(box + from * from_bytes, panel + to * to_bytes, count);
      });
    });
    return;
  }
  char* const copied = from_ != to_ ? staging : panel;
  pool.ParallelFor(copy_.num_tasks(), [&](int64_t task) { copy_.RunTask(task, box, copied); });
  if (!changes()) return;
  pool.ParallelForBlocks(runs_.num_elements(), kConvertBlock, [&](int64_t begin, int64_t end) {
    Change(copied + begin * from_bytes, panel + begin * to_bytes, end - begin);
  });
}

RoundedBox::RoundedBox(DType half, DotSpace* box) : half_(half) {
  const DotRole order[] = {kRows, kColumns, kBatch};
  runs_ = DenseRuns(DenseOrder(*box, order), kDotResult);
  LayDensely(order, kDotResult, box);
}

void RoundedBox::Store(const char* dense, char* result, ThreadPool& pool) const {
  pool.ParallelForBlocks(runs_.num_elements(), kConvertBlock, [&](int64_t begin, int64_t end) {
    runs_.Walk(begin, end, [&](int64_t to, int64_t from, int64_t count) {
      NarrowToHalf(half_, reinterpret_cast<const float*>(dense) + from, reinterpret_cast<uint16_t*>(result) + to,
                   count);
    });
  });
}

}  // namespace tensord::cpu
