#include "backends/cpu/fft/long_transform.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "backends/cpu/fft/transforms.h"
#include "engine/base/rounding.h"
#include "engine/base/stop_signal.h"

namespace tensord::cpu {
namespace {

// The least factor of a length: as many columns and rows as the widest vectors have lanes.
template <typename T>
constexpr int64_t kMinFactor = 64 / sizeof(T);
constexpr int64_t kMaxFactor = int64_t{1} << 14;  // a line of C128 fills half of a common second cache
// Larger prime factors the library transforms by convolutions of its own, in each of the columns.
constexpr int64_t kMaxPrime = 100;
// Elements of simple loops that are worth a task.
constexpr int64_t kLongTaskElements = 8192;

int64_t LargestPrime(int64_t n) {
  int64_t largest = 1;
  for (int64_t p = 2; p * p <= n; ++p) {
    for (; n % p == 0; n /= p) largest = p;
  }
  return std::max(largest, n);
}

// Returns the shortest length of at least `least`, at most 2^28, that has small factors and whose halves fill vectors.
template <typename T>
int64_t PaddedLength(int64_t least) {
  int64_t best = kMaxFactor * kMaxFactor;
  for (int64_t odd : {1, 3, 5, 7, 9, 15, 21, 25, 27}) {
    int64_t n = odd;
    while (n <= kMaxFactor * kMaxFactor && (n < least || !FftSplit<T>(n).has_value())) n *= 2;
    if (n <= kMaxFactor * kMaxFactor) best = std::min(best, n);
  }
  return best;
}

// `scratch` is the middle, and then a slot for each of the tasks'.
void RunSplit(const FftSplitTransform& split, const FftLines& line, char* scratch, const FftTasks& tasks) {
  char* const middle = scratch;
  char* const slots = middle + RoundUp(split.middle_bytes(), 64);
  const int64_t slot_bytes = RoundUp(split.task_bytes(), 64);
  tasks.For(split.column_groups(), 1, [&](int64_t begin, int64_t end, int64_t slot) {
    split.RunColumns(line, begin, end, middle, slots + slot * slot_bytes);
  });
  tasks.For(split.row_groups(), 1, [&](int64_t begin, int64_t end, int64_t slot) {
    split.RunRows(line, begin, end, middle, slots + slot * slot_bytes);
  });
}

}  // namespace

void FftTasks::For(int64_t count, int64_t least, absl::FunctionRef<void(int64_t, int64_t, int64_t)> part) const {
  const int64_t parts = pool_ == nullptr ? 1 : std::min(kMostParts, (count + least - 1) / least);
  if (parts <= 1) {
    if (count > 0) part(0, count, 0);
    return;
  }
  RunInSlots(parts, Slots(), *pool_, [&](int64_t index, int64_t slot) {
    const int64_t first = count * index / parts, last = count * (index + 1) / parts;
    const int64_t step = std::max(least, CeilDiv(last - first, kPiecesOfPart * least) * least);
    for (int64_t begin = first; begin < last && !StopRequested(); begin += step) {
      part(begin, std::min(begin + step, last), slot);
    }
  });
}

template <typename T>
std::optional<std::pair<int64_t, int64_t>> FftSplit(int64_t length) {
  if (length > kMaxFactor * kMaxFactor || LargestPrime(length) > kMaxPrime) return std::nullopt;
  int64_t small = 1;
  for (int64_t d = 1; d * d <= length; ++d) {
    if (length % d == 0) small = d;
  }
  if (small < kMinFactor<T> || length / small > kMaxFactor) return std::nullopt;
  return std::pair(small, length / small);
}

template <typename T>
FftChirp<T>::FftChirp(int64_t n, int64_t padded, const FftSplitTransform& split) : FftChirp(n, padded) {
  filter_.resize(static_cast<size_t>(padded));
  std::vector<char> memory(static_cast<size_t>(RoundUp(split.middle_bytes(), 64) + split.task_bytes() + 64));
  char* const scratch = memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64);
  MakeFilter(split, filter_.data(), scratch, FftTasks(nullptr));
  std::vector<FftNumber<T>> chirp;
  chirp.reserve(static_cast<size_t>(n));
  for (int64_t j = 0; j < n; ++j) chirp.push_back(Computed(j));
  chirp_ = std::move(chirp);
}

template <typename T>
void FftChirp<T>::MakeFilter(const FftSplitTransform& split, FftNumber<T>* filter, char* scratch,
                             const FftTasks& tasks) const {
  tasks.For(padded_, kLongTaskElements, [&](int64_t begin, int64_t end, int64_t) {
    for (int64_t j = begin; j < end; ++j) {
      const int64_t distance = std::min(j, padded_ - j);  // the filter is even, over a circle
      const FftNumber<T> value = distance < n_ ? At(distance) : FftNumber<T>{0, 0};
      filter[j] = {value.r, -value.i};
    }
  });
  const FftLines line{.in = filter,
                      .out = filter,
                      .in_length = padded_,
                      .out_length = padded_,
                      .scale = 1 / static_cast<double>(padded_)};
  RunSplit(split, line, scratch, tasks);
}

template <typename T>
FftLongTransform<T>::FftLongTransform(int64_t length, FftTransforms& transforms, int64_t max_chirp_table) : n_(length) {
  constexpr bool is_double = sizeof(T) == sizeof(double);
  if (const auto split = FftSplit<T>(length); split.has_value()) {
    split_sizes_ = *split;
    split_ = transforms.Split(is_double, split->first, split->second);
    return;
  }
  const int64_t padded = PaddedLength<T>(2 * length - 1);
  split_sizes_ = *FftSplit<T>(padded);
  split_ = transforms.Split(is_double, split_sizes_.first, split_sizes_.second);
  if (length > max_chirp_table) {
    chirp_ = std::make_shared<const FftChirp<T>>(length, padded);
    return;
  }
  chirp_ = transforms.Get<FftChirp<T>>(absl::StrCat(BestFftLanes().name, " chirp ", is_double, " ", length),
                                       [&] { return std::make_shared<const FftChirp<T>>(length, padded, *split_); });
}

template <typename T>
int64_t FftLongTransform<T>::scratch_bytes(int64_t slots) const {
  int64_t padded = 0;
  if (chirp_ != nullptr) padded = RoundUp(chirp_->padded() * static_cast<int64_t>(sizeof(FftNumber<T>)), 64);
  if (chirp_ != nullptr && chirp_->filter() == nullptr) padded *= 2;
  return padded + RoundUp(split_->middle_bytes(), 64) + slots * RoundUp(split_->task_bytes(), 64);
}

template <typename T>
void FftLongTransform<T>::Run(const FftLines& line, char* scratch, const FftTasks& tasks) const {
  if (chirp_ == nullptr) {
    RunSplit(*split_, line, scratch, tasks);
  } else {
    RunChirped(line, scratch, tasks);
  }
}

// Leo Bluestein, A linear filtering approach to the computation of the discrete Fourier transform, 1970. The inverse is
// the conjugate of the transform of the conjugate.
template <typename T>
void FftLongTransform<T>::RunChirped(const FftLines& line, char* scratch, const FftTasks& tasks) const {
  const int64_t m = chirp_->padded();
  FftNumber<T>* const padded = reinterpret_cast<FftNumber<T>*>(scratch);
  const int64_t padded_bytes = RoundUp(m * static_cast<int64_t>(sizeof(FftNumber<T>)), 64);
  char* rest = scratch + padded_bytes;
  const FftNumber<T>* filter = chirp_->filter();
  if (filter == nullptr) {
    FftNumber<T>* const made = reinterpret_cast<FftNumber<T>*>(rest);
    rest += padded_bytes;
    chirp_->MakeFilter(*split_, made, rest, tasks);
    filter = made;
  }
  const T sign = line.forward ? 1 : -1;
  const int64_t given = std::min(n_, line.in_length);
  tasks.For(m, kLongTaskElements, [&](int64_t begin, int64_t end, int64_t) {
    for (int64_t j = begin; j < end; ++j) {
      FftNumber<T> value{0, 0};
      if (j < given && line.real_in) value.r = static_cast<const T*>(line.in)[j];
      if (j < given && !line.real_in) value = static_cast<const FftNumber<T>*>(line.in)[j];
      value.i *= sign;
      padded[j] = j < given ? value * chirp_->At(j) : FftNumber<T>{0, 0};
    }
  });
  FftLines within{.in = padded, .out = padded, .in_length = m, .out_length = m};
  RunSplit(*split_, within, rest, tasks);
  tasks.For(m, kLongTaskElements, [&](int64_t begin, int64_t end, int64_t) {
    for (int64_t k = begin; k < end; ++k) padded[k] = padded[k] * filter[k];
  });
  within.forward = false;
  RunSplit(*split_, within, rest, tasks);
  const T scale = static_cast<T>(line.scale);
  tasks.For(line.out_length, kLongTaskElements, [&](int64_t begin, int64_t end, int64_t) {
    for (int64_t k = begin; k < end; ++k) {
      const FftNumber<T> value = padded[k] * chirp_->At(k);
      static_cast<FftNumber<T>*>(line.out)[k] = {value.r * scale, value.i * scale * sign};
    }
  });
}

template std::optional<std::pair<int64_t, int64_t>> FftSplit<float>(int64_t);
template std::optional<std::pair<int64_t, int64_t>> FftSplit<double>(int64_t);
template class FftChirp<float>;
template class FftChirp<double>;
template class FftLongTransform<float>;
template class FftLongTransform<double>;

}  // namespace tensord::cpu
