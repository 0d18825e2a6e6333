#ifndef TENSORD_BACKENDS_CPU_FFT_LONG_TRANSFORM_H_
#define TENSORD_BACKENDS_CPU_FFT_LONG_TRANSFORM_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "backends/cpu/fft/lanes/lanes.h"
#include "backends/cpu/fft/lanes/roots.h"
#include "backends/cpu/machine/task_slots.h"

namespace tensord::cpu {

class FftTransforms;

// Work in parts: on the threads of a pool, each with a slot of scratch of its own, or one part on the caller.
class FftTasks {
 public:
  explicit FftTasks(ThreadPool* pool) : pool_(pool) {}
  // Calls part(begin, end, slot) for ranges that make up [0, count), of `least` at least.
  void For(int64_t count, int64_t least, absl::FunctionRef<void(int64_t, int64_t, int64_t)> part) const;
  // Returns the number of slots on the threads of a pool.
  static int64_t Slots() { return TaskSlots(kMostParts); }

 private:
  static constexpr int64_t kMostParts = 16;     // of a step: a part has scratch where it is at work
  static constexpr int64_t kPiecesOfPart = 32;  // between which it is asked whether the run is still wanted

  ThreadPool* const pool_;
};

template <typename T>
struct FftNumber {
  T r, i;
};
template <typename T>
FftNumber<T> operator*(FftNumber<T> a, FftNumber<T> b) {
  return {a.r * b.r - a.i * b.i, a.r * b.i + a.i * b.r};
}

// Returns the two factors of a length that are nearest to each other, the smaller first. Nothing if the length cannot
// be transformed by columns and rows of T: they have to fill vectors and fit caches, and no prime factor may be large.
template <typename T>
std::optional<std::pair<int64_t, int64_t>> FftSplit(int64_t length);

// The data of Bluestein's algorithm, which writes a transform of any length as a convolution of `padded` elements; that
// length can be split. For lines up to some length these are tables. For longer lines every run makes them in scratch,
// which is counted and refused like all memory of a run.
template <typename T>
class FftChirp {
 public:
  // Without tables.
  FftChirp(int64_t n, int64_t padded) : n_(n), padded_(padded), roots_(2 * n) {}
  FftChirp(int64_t n, int64_t padded, const FftSplitTransform& split);

  int64_t padded() const { return padded_; }
  // exp(-πi j²/n)
  FftNumber<T> At(int64_t j) const { return chirp_.empty() ? Computed(j) : chirp_[static_cast<size_t>(j)]; }
  // Returns the transform of the conjugate over `padded`, divided by that; null if there are no tables.
  const FftNumber<T>* filter() const { return filter_.empty() ? nullptr : filter_.data(); }
  // Makes it of that many elements. `scratch` is that of the split.
  void MakeFilter(const FftSplitTransform& split, FftNumber<T>* filter, char* scratch, const FftTasks& tasks) const;
  int64_t table_bytes() const {
    return roots_.bytes() + static_cast<int64_t>((chirp_.size() + filter_.size()) * sizeof(FftNumber<T>));
  }

 private:
  FftNumber<T> Computed(int64_t j) const {
    const FftRoot w = roots_.At(j * j % (2 * n_));
    return {static_cast<T>(w.r), static_cast<T>(-w.i)};
  }

  int64_t n_;
  int64_t padded_;
  FftRoots roots_;
  std::vector<FftNumber<T>> chirp_;
  std::vector<FftNumber<T>> filter_;
};

// A longer line, which cannot be split, has no tables.
inline constexpr int64_t kMaxChirpTable = int64_t{1} << 22;

// The complex transform of one line of numbers that lie together; several threads may do parts of it. Immutable and
// shared by threads.
template <typename T>
class FftLongTransform {
 public:
  FftLongTransform(int64_t length, FftTransforms& transforms, int64_t max_chirp_table = kMaxChirpTable);

  bool is_chirped() const { return chirp_ != nullptr; }
  std::pair<int64_t, int64_t> split() const { return split_sizes_; }
  int64_t scratch_bytes(int64_t slots) const;
  // `scratch` has scratch_bytes of as many slots as the tasks have, aligned to 64. in and out may be the same.
  void Run(const FftLines& line, char* scratch, const FftTasks& tasks) const;

 private:
  void RunChirped(const FftLines& line, char* scratch, const FftTasks& tasks) const;

  const int64_t n_;
  std::pair<int64_t, int64_t> split_sizes_;
  std::shared_ptr<const FftSplitTransform> split_;  // of n, or of the padded length
  std::shared_ptr<const FftChirp<T>> chirp_;        // null where n can be split
};

extern template class FftLongTransform<float>;
extern template class FftLongTransform<double>;

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_FFT_LONG_TRANSFORM_H_
