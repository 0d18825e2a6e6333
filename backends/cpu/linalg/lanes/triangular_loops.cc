#include <algorithm>

#include "backends/cpu/linalg/lanes/loop_tables.h"

#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/linalg/lanes/triangular_loops.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "backends/cpu/linalg/lanes/dtypes-inl.h"
#include "backends/cpu/linalg/lanes/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tensord::cpu {
namespace HWY_NAMESPACE {
namespace {

#if HWY_TARGET != HWY_SCALAR && !HWY_HAVE_SCALABLE

// Gauss's elimination with the largest entry of each column as its pivot, chosen lane by lane, of the first `steps`
// columns of a, which has `columns`: those of a right side become L^-1 P b. Rows are exchanged from column `first` of
// each step on, or everywhere; `on_swap` hears of it.
template <class N, class OnSwap>
HWY_INLINE void Eliminate(LaneMatrix<N> a, int64_t steps, int64_t columns, bool keeps_l, OnSwap on_swap,
                          LaneInfo<typename N::Real>* info) {
  using T = typename N::Real;
  const Tag<T> d;
  for (int64_t j = 0; j < steps; ++j) {
    Reals<T> most = Magnitude(a(j, j)), row = SetReal(static_cast<T>(j));
    for (int64_t i = j + 1; i < a.rows; ++i) {
      const Reals<T> magnitude = Magnitude(a(i, j));
      const auto larger = hn::Lt(most, magnitude);
      most = hn::IfThenElse(larger, magnitude, most);
      row = hn::IfThenElse(larger, SetReal(static_cast<T>(i)), row);
    }
    for (int64_t i = j + 1; i < a.rows; ++i) {
      const auto here = hn::Eq(row, SetReal(static_cast<T>(i)));
      if (hn::AllFalse(d, here)) continue;
      for (int64_t c = keeps_l ? 0 : j; c < columns; ++c) SwapWhere<N>(here, a.at(j, c), a.at(i, c));
      on_swap(here, j, i);
    }
    const N pivot = a(j, j);
    const auto is_zero = IsZero(pivot);
    info->Fail(is_zero, j + 1);
    const N divisor = Select(is_zero, Constant<N>(1), pivot);  // of zeros
    for (int64_t i = j + 1; i < a.rows; ++i) a.Set(i, j, Divide(a(i, j), divisor));
    for (int64_t c = j + 1; c < columns; ++c) {
      const N factor = a(j, c);
      for (int64_t i = j + 1; i < a.rows; ++i) a.Set(i, c, NegMulAdd(a(i, j), factor, a(i, c)));
    }
  }
}

template <class N, typename Element>
SmallMatrixFailure Lu(const SmallMatrixBatch& batch, void* scratch) {
  using T = typename N::Real;
  const Tag<T> d;
  const int64_t m = batch.rows, n = batch.columns, k = std::min(m, n);
  LaneScratch<N> room(scratch);
  const LaneMatrix<N> a = room.Matrix(m, n);
  T* const order = room.Vector(m);
  const LaneMatrix<N> parity = room.Matrix(1, 1), result = room.Matrix(std::max(m, n), k);
  const LaneMatrix<N> l{result.data, m}, u{result.data, k};
  const Reals<T> zero = hn::Zero(d);
  constexpr int64_t kParts = N::kParts;
  const auto store = [&](LaneMatrix<N> x, int64_t columns, int64_t begin, int64_t count, void* result) HWY_ATTR {
    const int64_t size = x.rows * columns * kParts;
    StoreLanes(x.data, zero, size, size, count, static_cast<Element*>(result) + begin * size);
  };
  const int64_t a_size = m * n * kParts;
  const Element* const from = static_cast<const Element*>(batch.operands[0]);
  for (int64_t begin = 0; begin < batch.count; begin += kLanes<T>) {
    const int64_t count = std::min(kLanes<T>, batch.count - begin);
    LoadLanes(from + begin * a_size, a_size, a_size, count, a.data);
    for (int64_t i = 0; i < m; ++i) hn::Store(SetReal(static_cast<T>(i)), d, order + i * kLanes<T>);
    const Reals<T> poison = ClearNonFinite(a_size, a.data);
    parity.Set(0, 0, Constant<N>(1));
    LaneInfo<T> info;  // a singular matrix is none
    const auto on_swap = [&](Lanes<T> where, int64_t i, int64_t j) HWY_ATTR {
      SwapWhere<RealLanes<T>>(where, order + i * kLanes<T>, order + j * kLanes<T>);
      const N sign = parity(0, 0);
      parity.Set(0, 0, Select(where, Scale(sign, SetReal(T(-1))), sign));
    };
    Eliminate(a, k, n, true, on_swap, &info);
    const int64_t p_size = m * m * kParts;
    T* const p = static_cast<T*>(batch.results[0]) + begin * p_size;
    std::fill_n(p, count * p_size, T(0));
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t lane = 0; lane < count; ++lane) {
        const int64_t row = static_cast<int64_t>(order[i * kLanes<T> + lane]);
        p[lane * p_size + (row * m + i) * kParts] = T(1);
      }
    }
    for (int64_t j = 0; j < k; ++j) {
      for (int64_t i = 0; i < m; ++i) l.Set(i, j, i > j ? AddToParts(a(i, j), poison) : Constant<N>(i == j ? 1 : 0));
    }
    store(l, k, begin, count, batch.results[1]);
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t i = 0; i < k; ++i) u.Set(i, j, i <= j ? AddToParts(a(i, j), poison) : Constant<N>(0));
    }
    store(u, n, begin, count, batch.results[2]);
    store(parity, 1, begin, count, batch.results[3]);
  }
  return {};
}

// Unknowns `step` apart in x, of `systems` that are `next` apart: op(T) x = b, where T(i, j) lies at i * row + j *
// column of t; its upper triangle where not `forward`.
template <class N>
HWY_NOINLINE void Substitute(LaneMatrix<N> t, int64_t row, int64_t column, bool forward, bool unit_diagonal,
                             typename N::Real* x, int64_t step, int64_t systems, int64_t next) {
  const int64_t n = t.rows;
  const auto t_at = [&](int64_t i, int64_t j) HWY_ATTR { return Get<N>(t.data + (i * row + j * column) * N::kStep); };
  for (int64_t k = 0; k < n; ++k) {
    const int64_t j = forward ? k : n - 1 - k;
    const N diagonal = t_at(j, j);
    const int64_t first = forward ? j + 1 : 0, last = forward ? n : j;
    for (int64_t s = 0; s < systems; ++s) {
      typename N::Real* const unknowns = x + s * next * N::kStep;
      N value = Get<N>(unknowns + j * step * N::kStep);
      if (!unit_diagonal) {
        value = Divide(value, diagonal);
        Put(value, unknowns + j * step * N::kStep);
      }
      for (int64_t i = first; i < last; ++i) {
        typename N::Real* const at = unknowns + i * step * N::kStep;
        Put(NegMulAdd(t_at(i, j), value, Get<N>(at)), at);
      }
    }
  }
}

template <class N, typename Element>
SmallMatrixFailure Solve(const SmallMatrixBatch& batch, void* scratch) {
  using T = typename N::Real;
  const int64_t n = batch.rows, r = batch.right_sides;
  LaneScratch<N> room(scratch);
  const LaneMatrix<N> a = room.Matrix(n, n + r), x{a.at(0, n), n};
  const int64_t a_size = n * n * N::kParts, x_size = n * r * N::kParts;
  const Element* const from = static_cast<const Element*>(batch.operands[0]);
  const Element* const sides = static_cast<const Element*>(batch.operands[1]);
  Element* const to = static_cast<Element*>(batch.results[0]);
  SmallMatrixFailure failure;
  for (int64_t begin = 0; begin < batch.count; begin += kLanes<T>) {
    const int64_t count = std::min(kLanes<T>, batch.count - begin);
    LoadLanes(from + begin * a_size, a_size, a_size, count, a.data);
    LoadLanes(sides + begin * x_size, x_size, x_size, count, x.data);
    const Reals<T> poison = ClearNonFinite(a_size, a.data);
    LaneInfo<T> info;
    Eliminate(
        a, n, n + r, false, [](Lanes<T>, int64_t, int64_t) HWY_ATTR {}, &info);
    Substitute(a, 1, n, false, false, x.data, 1, r, n);
    StoreLanes(x.data, poison, x_size, x_size, count, to + begin * x_size);
    info.Forgive(hn::IsNaN(poison));
    if (failure.matrix < 0) failure = info.First(begin, count);
  }
  return failure;
}

template <class N, typename Element>
SmallMatrixFailure TriangularSolve(const SmallMatrixBatch& batch, void* scratch) {
  using T = typename N::Real;
  const int64_t n = batch.rows, r = batch.right_sides;
  LaneScratch<N> room(scratch);
  const LaneMatrix<N> a = room.Matrix(n, n), x = room.Matrix(n, r);
  const int64_t a_size = n * n * N::kParts, x_size = n * r * N::kParts;
  // X op(A) = B is op(A)^T X^T = B^T.
  const bool is_transposed = batch.transposed == batch.left_side;
  const bool forward = batch.lower != is_transposed;
  const int64_t row = is_transposed ? n : 1, column = is_transposed ? 1 : n;
  const Element* const from = static_cast<const Element*>(batch.operands[0]);
  const Element* const sides = static_cast<const Element*>(batch.operands[1]);
  Element* const to = static_cast<Element*>(batch.results[0]);
  for (int64_t begin = 0; begin < batch.count; begin += kLanes<T>) {
    const int64_t count = std::min(kLanes<T>, batch.count - begin);
    LoadLanes(from + begin * a_size, a_size, a_size, count, a.data);
    LoadLanes(sides + begin * x_size, x_size, x_size, count, x.data);
    if (batch.conjugated) {
      for (int64_t i = 0; i < n * n; ++i) a.Set(i, 0, Conj(a(i, 0)));
    }
    const int64_t step = batch.left_side ? 1 : r, next = batch.left_side ? n : 1;
    Substitute(a, row, column, forward, batch.unit_diagonal, x.data, step, r, next);
    StoreLanes(x.data, hn::Zero(Tag<T>()), x_size, x_size, count, to + begin * x_size);
  }
  return {};
}

template <class N>
HWY_NOINLINE void FactorCholesky(LaneMatrix<N> a, LaneInfo<typename N::Real>* info) {
  using T = typename N::Real;
  const Tag<T> d;
  for (int64_t j = 0; j < a.rows; ++j) {
    Reals<T> square = hn::Zero(d);
    for (int64_t k = 0; k < j; ++k) square = AddSquare(a(j, k), square);
    square = hn::Sub(a(j, j).re, square);
    info->Fail(hn::Not(hn::Lt(hn::Zero(d), square)), j + 1);
    const Reals<T> diagonal = hn::Sqrt(square), reciprocal = hn::Div(SetReal(T(1)), diagonal);
    for (int64_t i = 0; i < j; ++i) a.Set(i, j, Constant<N>(0));
    a.Set(j, j, FromReal<N>(diagonal));
    for (int64_t i = j + 1; i < a.rows; ++i) {
      N sum = a(i, j);
      for (int64_t k = 0; k < j; ++k) sum = NegMulAdd(a(i, k), Conj(a(j, k)), sum);
      a.Set(i, j, Scale(sum, reciprocal));
    }
  }
}

template <class N, typename Element>
SmallMatrixFailure Cholesky(const SmallMatrixBatch& batch, void* scratch) {
  using T = typename N::Real;
  LaneScratch<N> room(scratch);
  const LaneMatrix<N> a = room.Matrix(batch.rows, batch.rows);
  const int64_t size = batch.rows * batch.rows * N::kParts;
  const Element* const from = static_cast<const Element*>(batch.operands[0]);
  SmallMatrixFailure failure;
  for (int64_t begin = 0; begin < batch.count; begin += kLanes<T>) {
    const int64_t count = std::min(kLanes<T>, batch.count - begin);
    LoadLanes(from + begin * size, size, size, count, a.data);
    LaneInfo<T> info;
    FactorCholesky(a, &info);
    StoreLanes(a.data, hn::Zero(Tag<T>()), size, size, count, static_cast<Element*>(batch.results[0]) + begin * size);
    if (failure.matrix < 0) failure = info.First(begin, count);
  }
  return failure;
}

SmallMatrixLoops Loops(SmallMatrixOp op, DType dtype) {
  return LoopsOfDType<float>(dtype, [op]<class N, typename Element>() -> decltype(SmallMatrixLoops::run) {
    if (op == SmallMatrixOp::kCholesky) return &Cholesky<N, Element>;
    if (op == SmallMatrixOp::kLu) return &Lu<N, Element>;
    if (op == SmallMatrixOp::kSolve) return &Solve<N, Element>;
    return op == SmallMatrixOp::kTriangularSolve ? &TriangularSolve<N, Element> : nullptr;
  });
}

#else

SmallMatrixLoops Loops(SmallMatrixOp, DType) { return {}; }

#endif

}  // namespace

SmallMatrixLoops BestTriangularLoops(SmallMatrixOp op, DType dtype) { return Loops(op, dtype); }

}  // namespace HWY_NAMESPACE
}  // namespace tensord::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensord::cpu {

HWY_EXPORT(BestTriangularLoops);

SmallMatrixLoops GetTriangularLoops(SmallMatrixOp op, DType dtype) {
  return HWY_DYNAMIC_DISPATCH(BestTriangularLoops)(op, dtype);
}

}  // namespace tensord::cpu
#endif  // HWY_ONCE
