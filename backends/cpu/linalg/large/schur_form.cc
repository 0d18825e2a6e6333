#include "backends/cpu/linalg/large/schur_form.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "backends/cpu/linalg/lapack/number_parts.h"
#include "engine/base/stop_signal.h"

namespace tensord::cpu {
namespace {

// Windows without a deflation: after so many they grow, and the shifts of each so many are made up.
constexpr int kGrowingAfter = 4, kMadeUpEvery = 6;
constexpr int64_t kLastBlock = 75;      // rows that one window takes off as a whole
constexpr int64_t kEnoughPercent = 14;  // of the window: with so many deflated another window pays more than a sweep
constexpr int64_t kIterationsPerRow = 30;

// Returns the number of shifts; a window has half as many rows more.
int64_t ShiftsOf(int64_t n) {
  if (n < 150) return 10;
  if (n < 590) return std::max<int64_t>(10, std::llround(static_cast<double>(n) / std::log2(n))) / 2 * 2;
  return n < 3000 ? 64 : 128;
}

// Returns the number of shifts that one sweep takes; a sweep takes some tenths of a second at most.
int64_t ShiftsOfSweep(int64_t n, bool is_complex) {
  constexpr int64_t kSweepWork = int64_t{1} << 30;  // rows times columns times shifts
  return std::max<int64_t>(8, kSweepWork / (is_complex ? 4 : 1) / (n * n)) / 2 * 2;
}

template <typename T>
lapack::Real<T> SizeOfNumber(T x) {
  return std::abs(std::real(x)) + std::abs(std::imag(x));
}

}  // namespace

// The iteration on one matrix. Rows and columns are counted from 0; the active block is [top, end).
template <typename T>
class SchurForm<T>::Iteration {
 public:
  using R = lapack::Real<T>;

  Iteration(const SchurForm& form, const lapack::HessenbergArguments<T>& arguments, const lapack::QrWork<T>& work)
      : form_(form), x_(arguments), work_(work) {}

  int64_t Run(int64_t first, int64_t end) {
    int64_t left = kIterationsPerRow * std::max<int64_t>(10, end - first);
    while (end > first) {
      if (StopRequested()) return 0;
      if (left-- == 0) return end;
      int64_t top = end - 1;
      while (top > first && H(top, top - 1) != T(0)) --top;
      const int64_t window = ChooseWindow(top, end);
      const lapack::Deflation found = lapack::Deflate(Block(top, end), static_cast<lapack_int>(window), work_);
      end -= found.deflated;
      const bool deflated_enough = 100 * found.deflated > kEnoughPercent * window;
      if (end - top > 1 && (found.deflated == 0 || (!deflated_enough && end - top > kLastBlock))) {
        for (int64_t left_shifts = ChooseShifts(top, end, found.shifts); left_shifts > 0;) {
          if (StopRequested()) return 0;
          const int64_t count = std::min(form_.sweep_, left_shifts);
          lapack::Sweep(Block(top, end), static_cast<lapack_int>(end - left_shifts), static_cast<lapack_int>(count),
                        work_);
          left_shifts -= count;
        }
      }
      in_vain_ = found.deflated > 0 ? 0 : in_vain_ + 1;
    }
    return 0;
  }

 private:
  T& H(int64_t i, int64_t j) const { return x_.h[j * form_.n_ + i]; }
  T& Value(int64_t i) const { return x_.values[i]; }

  lapack::HessenbergArguments<T> Block(int64_t top, int64_t end) const {
    lapack::HessenbergArguments<T> block = x_;
    block.first = static_cast<lapack_int>(top + 1);
    block.last = static_cast<lapack_int>(end);
    return block;
  }

  int64_t ChooseWindow(int64_t top, int64_t end) {
    const int64_t rows = end - top, most = std::min(rows, form_.block_);
    const int64_t usual = rows <= 500 ? form_.shifts_ : 3 * form_.shifts_ / 2;
    window_ = std::min(most, in_vain_ < kGrowingAfter ? usual : std::max(usual, 2 * window_));
    if (window_ >= rows - 1 || rows <= kLastBlock) {
      window_ = std::min(rows, most);
    } else if (window_ < most) {
      // It begins where the matrix is nearer to falling apart.
      const int64_t begin = end - window_;
      if (SizeOfNumber(H(begin, begin - 1)) > SizeOfNumber(H(begin - 1, begin - 2))) ++window_;
    }
    return window_;
  }

  // Chooses shifts, an even number: the values of the last rows below `end`. `found` of them are eigenvalues of the
  // window.
  int64_t ChooseShifts(int64_t top, int64_t end, int64_t found) {
    const int64_t most = std::min(form_.shifts_, std::max<int64_t>(2, end - top - 1)) / 2 * 2;
    int64_t count = found;
    if ((in_vain_ + 1) % kMadeUpEvery == 0) {
      count = std::min(most, end - top);
      MakeUpShifts(end - count, end);
    } else {
      if (count <= most / 2) count = FindShifts(end - most, end);
      if (count < 2) {
        count = 2;
        FindShifts(end - 2, end);
      }
      if (count > most) SortShifts(end - count, end);
      PairShifts(end - count, end);
    }
    if (count == 2) TakeTheNearer(end);
    return std::min(most, count) / 2 * 2;
  }

  // Eigenvalues of rows and columns [begin, end) alone; how many of them, the last ones.
  int64_t FindShifts(int64_t begin, int64_t end) {
    const lapack_int rows = static_cast<lapack_int>(end - begin);
    for (int64_t j = 0; j < rows; ++j) std::copy_n(&H(begin, begin + j), rows, work_.across + j * rows);
    const lapack::HessenbergArguments<T> part{.n = rows,
                                              .first = 1,
                                              .last = rows,
                                              .h = work_.across,
                                              .values = x_.values + begin,
                                              .imaginary_parts = x_.imaginary_parts + begin};
    return rows - lapack::Lahqr(part);
  }

  void MakeUpShifts(int64_t begin, int64_t end) {
    for (int64_t i = end - 1; i > begin; i -= 2) {
      const R size = SizeOfNumber(H(i, i - 1)) + (!lapack::kIsComplex<T> && i > 1 ? SizeOfNumber(H(i - 1, i - 2)) : 0);
      Value(i) = Value(i - 1) = H(i, i) + R(0.75) * size;
      if constexpr (!lapack::kIsComplex<T>) {
        // The eigenvalues of {{a, size}, {-7/16 size, a}}.
        x_.imaginary_parts[i] = -std::sqrt(R(0.4375)) * size;
        x_.imaginary_parts[i - 1] = -x_.imaginary_parts[i];
      }
    }
  }

  // The smallest last; of conjugates both.
  void SortShifts(int64_t begin, int64_t end) {
    for (int64_t i = begin + 1; i < end; ++i) {
      for (int64_t j = i; j > begin && Magnitude(j) > Magnitude(j - 1); --j) Exchange(j, j - 1);
    }
  }

  R Magnitude(int64_t i) const {
    if constexpr (lapack::kIsComplex<T>) return SizeOfNumber(Value(i));
    return std::abs(std::real(Value(i))) + std::abs(std::real(x_.imaginary_parts[i]));
  }

  void Exchange(int64_t i, int64_t j) {
    std::swap(Value(i), Value(j));
    if constexpr (!lapack::kIsComplex<T>) std::swap(x_.imaginary_parts[i], x_.imaginary_parts[j]);
  }

  // Each two from the end are conjugates, or both real.
  void PairShifts(int64_t begin, int64_t end) {
    if constexpr (!lapack::kIsComplex<T>) {
      for (int64_t i = end - 1; i > begin + 1; i -= 2) {
        if (x_.imaginary_parts[i] == -x_.imaginary_parts[i - 1]) continue;
        Exchange(i, i - 1);
        Exchange(i - 1, i - 2);
      }
    }
  }

  // Uses one of two real shifts twice: the nearer one.
  void TakeTheNearer(int64_t end) {
    if constexpr (!lapack::kIsComplex<T>) {
      if (x_.imaginary_parts[end - 1] != 0) return;
    }
    T &last = Value(end - 1), &other = Value(end - 2);
    const T corner = H(end - 1, end - 1);
    if (SizeOfNumber(last - corner) < SizeOfNumber(other - corner)) {
      other = last;
    } else {
      last = other;
    }
  }

  const SchurForm& form_;
  const lapack::HessenbergArguments<T> x_;
  const lapack::QrWork<T> work_;
  int64_t window_ = 0;
  int in_vain_ = 0;  // windows that deflated nothing, until now
};

template <typename T>
SchurForm<T>::SchurForm(int64_t n) : n_(n), shifts_(ShiftsOf(n)), sweep_(ShiftsOfSweep(n, lapack::kIsComplex<T>)) {
  // A sweep accumulates blocks of up to three rows for each shift.
  block_ = std::max<int64_t>(3 * shifts_, kLastBlock);
  work_size_ = std::max(lapack::DeflateWorkSize(static_cast<lapack_int>(block_), T(0)), 3 * shifts_);
  vectors_ = layout_.Add<T>(block_ * block_);
  across_ = layout_.Add<T>(block_ * block_);
  along_ = layout_.Add<T>(block_ * block_);
  work_ = layout_.Add<T>(work_size_);
}

template <typename T>
int64_t SchurForm<T>::Run(int64_t first, int64_t end, T* h, T* z, T* values, T* imaginary_parts, char* scratch) const {
  for (int64_t i = 0; i < n_; ++i) {
    values[i] = h[i * (n_ + 1)];
    if (!lapack::kIsComplex<T>) imaginary_parts[i] = 0;
  }
  const auto at = [&](int64_t place) { return reinterpret_cast<T*>(scratch + place); };
  const lapack::HessenbergArguments<T> arguments{
      .n = static_cast<lapack_int>(n_), .h = h, .z = z, .values = values, .imaginary_parts = imaginary_parts};
  const lapack::QrWork<T> work{.size = static_cast<lapack_int>(block_),
                               .vectors = at(vectors_),
                               .across = at(across_),
                               .along = at(along_),
                               .work = at(work_),
                               .work_size = static_cast<lapack_int>(work_size_)};
  return Iteration(*this, arguments, work).Run(first, end);
}

template class SchurForm<float>;
template class SchurForm<double>;
template class SchurForm<lapack::Complex64>;
template class SchurForm<lapack::Complex128>;

}  // namespace tensord::cpu
