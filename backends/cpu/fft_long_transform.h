#ifndef TENSORD_BACKENDS_CPU_FFT_LONG_TRANSFORM_H_
#define TENSORD_BACKENDS_CPU_FFT_LONG_TRANSFORM_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "backends/cpu/fft_lanes/fft_lanes.h"
#include "backends/cpu/task_slots.h"

namespace tensord::cpu {

// Work in parts: on the threads of a pool, each with a slot of scratch of its own, or one part on the caller.
class FftTasks {
 public:
  explicit FftTasks(ThreadPool* pool) : pool_(pool) {}
  // Calls part(begin, end, slot) for ranges that make up [0, count), of `least` at least.
  void For(int64_t count, int64_t least, absl::FunctionRef<void(int64_t, int64_t, int64_t)> part) const;
  // How many slots there are on the threads of a pool.
  static int64_t Slots() { return TaskSlots(kMostParts); }

 private:
  static constexpr int64_t kMostParts = 16;

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

// The two factors of a length that are nearest to each other, the smaller first, where the length can be transformed by
// columns and rows of T: they fill vectors and fit caches, and no prime factor is large.
template <typename T>
std::optional<std::pair<int64_t, int64_t>> FftSplit(int64_t length);

// What Bluestein's algorithm needs to write a transform of any length as a convolution: of `padded` elements, which
// can be split.
template <typename T>
struct FftChirp {
  int64_t padded = 0;
  std::vector<FftNumber<T>> chirp;   // exp(-πi j²/n)
  std::vector<FftNumber<T>> filter;  // the transform of its conjugate over `padded`
  int64_t table_bytes() const { return static_cast<int64_t>((chirp.size() + filter.size()) * sizeof(FftNumber<T>)); }
};

// The complex transform of one line of numbers that lie together, of which the parts may be done on several threads.
// Immutable and shared by threads.
template <typename T>
class FftLongTransform {
 public:
  explicit FftLongTransform(int64_t length);

  bool is_chirped() const { return chirp_ != nullptr; }
  std::pair<int64_t, int64_t> split() const { return split_sizes_; }
  int64_t scratch_bytes(int64_t slots) const;
  // `scratch` has scratch_bytes of as many slots as the tasks have, aligned to 64. in and out may be the same.
  void Run(const FftLines& line, char* scratch, const FftTasks& tasks) const;

 private:
  void RunSplit(const FftLines& line, char* scratch, const FftTasks& tasks) const;
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
