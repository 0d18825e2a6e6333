#ifndef TENSORD_BACKENDS_CPU_LINALG_LARGE_SMALL_SVD_H_
#define TENSORD_BACKENDS_CPU_LINALG_LARGE_SMALL_SVD_H_

#include <cstdint>

#include "backends/cpu/linalg/lapack/batch.h"
#include "backends/cpu/linalg/lapack/lapack.h"

namespace tensord::cpu {

// The singular value decomposition of a square matrix of so few rows that LAPACK's gesdd, one call, takes no time.
// Immutable after construction, so thread-safe; `scratch` is aligned to 64 and belongs to the call.
template <typename T>
class SmallSvd {
 public:
  using R = lapack::Real<T>;

  SmallSvd(int64_t n, bool has_vectors)
      : n_(n), vectors_(has_vectors ? lapack::Vectors::kThin : lapack::Vectors::kNone) {
    work_size_ = lapack::Gesdd(Arguments(nullptr), static_cast<T*>(nullptr), 0);
    work_ = layout_.Add<T>(work_size_);
    if (lapack::kIsComplex<T>) real_work_ = layout_.Add<R>(lapack::GesddRealWorkSize(vectors_, n, n));
    integer_work_ = layout_.Add<lapack_int>(lapack::GesddIntegerWorkSize(n, n));
  }
  int64_t scratch_bytes() const { return layout_.bytes(); }
  // `a` is undefined then; without vectors `u` and `vh` are not looked at. Returns LAPACK's info.
  int64_t Run(T* a, T* u, R* s, T* vh, char* scratch) const {
    lapack::SvdArguments<T> arguments = Arguments(scratch);
    arguments.a = a;
    arguments.s = s;
    arguments.u = u;
    arguments.vh = vh;
    return lapack::Gesdd(arguments, reinterpret_cast<T*>(scratch + work_), work_size_);
  }

 private:
  lapack::SvdArguments<T> Arguments(char* scratch) const {
    lapack::SvdArguments<T> arguments{.vectors = vectors_, .m = n_, .n = n_};
    if (scratch == nullptr) return arguments;  // a query
    arguments.real_work = reinterpret_cast<R*>(scratch + real_work_);
    arguments.integer_work = reinterpret_cast<lapack_int*>(scratch + integer_work_);
    return arguments;
  }

  int64_t n_;
  lapack::Vectors vectors_;
  int64_t work_size_ = 0;
  ScratchLayout layout_;
  int64_t work_ = 0, real_work_ = 0, integer_work_ = 0;
};

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_LINALG_LARGE_SMALL_SVD_H_
