#include "backends/cpu/linalg/spectra.h"

#include <optional>

#include "backends/cpu/linalg/lapack/batch.h"
#include "backends/cpu/linalg/lapack/copies.h"
#include "backends/cpu/linalg/lapack/dtypes.h"
#include "backends/cpu/linalg/lapack/lapack.h"
#include "backends/cpu/linalg/large/complex_decompositions.h"
#include "backends/cpu/linalg/large/decompositions.h"
#include "backends/cpu/linalg/large/eig.h"
#include "backends/cpu/linalg/large/oblong_svd.h"
#include "backends/cpu/linalg/large/values.h"
#include "engine/base/status_macros.h"
#include "engine/families/linalg/linalg_ops.h"

namespace tensord::cpu {
namespace {

// The decomposition of one large matrix on all threads.
template <typename T>
using LargeEigh = std::conditional_t<lapack::kIsComplex<T>, ComplexEigh<lapack::Real<T>>, BlockedEigh<lapack::Real<T>>>;

// The workspace of a call that only asks for the size of one.
template <typename T>
inline constexpr T* kQuery = nullptr;

// The largest of LAPACK's workspaces here has about 5·k² numbers, for k the smaller size of a matrix.
absl::Status CheckWorkspace(const BoundInstruction& instruction) {
  const Shape& shape = instruction.operands[0].shape;
  const int64_t few = std::min(shape[0], shape[1]), many = std::max(shape[0], shape[1]);
  constexpr int64_t kMost = std::numeric_limits<lapack_int>::max();
  if (many <= kMost / 8 && few <= 20000 && many * few <= kMost / 8) return absl::OkStatus();
  return Refuse(
      Refusal::kUnsupportedOnDevice,
      absl::StrCat("LAPACK, which counts in 32 bits, has no workspace for matrices of ", shape[0], " x ", shape[1]));
}

// Singular values of any matrix by divide and conquer (gesdd), and by QR iterations (gesvd) if that fails.
template <typename T>
class SvdRoutine {
 public:
  using R = lapack::Real<T>;
  static constexpr Refusal kRefusal = Refusal::kNoConvergence;

  explicit SvdRoutine(const BoundInstruction& instruction)
      : m_(instruction.operands[0].shape[0]), n_(instruction.operands[0].shape[1]) {
    const bool only_values = instruction.results.size() == 1;
    const bool full = !only_values && instruction.attrs->Flag("full");
    vectors_ = only_values ? lapack::Vectors::kNone : full ? lapack::Vectors::kFull : lapack::Vectors::kThin;
    const lapack::SvdArguments<T> query = Arguments({});
    work_size_ = std::max(lapack::Gesdd(query, kQuery<T>, 0), lapack::Gesvd(query, kQuery<T>, 0));
    a_ = layout_.Add<T>(m_ * n_);
    work_ = layout_.Add<T>(work_size_);
    if (lapack::kIsComplex<T>) real_work_ = layout_.Add<R>(lapack::GesddRealWorkSize(vectors_, m_, n_));
    integer_work_ = layout_.Add<lapack_int>(lapack::GesddIntegerWorkSize(m_, n_));
    if (only_values) large_values_ = LargeSvdValues<T>::Plan(m_, n_);
    if (!only_values) large_ = LargeSvd<T>::Plan(m_, n_, full);
    if (!only_values) oblong_ = OblongSvd<T>::Plan(m_, n_, full);
  }

  int64_t scratch_bytes() const {
    return std::max({layout_.bytes(), large_.has_value() ? large_->scratch_bytes() : 0,
                     oblong_.has_value() ? oblong_->scratch_bytes() : 0,
                     large_values_.has_value() ? large_values_->scratch_bytes() : 0});
  }

  int64_t Run(const MatrixCall& call) const {
    const T* const a = call.operand<T>(0);
    const lapack::SvdArguments<T> arguments = Arguments(call);
    if (!AreFinite(a, m_ * n_)) {
      FillNaN(arguments);
      return 0;
    }
    if (large_values_.has_value() && large_values_->Run(a, arguments.s, call.scratch, *call.pool) == 0) return 0;
    if (large_.has_value() && RunLarge(*large_, a, arguments, call) == 0) return 0;
    if (oblong_.has_value() && RunLarge(*oblong_, a, arguments, call) == 0) return 0;
    std::copy_n(a, m_ * n_, arguments.a);
    int64_t info = lapack::Gesdd(arguments, call.at<T>(work_), work_size_);
    if (info <= 0) return info;
    std::copy_n(a, m_ * n_, arguments.a);
    return lapack::Gesvd(arguments, call.at<T>(work_), work_size_);
  }

 private:
  // A scaled matrix lies first in the larger one of the matrices of vectors.
  template <typename Svd>
  int64_t RunLarge(const Svd& svd, const T* a, const lapack::SvdArguments<T>& arguments, const MatrixCall& call) const {
    const R scale = ScaleToOrdinary(LargestOf(a, m_ * n_));
    if (scale != 1) {
      T* const scaled = m_ >= n_ ? arguments.u : arguments.vh;
      std::transform(a, a + m_ * n_, scaled, [scale](T x) { return x * scale; });
      a = scaled;
    }
    const int64_t info = svd.Run(a, arguments.u, arguments.s, arguments.vh, call.scratch, *call.pool);
    Divide(arguments.s, std::min(m_, n_), scale);
    return info;
  }

  lapack::SvdArguments<T> Arguments(const MatrixCall& call) const {
    const bool has_vectors = vectors_ != lapack::Vectors::kNone;
    lapack::SvdArguments<T> arguments{.vectors = vectors_, .m = m_, .n = n_};
    arguments.s = call.result<R>(has_vectors ? 1 : 0);
    if (has_vectors) {
      arguments.u = call.result<T>(0);
      arguments.vh = call.result<T>(2);
    }
    if (call.scratch == nullptr) return arguments;  // a query
    arguments.a = call.at<T>(a_);
    arguments.real_work = call.at<R>(real_work_);
    arguments.integer_work = call.at<lapack_int>(integer_work_);
    return arguments;
  }

  void FillNaN(const lapack::SvdArguments<T>& arguments) const {
    const int64_t k = std::min(m_, n_);
    std::fill_n(arguments.s, k, NaN<R>());
    if (vectors_ == lapack::Vectors::kNone) return;
    const bool full = vectors_ == lapack::Vectors::kFull;
    std::fill_n(arguments.u, m_ * (full ? m_ : k), NaN<T>());
    std::fill_n(arguments.vh, (full ? n_ : k) * n_, NaN<T>());
  }

  int64_t m_, n_;
  lapack::Vectors vectors_;
  int64_t work_size_ = 0;
  std::optional<LargeSvd<T>> large_;
  std::optional<OblongSvd<T>> oblong_;
  std::optional<LargeSvdValues<T>> large_values_;
  ScratchLayout layout_;
  int64_t a_ = 0, work_ = 0, real_work_ = 0, integer_work_ = 0;
};

// Eigenvalues of Hermitian matrices by divide and conquer (syevd, heevd).
template <typename T>
class EighRoutine {
 public:
  using R = lapack::Real<T>;
  static constexpr Refusal kRefusal = Refusal::kNoConvergence;

  explicit EighRoutine(const BoundInstruction& instruction)
      : n_(instruction.operands[0].shape[0]), has_vectors_(instruction.results.size() == 2) {
    R real_size = 0;  // a query answers in all three workspaces
    lapack_int integer_size = 0;
    const lapack::HermitianArguments<T> query{
        .vectors = has_vectors_, .n = n_, .real_work = &real_size, .integer_work = &integer_size};
    work_size_ = lapack::Heevd(query, kQuery<T>, 0);
    if (!has_vectors_) a_ = layout_.Add<T>(n_ * n_);
    work_ = layout_.Add<T>(work_size_);
    if (lapack::kIsComplex<T>) real_work_ = layout_.Add<R>(lapack::HeevdRealWorkSize(has_vectors_, n_));
    integer_work_ = layout_.Add<lapack_int>(lapack::HeevdIntegerWorkSize(has_vectors_, n_));
    if (has_vectors_) large_ = LargeEigh<T>::Plan(n_);
    if (!has_vectors_) large_values_ = LargeEighValues<T>::Plan(n_);
  }

  int64_t scratch_bytes() const {
    return std::max({layout_.bytes(), large_.has_value() ? large_->scratch_bytes() : 0,
                     large_values_.has_value() ? large_values_->scratch_bytes() : 0});
  }

  int64_t Run(const MatrixCall& call) const {
    const lapack::HermitianArguments<T> arguments{.vectors = has_vectors_,
                                                  .n = n_,
                                                  .a = has_vectors_ ? call.result<T>(1) : call.at<T>(a_),
                                                  .values = call.result<R>(0),
                                                  .real_work = call.at<R>(real_work_),
                                                  .integer_work = call.at<lapack_int>(integer_work_)};
    const T* const a = call.operand<T>(0);
    if (!IsLowerFinite(a, n_)) {
      std::fill_n(arguments.values, n_, NaN<R>());
      if (has_vectors_) std::fill_n(arguments.a, n_ * n_, NaN<T>());
      return 0;
    }
    if (large_values_.has_value()) return large_values_->Run(a, arguments.values, call.scratch, *call.pool);
    if (large_.has_value()) return RunLarge(a, arguments, call);
    CopyLower(a, n_, 0, n_, n_, arguments.a);
    return lapack::Heevd(arguments, call.at<T>(work_), work_size_);
  }

 private:
  // A scaled matrix lies in the place of the vectors.
  int64_t RunLarge(const T* a, const lapack::HermitianArguments<T>& arguments, const MatrixCall& call) const {
    const R scale = ScaleToOrdinary(LargestOfLower(a, n_));
    if (scale != 1) {
      std::transform(a, a + n_ * n_, arguments.a, [scale](T x) { return x * scale; });
      a = arguments.a;
    }
    const int64_t info = large_->Run(a, arguments.values, arguments.a, call.scratch, *call.pool);
    Divide(arguments.values, n_, scale);
    return info;
  }

  int64_t n_;
  bool has_vectors_;
  int64_t work_size_ = 0;
  std::optional<LargeEigh<T>> large_;
  std::optional<LargeEighValues<T>> large_values_;
  ScratchLayout layout_;
  int64_t a_ = 0, work_ = 0, real_work_ = 0, integer_work_ = 0;
};

// Eigenvalues of any square matrix by QR iterations (geev).
template <typename T>
class EigRoutine {
 public:
  using R = lapack::Real<T>;
  using C = std::complex<R>;
  static constexpr Refusal kRefusal = Refusal::kNoConvergence;

  explicit EigRoutine(const BoundInstruction& instruction)
      : n_(instruction.operands[0].shape[0]), has_vectors_(instruction.results.size() == 2) {
    large_ = LargeEig<T>::Plan(n_, has_vectors_);
    if (large_.has_value()) return;
    T some{};  // a query asks whether there are vectors, and answers in the real workspace too
    R real_size = 0;
    const lapack::GeneralArguments<T> query{
        .n = n_, .vectors = has_vectors_ ? &some : nullptr, .real_work = &real_size};
    work_size_ = lapack::Geev(query, kQuery<T>, 0);
    a_ = layout_.Add<T>(n_ * n_);
    work_ = layout_.Add<T>(work_size_);
    if (lapack::kIsComplex<T>) {
      real_work_ = layout_.Add<R>(2 * n_);
      return;
    }
    values_ = layout_.Add<T>(n_);
    imaginary_parts_ = layout_.Add<T>(n_);
    if (has_vectors_) vectors_ = layout_.Add<T>(n_ * n_);
  }

  int64_t scratch_bytes() const { return large_.has_value() ? large_->scratch_bytes() : layout_.bytes(); }

  int64_t Run(const MatrixCall& call) const {
    const T* const a = call.operand<T>(0);
    C* const values = call.result<C>(0);
    C* const vectors = has_vectors_ ? call.result<C>(1) : nullptr;
    if (!AreFinite(a, n_ * n_)) {
      std::fill_n(values, n_, NaN<C>());
      if (has_vectors_) std::fill_n(vectors, n_ * n_, NaN<C>());
      return 0;
    }
    if (large_.has_value()) return large_->Run(a, values, vectors, call.scratch, *call.pool);
    lapack::GeneralArguments<T> arguments{.n = n_, .a = call.at<T>(a_)};
    std::copy_n(a, n_ * n_, arguments.a);
    if constexpr (lapack::kIsComplex<T>) {
      arguments.values = values;
      arguments.vectors = vectors;
      arguments.real_work = call.at<R>(real_work_);
      return lapack::Geev(arguments, call.at<T>(work_), work_size_);
    } else {
      arguments.values = call.at<T>(values_);
      arguments.imaginary_parts = call.at<T>(imaginary_parts_);
      arguments.vectors = has_vectors_ ? call.at<T>(vectors_) : nullptr;
      if (const int64_t info = lapack::Geev(arguments, call.at<T>(work_), work_size_); info != 0) return info;
      for (int64_t j = 0; j < n_; ++j) values[j] = C(arguments.values[j], arguments.imaginary_parts[j]);
      if (has_vectors_) PairUp(arguments, vectors);
      return 0;
    }
  }

 private:
  // The columns of a conjugate pair of values are the real and the imaginary parts of the first one's vector.
  void PairUp(const lapack::GeneralArguments<T>& from, C* into) const {
    for (int64_t j = 0; j < n_; ++j) {
      const T *const real = from.vectors + j * n_, *const imaginary = real + n_;
      if (from.imaginary_parts[j] == 0) {
        std::copy_n(real, n_, into + j * n_);
        continue;
      }
      for (int64_t i = 0; i < n_; ++i) {
        into[j * n_ + i] = C(real[i], imaginary[i]);
        into[(j + 1) * n_ + i] = C(real[i], -imaginary[i]);
      }
      ++j;
    }
  }

  int64_t n_;
  bool has_vectors_;
  int64_t work_size_ = 0;
  std::optional<LargeEig<T>> large_;
  ScratchLayout layout_;
  int64_t a_ = 0, work_ = 0, real_work_ = 0;
  int64_t values_ = 0, imaginary_parts_ = 0, vectors_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> MakeLapackSvd(const BoundInstruction& instruction) {
  RETURN_IF_ERROR(CheckWorkspace(instruction));
  return MakeMatrixKernel<SvdRoutine>(instruction);
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeLapackEigh(const BoundInstruction& instruction) {
  RETURN_IF_ERROR(CheckWorkspace(instruction));
  return MakeMatrixKernel<EighRoutine>(instruction);
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeLapackEig(const BoundInstruction& instruction) {
  RETURN_IF_ERROR(CheckWorkspace(instruction));
  return MakeMatrixKernel<EigRoutine>(instruction);
}

}  // namespace tensord::cpu
