#include "backends/cpu/linalg/large/hessenberg.h"

#include <algorithm>

#include "backends/cpu/linalg/lapack/general_steps.h"
#include "backends/cpu/machine/thread_pool.h"
#include "engine/base/stop_signal.h"

namespace tensord::cpu {
namespace {

constexpr int64_t kHessenbergPanelColumns = 32;  // as LAPACK's gehrd has
constexpr int64_t kHessenbergChunk =
    128;  // columns of an update, a task: deep enough for BLAS, and a few for each thread
constexpr int64_t kHessenbergTail = 128;  // columns that LAPACK reduces one by one

lapack_int Whole(int64_t x) { return static_cast<lapack_int>(x); }

}  // namespace

template <typename T>
HessenbergReduction<T>::HessenbergReduction(int64_t n) : n_(n) {
  tail_work_size_ = lapack::Gehrd(Whole(n), 1, Whole(n), static_cast<T*>(nullptr), nullptr, nullptr, 0);
  triangle_ = layout_.Add<T>(kHessenbergPanelColumns * kHessenbergPanelColumns);
  y_ = layout_.Add<T>(n * kHessenbergPanelColumns);
  v_ = layout_.Add<T>(n * kHessenbergPanelColumns);
  tail_tau_ = layout_.Add<T>(n);
  work_ = layout_.Add<T>(std::max(tail_work_size_, (n + kHessenbergChunk) * kHessenbergPanelColumns));
}

// Updates the columns after the panel: A - Y·V^H from the right, and then the adjoint of its reflectors from the left.
template <typename T>
void HessenbergReduction<T>::UpdateColumns(const Panel& panel, int64_t column, int64_t count, T* a, const T* v,
                                           const T* triangle, const T* y, T* work) const {
  const int64_t below = panel.first + 1, rows = panel.end - below;
  if (column < panel.end) {
    lapack::SubtractProduct({.m = panel.end, .n = count, .k = panel.columns, .transpose_b = CblasConjTrans}, y, n_,
                            v + (column - below), rows, a + column * n_, n_);
  }
  lapack::ApplyBlockAdjoint(Whole(rows), Whole(count), Whole(panel.columns), v, Whole(rows), triangle,
                            Whole(kHessenbergPanelColumns), a + column * n_ + below, Whole(n_), work);
}

// The rows above the panel's reflectors, of its own columns.
template <typename T>
void HessenbergReduction<T>::UpdatePanel(const Panel& panel, T* a, T* y) const {
  const int64_t rows = panel.first + 1, columns = panel.columns - 1;
  lapack::MultiplyByUnitLower(rows, columns, a + panel.first * n_ + rows, n_, y, n_);
  for (int64_t j = 0; j < columns; ++j) {
    T* const into = a + (panel.first + 1 + j) * n_;
    for (int64_t i = 0; i < rows; ++i) into[i] -= y[j * n_ + i];
  }
}

template <typename T>
void HessenbergReduction<T>::Run(int64_t first, int64_t end, T* a, T* tau, char* scratch, ThreadPool& pool) const {
  const auto at = [&](int64_t place) { return reinterpret_cast<T*>(scratch + place); };
  T *const triangle = at(triangle_), *const y = at(y_), *const v = at(v_), *const work = at(work_);
  std::fill_n(tau, n_ - 1, T(0));
  int64_t done = first;
  for (; done + kHessenbergTail < end; done += kHessenbergPanelColumns) {
    if (StopRequested()) return;
    const Panel panel{.first = done, .columns = kHessenbergPanelColumns, .end = end};
    lapack::Lahr2(Whole(end), Whole(done + 1), Whole(panel.columns), a + done * n_, Whole(n_), tau + done, triangle,
                  Whole(kHessenbergPanelColumns), y);
    const int64_t below = done + 1, rows = end - below, next = done + panel.columns;
    for (int64_t j = 0; j < panel.columns; ++j) {
      T* const column = v + j * rows;
      std::fill_n(column, j, T(0));
      column[j] = 1;
      std::copy(a + (done + j) * n_ + below + j + 1, a + (done + j) * n_ + end, column + j + 1);
    }
    // Columns in [next, end) are also updated from the right.
    const int64_t chunks = (end - next + kHessenbergChunk - 1) / kHessenbergChunk;
    const int64_t chunks_beyond = (n_ - end + kHessenbergChunk - 1) / kHessenbergChunk;
    pool.ParallelFor(chunks + chunks_beyond, [&](int64_t chunk) {
      const bool is_beyond = chunk >= chunks;
      const int64_t begin = is_beyond ? end + (chunk - chunks) * kHessenbergChunk : next + chunk * kHessenbergChunk;
      const int64_t count = std::min(kHessenbergChunk, (is_beyond ? n_ : end) - begin);
      // A part of the work for each chunk: its columns'.
      UpdateColumns(panel, begin, count, a, v, triangle, y, work + (begin - next) * kHessenbergPanelColumns);
    });
    UpdatePanel(panel, a, y);
  }
  if (StopRequested()) return;
  // LAPACK clears the elements before it.
  T* const tail_tau = at(tail_tau_);
  lapack::Gehrd(Whole(n_), Whole(done + 1), Whole(end), a, tail_tau, work, tail_work_size_);
  std::copy(tail_tau + done, tail_tau + n_ - 1, tau + done);
}

template class HessenbergReduction<float>;
template class HessenbergReduction<double>;
template class HessenbergReduction<lapack::Complex64>;
template class HessenbergReduction<lapack::Complex128>;

}  // namespace tensord::cpu
