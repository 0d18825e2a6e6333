#include "backends/cpu/layout/kernels.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "backends/cpu/kernel/kernel.h"
#include "backends/cpu/layout/strided_copy.h"
#include "backends/cpu/layout/strided_copy_loops.h"
#include "backends/cpu/machine/streamed_stores.h"
#include "backends/cpu/machine/thread_pool.h"
#include "engine/base/rounding.h"
#include "engine/ops/core_ops.h"
#include "engine/ops/triangle.h"

namespace tensord::cpu {
namespace {

constexpr int64_t kTriangleTaskBytes = int64_t{256} << 10;  // as of copies (strided_copy.cc)
// Matrices and rows of at most so many bytes are done with a mask instead of row by row.
constexpr int64_t kMaxMaskedBytes = int64_t{16} << 10;
constexpr int64_t kMaxMaskedRowBytes = 128;
constexpr int64_t kMinMaskBytes = 1024;

// A tensor, seen as rows along the faster one of the matrix axes, stacked along the slower one. All axes before the
// faster one are runs of elements that share their fate. In the slab at `index` of the slower axis the boundary lies at
// clamp(index + offset, 0, rows' size) of the faster one; elements on one side of it are kept.
struct TriangleLayout {
  int64_t run_bytes = 0;  // of the elements that share their place in the matrix and lie together
  int64_t fast_size = 0;
  int64_t rows_per_slab = 0;  // axes between the two
  int64_t slow_size = 0;
  int64_t matrices = 0;  // axes after the two
  int64_t offset = 0;
  bool keeps_low = false;  // below the boundary, or from it on

  int64_t row_bytes() const { return run_bytes * fast_size; }
  int64_t slab_bytes() const { return row_bytes() * rows_per_slab; }
  int64_t matrix_bytes() const { return slab_bytes() * slow_size; }
  int64_t bytes() const { return matrix_bytes() * matrices; }
  int64_t Boundary(int64_t slow_index) const { return std::clamp<int64_t>(slow_index + offset, 0, fast_size); }
};

TriangleLayout LayoutOf(const BoundInstruction& instruction) {
  const ConcreteType& type = instruction.operands[0];
  const auto [row, column] = MatrixAxes(*instruction.attrs);
  const size_t fast = static_cast<size_t>(std::min(row, column)), slow = static_cast<size_t>(std::max(row, column));
  const auto product = [&](size_t begin, size_t end) {
    int64_t n = 1;
    for (size_t i = begin; i < end; ++i) n *= type.shape[i];
    return n;
  };
  TriangleLayout layout{.run_bytes = product(0, fast) * SizeOf(type.dtype),
                        .fast_size = type.shape[fast],
                        .rows_per_slab = product(fast + 1, slow),
                        .slow_size = type.shape[slow],
                        .matrices = product(slow + 1, type.shape.size())};
  // Diagonals outside of the matrix are all the same, and may be too far away to compute with.
  const int64_t rows = type.shape[static_cast<size_t>(row)], columns = type.shape[static_cast<size_t>(column)];
  const int64_t diagonal = std::clamp(instruction.attrs->Int("diagonal"), -rows, columns);
  const bool lower = Is(*instruction.op, CoreOp::kTril), rows_are_fast = row < column;
  // tril keeps column - row <= diagonal: rows from column - diagonal on, columns up to row + diagonal. triu likewise.
  layout.keeps_low = lower != rows_are_fast;
  layout.offset = (rows_are_fast ? -diagonal : diagonal) + (layout.keeps_low ? 1 : 0);
  return layout;
}

// Keeps and clears ranges of bytes of a tensor, as far as they lie in [begin, end); writes past the cache if that pays.
class RangeWriter {
 public:
  RangeWriter(const void* from, void* into, bool stream, int64_t begin, int64_t end)
      : from_(static_cast<const char*>(from)),
        into_(static_cast<char*>(into)),
        stream_(stream),
        begin_(begin),
        end_(end) {}

  int64_t begin() const { return begin_; }
  int64_t end() const { return end_; }

  void Write(bool keep, int64_t first, int64_t last) const {
    first = std::max(first, begin_);
    const int64_t bytes = std::min(last, end_) - first;
    if (bytes <= 0) return;
    const bool stream = stream_ && bytes >= kMinStreamBytes;
    if (keep && stream) {
      loops_.contiguous_stream(from_ + first, into_ + first, {.count = bytes});
    } else if (keep) {
      std::memcpy(into_ + first, from_ + first, static_cast<size_t>(bytes));
    } else if (stream) {
      static constexpr char kZero = 0;
      loops_.widths[0].repeated_stream(&kZero, into_ + first, {.count = bytes, .dst_step = 1});
    } else {
      std::memset(into_ + first, 0, static_cast<size_t>(bytes));
    }
  }

 private:
  static constexpr int64_t kMinStreamBytes = 4096;  // a page: shorter runs are left to the cache

  const char* const from_;
  char* const into_;
  const bool stream_;
  const int64_t begin_;
  const int64_t end_;
  const StridedCopyLoops& loops_ = GetStridedCopyLoops();
};

// Rows as two ranges each, whole slabs at once where they lie on one side of the boundary.
class TriangleRowsKernel final : public Kernel {
 public:
  explicit TriangleRowsKernel(const TriangleLayout& layout)
      : layout_(layout), stream_(layout.bytes() >= StreamedResultBytes()) {}

  void Run(const KernelArgs& args) const override {
    args.pool->ParallelForBlocks(layout_.bytes(), kTriangleTaskBytes, [&](int64_t begin, int64_t end) {
      const RangeWriter writer(args.operands[0], args.results[0], stream_, begin, end);
      const int64_t matrix_bytes = layout_.matrix_bytes();
      for (int64_t at = begin / matrix_bytes * matrix_bytes; at < end; at += matrix_bytes) WriteMatrix(writer, at);
    });
  }

 private:
  void WriteMatrix(const RangeWriter& writer, int64_t at) const {
    const int64_t slab = layout_.slab_bytes();
    const int64_t first = std::max<int64_t>(0, (writer.begin() - at) / slab);
    const int64_t last = std::min(layout_.slow_size, CeilDiv(writer.end() - at, slab));
    // The boundary is 0 before `cut`, and the end of the row from `uncut` on.
    const int64_t cut = std::clamp(1 - layout_.offset, first, last);
    const int64_t uncut = std::clamp(layout_.fast_size - layout_.offset, cut, last);
    writer.Write(!layout_.keeps_low, at + first * slab, at + cut * slab);
    for (int64_t i = cut; i < uncut; ++i) WriteCutSlab(writer, at + i * slab, layout_.Boundary(i));
    writer.Write(layout_.keeps_low, at + uncut * slab, at + last * slab);
  }

  void WriteCutSlab(const RangeWriter& writer, int64_t at, int64_t boundary) const {
    const int64_t row_bytes = layout_.row_bytes();
    const int64_t first = std::max<int64_t>(0, (writer.begin() - at) / row_bytes);
    const int64_t last = std::min(layout_.rows_per_slab, CeilDiv(writer.end() - at, row_bytes));
    for (int64_t row = first; row < last; ++row) {
      const int64_t begin = at + row * row_bytes, middle = begin + boundary * layout_.run_bytes;
      writer.Write(layout_.keeps_low, begin, middle);
      writer.Write(!layout_.keeps_low, middle, begin + row_bytes);
    }
  }

  const TriangleLayout layout_;
  const bool stream_;
};

// Many small matrices: zero is all bits zero in every dtype, so the bits are kept by a mask.
class TriangleMaskKernel final : public Kernel {
 public:
  explicit TriangleMaskKernel(const TriangleLayout& layout) : bytes_(layout.bytes()) {
    mask_.reserve(static_cast<size_t>(kMinMaskBytes + layout.matrix_bytes()));
    do {
      AppendMatrix(layout);
    } while (static_cast<int64_t>(mask_.size()) < std::min(kMinMaskBytes, bytes_));
  }

  void Run(const KernelArgs& args) const override {
    const char* const from = static_cast<const char*>(args.operands[0]);
    char* const into = static_cast<char*>(args.results[0]);
    const int64_t period = static_cast<int64_t>(mask_.size());
    const int64_t block = std::max<int64_t>(1, kTriangleTaskBytes / period) * period;
    args.pool->ParallelForBlocks(bytes_, block, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i += period) Mask(from + i, into + i, std::min(period, end - i));
    });
  }

 private:
  typedef uint64_t Vector __attribute__((vector_size(32), may_alias, aligned(1)));

  void AppendMatrix(const TriangleLayout& layout) {
    for (int64_t slow = 0; slow < layout.slow_size; ++slow) {
      const int64_t low_bytes = layout.Boundary(slow) * layout.run_bytes;
      for (int64_t row = 0; row < layout.rows_per_slab; ++row) {
        mask_.insert(mask_.end(), static_cast<size_t>(low_bytes), layout.keeps_low ? 0xff : 0);
        mask_.insert(mask_.end(), static_cast<size_t>(layout.row_bytes() - low_bytes), layout.keeps_low ? 0 : 0xff);
      }
    }
  }

  void Mask(const char* from, char* into, int64_t bytes) const {
    int64_t i = 0;
    for (; i + static_cast<int64_t>(sizeof(Vector)) <= bytes; i += sizeof(Vector)) {
      const Vector& value = *reinterpret_cast<const Vector*>(from + i);
      *reinterpret_cast<Vector*>(into + i) = value & *reinterpret_cast<const Vector*>(mask_.data() + i);
    }
    for (; i < bytes; ++i) into[i] = static_cast<char>(static_cast<uint8_t>(from[i]) & mask_[static_cast<size_t>(i)]);
  }

  std::vector<uint8_t> mask_;
  const int64_t bytes_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> MakeTriangleKernel(const BoundInstruction& instruction) {
  const TriangleLayout layout = LayoutOf(instruction);
  if (layout.bytes() == 0) return std::make_unique<NothingToDo>();
  if (layout.matrix_bytes() <= kMaxMaskedBytes && layout.row_bytes() <= kMaxMaskedRowBytes) {
    return std::make_unique<TriangleMaskKernel>(layout);
  }
  return std::make_unique<TriangleRowsKernel>(layout);
}

}  // namespace tensord::cpu
