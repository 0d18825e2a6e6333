#include "backends/cpu/dot.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "absl/strings/str_cat.h"
#include "backends/cpu/half_rows.h"
#include "engine/base/refusal.h"

namespace tensord::cpu {
namespace {

constexpr int64_t kTaskWork = int64_t{1} << 17;  // multiplications
constexpr int64_t kConvertBlock = int64_t{1} << 15;

bool IsHalf(DType dtype) { return dtype == DType::kF16 || dtype == DType::kBF16; }

template <typename From, typename To>
void ConvertEach(const void* src, void* dst, int64_t count) {
  const From* from = static_cast<const From*>(src);
  To* to = static_cast<To*>(dst);
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<To>(from[i]);
}

// Widening conversions: those from an operand's dtype to one that products of it are computed in.
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

// May work in place.
void ConjugateRun(DType dtype, const void* src, void* dst, int64_t count) {
  if (dtype == DType::kC64) {
    ConjugateEach<float>(src, dst, count);
  } else {
    ConjugateEach<double>(src, dst, count);
  }
}

template <typename Axes>
int64_t Elements(const Axes& axes) {
  int64_t elements = 1;
  for (const auto& axis : axes) elements *= axis.size;
  return elements;
}

// The one stride of axes that together are one axis, the first being the fastest; nothing where there is none.
template <typename Axes, typename Stride>
std::optional<int64_t> MergedStride(const Axes& axes, Stride stride) {
  int64_t merged = 1;
  int64_t expected = -1;
  for (const auto& axis : axes) {
    if (axis.size == 1) continue;
    if (expected < 0) {
      merged = axis.*stride;
    } else if (axis.*stride != expected) {
      return std::nullopt;
    }
    expected = axis.*stride * axis.size;
  }
  return merged;
}

}  // namespace

int64_t Contraction::Reserve(int64_t bytes) {
  const int64_t offset = scratch_bytes_;
  scratch_bytes_ += (bytes + 63) / 64 * 64;
  return offset;
}

void Contraction::ClassifyAxes(const ConcreteType& lhs, const ConcreteType& rhs, const DotAxes& axes) {
  const Shape lhs_strides = ColumnMajorStrides(lhs.shape);
  const Shape rhs_strides = ColumnMajorStrides(rhs.shape);
  const auto add_pairs = [&](absl::Span<const int64_t> left, absl::Span<const int64_t> right, Axes& role) {
    for (size_t i = 0; i < left.size(); ++i) {
      const size_t l = static_cast<size_t>(left[i]);
      role.push_back({lhs.shape[l], lhs_strides[l], rhs_strides[static_cast<size_t>(right[i])]});
    }
  };
  add_pairs(axes.lhs_contracting, axes.rhs_contracting, contracted_);
  add_pairs(axes.lhs_batch, axes.rhs_batch, batch_);
  const auto is_free = [](size_t axis, absl::Span<const int64_t> contracting, absl::Span<const int64_t> batch) {
    const int64_t a = static_cast<int64_t>(axis);
    return std::find(contracting.begin(), contracting.end(), a) == contracting.end() &&
           std::find(batch.begin(), batch.end(), a) == batch.end();
  };
  for (size_t i = 0; i < lhs.shape.size(); ++i) {
    if (is_free(i, axes.lhs_contracting, axes.lhs_batch)) rows_.push_back({lhs.shape[i], lhs_strides[i], 0});
  }
  for (size_t i = 0; i < rhs.shape.size(); ++i) {
    if (is_free(i, axes.rhs_contracting, axes.rhs_batch)) columns_.push_back({rhs.shape[i], 0, rhs_strides[i]});
  }
}

bool Contraction::ReadsAsItLies(bool is_lhs, const Axes& contracted, MatrixProduct& product) const {
  const auto stride = is_lhs ? &Axis::lhs_stride : &Axis::rhs_stride;
  const std::optional<int64_t> free = MergedStride(is_lhs ? rows_ : columns_, stride);
  const std::optional<int64_t> summed = MergedStride(contracted, stride);
  if (!free.has_value() || !summed.has_value()) return false;
  if (is_lhs) {
    product.a = {*free, *summed};
    return Gemm::CanReadLhs(computed_, product);
  }
  product.b = {*summed, *free};
  return Gemm::CanReadRhs(computed_, product);
}

// The sum may run over its axes in any order, the same on both sides: the one that lets most operands be read as they
// lie.
void Contraction::OrderContracted() {
  MatrixProduct product;
  product.m = Elements(rows_);
  product.n = Elements(columns_);
  product.k = Elements(contracted_);
  int best_score = -1;
  Axes best;
  for (const auto stride : {&Axis::lhs_stride, &Axis::rhs_stride}) {
    Axes ordered = contracted_;
    std::stable_sort(ordered.begin(), ordered.end(),
                     [stride](const Axis& a, const Axis& b) { return a.*stride < b.*stride; });
    const int score =
        (ReadsAsItLies(true, ordered, product) ? 1 : 0) + (ReadsAsItLies(false, ordered, product) ? 1 : 0);
    if (score > best_score) {
      best_score = score;
      best = ordered;
    }
  }
  contracted_ = best;
}

// Packs to unit stride along the contracted axes where the operand has them innermost, else along the free ones;
// matrices one after the other.
void Contraction::PlanPack(bool is_lhs, MatrixProduct& product) {
  const auto stride = is_lhs ? &Axis::lhs_stride : &Axis::rhs_stride;
  const Axes& free = is_lhs ? rows_ : columns_;
  const auto innermost = [stride](const Axes& axes) {
    int64_t least = std::numeric_limits<int64_t>::max();
    for (const Axis& axis : axes) {
      if (axis.size > 1) least = std::min(least, axis.*stride);
    }
    return least;
  };
  const bool reads_columns = computed_ == DType::kBool || computed_ == DType::kI32 || computed_ == DType::kI64;
  const bool contracted_first = !(is_lhs && reads_columns) && innermost(contracted_) < innermost(free);
  const int64_t outer_stride = contracted_first ? product.k : Elements(free);

  absl::InlinedVector<CopyAxis, 8> copy;
  int64_t dst_stride = 1;
  const auto add = [&](Axes& axes) {
    for (const Axis& axis : axes) {
      copy.push_back({axis.size, axis.*stride, dst_stride});
      dst_stride *= axis.size;
    }
  };
  Axes free_copy = free;
  add(contracted_first ? contracted_ : free_copy);
  add(contracted_first ? free_copy : contracted_);
  const int64_t matrix = dst_stride;
  add(batch_);
  int64_t batch_stride = matrix;
  for (Axis& axis : batch_) {
    axis.*stride = batch_stride;
    batch_stride *= axis.size;
  }

  Preparation& preparation = is_lhs ? lhs_ : rhs_;
  preparation.packs = true;
  preparation.pack = StridedCopy(copy, SizeOf(preparation.dtype));
  preparation.pack_offset = Reserve(preparation.pack.dst_bytes());
  const int64_t free_stride = contracted_first ? outer_stride : 1;
  const int64_t summed_stride = contracted_first ? 1 : outer_stride;
  if (is_lhs) {
    product.a = {free_stride, summed_stride};
  } else {
    product.b = {summed_stride, free_stride};
  }
}

void Contraction::PlanConversion(Preparation& preparation) {
  preparation.converts = preparation.dtype != computed_;
  if (preparation.converts) preparation.convert_offset = Reserve(preparation.elements * SizeOf(computed_));
}

// By the product itself where it can, else beforehand.
void Contraction::PlanConjugation(const DotAxes& axes, MatrixProduct& product) {
  if (!kComplexes.Contains(computed_)) return;
  product.conjugates_a = axes.conjugates_lhs && Gemm::CanConjugateLhs(computed_, product);
  product.conjugates_b = axes.conjugates_rhs && Gemm::CanConjugateRhs(computed_, product);
  lhs_.conjugates = axes.conjugates_lhs && !product.conjugates_a;
  rhs_.conjugates = axes.conjugates_rhs && !product.conjugates_b;
  for (Preparation* side : {&lhs_, &rhs_}) {
    if (side->conjugates && !side->packs && !side->converts) {
      side->conjugate_offset = Reserve(side->elements * SizeOf(computed_));
    }
  }
}

absl::StatusOr<Contraction> Contraction::Create(const ConcreteType& lhs, const ConcreteType& rhs, const DotAxes& axes,
                                                DType result_dtype) {
  Contraction c;
  c.result_dtype_ = result_dtype;
  c.computed_ = IsHalf(result_dtype) ? DType::kF32 : result_dtype;
  c.lhs_.dtype = lhs.dtype;
  c.rhs_.dtype = rhs.dtype;
  c.lhs_.elements = lhs.num_elements();
  c.rhs_.elements = rhs.num_elements();
  c.ClassifyAxes(lhs, rhs, axes);

  MatrixProduct product;
  product.m = Elements(c.rows_);
  product.n = Elements(c.columns_);
  product.k = Elements(c.contracted_);
  product.c_column_stride = product.m;
  c.num_matrices_ = Elements(c.batch_);
  c.matrix_elements_ = product.m * product.n;
  if (c.num_matrices_ == 0 || c.matrix_elements_ == 0) return c;
  if (product.k > 0) {
    c.OrderContracted();
    if (!c.ReadsAsItLies(true, c.contracted_, product)) c.PlanPack(true, product);
    if (!c.ReadsAsItLies(false, c.contracted_, product)) c.PlanPack(false, product);
    c.PlanConversion(c.lhs_);
    c.PlanConversion(c.rhs_);
    c.PlanConjugation(axes, product);
    const bool uses_blas = c.computed_ != DType::kBool && c.computed_ != DType::kI32 && c.computed_ != DType::kI64;
    if (uses_blas && !Gemm::FitsBlas(product)) {
      return Refuse(Refusal::kUnsupportedOnDevice,
                    absl::StrCat("dot_general: a size or stride of the matrices is beyond the 32 bits of BLAS: m=",
                                 product.m, ", n=", product.n, ", k=", product.k, "; contract smaller parts"));
    }
  } else {
    for (Axis& axis : c.batch_) axis = {axis.size, 0, 0};  // the operands are empty: there is nothing to step over
  }
  c.gemm_ = Gemm(c.computed_, product, c.num_matrices_);
  c.partials_offset_ = c.Reserve(c.gemm_.partial_bytes());
  if (c.result_dtype_ != c.computed_) {
    c.wide_result_offset_ = c.Reserve(c.num_matrices_ * c.matrix_elements_ * SizeOf(c.computed_));
  }
  c.num_items_ = c.num_matrices_ * c.gemm_.num_blocks();
  c.items_per_task_ = std::max<int64_t>(1, kTaskWork / std::max<int64_t>(1, c.gemm_.block_work()));
  return c;
}

const void* Contraction::Prepare(const Preparation& preparation, const void* operand, char* scratch,
                                 ThreadPool& pool) const {
  if (preparation.packs) {
    char* packed = scratch + preparation.pack_offset;
    pool.ParallelFor(preparation.pack.num_tasks(),
                     [&](int64_t task) { preparation.pack.RunTask(task, operand, packed); });
    operand = packed;
  }
  if (preparation.converts) {
    const char* from = static_cast<const char*>(operand);
    char* converted = scratch + preparation.convert_offset;
    pool.ParallelForBlocks(preparation.elements, kConvertBlock, [&](int64_t begin, int64_t end) {
      WidenRun(preparation.dtype, computed_, from + begin * SizeOf(preparation.dtype),
               converted + begin * SizeOf(computed_), end - begin);
    });
    operand = converted;
  }
  if (preparation.conjugates) {
    const int64_t offset = preparation.converts ? preparation.convert_offset
                           : preparation.packs  ? preparation.pack_offset
                                                : preparation.conjugate_offset;
    const char* from = static_cast<const char*>(operand);
    char* conjugated = scratch + offset;
    pool.ParallelForBlocks(preparation.elements, kConvertBlock, [&](int64_t begin, int64_t end) {
      ConjugateRun(computed_, from + begin * SizeOf(computed_), conjugated + begin * SizeOf(computed_), end - begin);
    });
    operand = conjugated;
  }
  return operand;
}

void Contraction::RunItem(int64_t item, const char* lhs, const char* rhs, char* result, char* partials) const {
  int64_t matrix = item;
  int64_t block = 0;
  if (gemm_.num_blocks() > 1) {
    matrix = item / gemm_.num_blocks();
    block = item % gemm_.num_blocks();
  }
  int64_t rest = matrix;
  int64_t lhs_offset = 0;
  int64_t rhs_offset = 0;
  for (size_t k = 0; k < batch_.size(); ++k) {
    const Axis& axis = batch_[k];
    const bool is_last = k + 1 == batch_.size();  // spares tiny products a division
    const int64_t index = is_last ? rest : rest % axis.size;
    lhs_offset += index * axis.lhs_stride;
    rhs_offset += index * axis.rhs_stride;
    if (!is_last) rest /= axis.size;
  }
  const int64_t bytes = SizeOf(computed_);
  gemm_.RunBlock(block, lhs + lhs_offset * bytes, rhs + rhs_offset * bytes, result + matrix * matrix_elements_ * bytes,
                 partials);
}

void Contraction::Run(const void* lhs, const void* rhs, void* result, void* scratch_base, ThreadPool& pool) const {
  if (num_items_ == 0) return;
  char* scratch = static_cast<char*>(scratch_base);
  const char* a = static_cast<const char*>(Prepare(lhs_, lhs, scratch, pool));
  const char* b = static_cast<const char*>(Prepare(rhs_, rhs, scratch, pool));
  const bool rounds = result_dtype_ != computed_;
  char* c = rounds ? scratch + wide_result_offset_ : static_cast<char*>(result);
  char* partials = scratch + partials_offset_;
  if (num_items_ == 1) {
    RunItem(0, a, b, c, partials);
  } else {
    pool.ParallelForBlocks(num_items_, items_per_task_, [&](int64_t begin, int64_t end) {
      for (int64_t item = begin; item < end; ++item) RunItem(item, a, b, c, partials);
    });
  }
  if (num_matrices_ == 1) gemm_.JoinPartials(partials, c);
  if (rounds) {
    pool.ParallelForBlocks(num_matrices_ * matrix_elements_, kConvertBlock, [&](int64_t begin, int64_t end) {
      NarrowToHalf(result_dtype_, reinterpret_cast<const float*>(c) + begin, static_cast<uint16_t*>(result) + begin,
                   end - begin);
    });
  }
}

}  // namespace tensord::cpu
