#include "backends/cpu/fft/line_step.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "backends/cpu/fft/lanes/roots.h"
#include "backends/cpu/fft/long_transform.h"
#include "backends/cpu/fft/real_bins.h"
#include "backends/cpu/fft/transforms.h"
#include "engine/base/refusal.h"
#include "engine/base/rounding.h"
#include "engine/base/stop_signal.h"

namespace tensord::cpu {
namespace {

// The longest transform of complex numbers that can be split into columns and rows. Others are a convolution of twice
// the length, which must be split.
constexpr int64_t kMaxLength = int64_t{1} << 28;
constexpr int64_t kMaxAwkwardLength = int64_t{1} << 27;
// A task in vectors has some lines of that many numbers, all in the second-level cache.
constexpr int64_t kMaxLaneLength = int64_t{1} << 14;
constexpr int64_t kMaxAwkwardLaneLength = int64_t{1} << 12;
// Real lines that lie together: longer ones are better packed into complex ones and split.
constexpr int64_t kMaxRealLaneLength = int64_t{1} << 12;
// Up to here a line is so short that vectors may be mostly empty.
constexpr int64_t kShortLine = 256;
constexpr int64_t kFewLines = 3;
// From here on a line's own parts are spread over threads; of shorter ones, each is one thread's.
constexpr int64_t kSpreadLength = int64_t{1} << 15;
// Numbers that are worth a task.
constexpr int64_t kLineTaskElements = 4096;

class LaneStep final : public FftLineStep {
 public:
  LaneStep(const FftLineTask& task, FftTransforms& transforms)
      : task_(task),
        lanes_(BestFftLanes().lanes(task.is_double)),
        transform_(transforms.Lanes(task.is_double, task.form, task.length)) {}

  int64_t scratch_bytes() const override { return FftTasks::Slots() * RoundUp(transform_->task_bytes(), 64); }

  void Run(const void* in, void* out, char* scratch, ThreadPool* pool) const override {
    FftLines lines = task_.lines;
    lines.in = in;
    lines.out = out;
    const int64_t groups = (task_.num_lines + lanes_ - 1) / lanes_;
    const int64_t together = transform_->groups_together();
    const int64_t least =
        std::max<int64_t>(lines.inner >= together * lanes_ ? together : 1, kLineTaskElements / (task_.length * lanes_));
    FftTasks(pool).For(groups, least, [&](int64_t begin, int64_t end, int64_t slot) {
      transform_->Run(lines, begin * lanes_, std::min(end * lanes_, task_.num_lines),
                      scratch + slot * RoundUp(transform_->task_bytes(), 64));
    });
  }

  std::string Describe() const override { return absl::StrCat(task_.length, " in lanes"); }

 private:
  const FftLineTask task_;
  const int64_t lanes_;
  const std::shared_ptr<const FftLaneTransform> transform_;
};

// One line after the other, or each on a thread of its own. Real lines of even length n are transformed as n/2 complex
// numbers, the even elements their real parts and the odd ones their imaginary parts.
template <typename T>
class LongStep final : public FftLineStep {
 public:
  using Number = FftNumber<T>;

  LongStep(const FftLineTask& task, FftTransforms& transforms)
      : task_(task),
        packs_(task.form != FftForm::kComplex && task.length % 2 == 0),
        spreads_(task.length >= kSpreadLength || task.num_lines == 1),
        core_length_(packs_ ? task.length / 2 : task.length),
        lies_in_result_(LiesInResult(task, packs_)),
        core_(core_length_, transforms) {
    if (packs_) {
      roots_ = transforms.Get<Roots>(absl::StrCat("roots ", task.length),
                                     [&] { return std::make_shared<const Roots>(task.length); });
    }
  }

  int64_t scratch_bytes() const override {
    return spreads_ ? line_bytes(FftTasks::Slots()) : FftTasks::Slots() * line_bytes(1);
  }

  void Run(const void* in, void* out, char* scratch, ThreadPool* pool) const override {
    if (spreads_) {
      for (int64_t i = 0; i < task_.num_lines && !StopRequested(); ++i) {
        RunLine(LineAt(in, out, i), scratch, FftTasks(pool));
      }
      return;
    }
    const int64_t least = std::max<int64_t>(1, kLineTaskElements / task_.length);
    FftTasks(pool).For(task_.num_lines, least, [&](int64_t begin, int64_t end, int64_t slot) {
      for (int64_t i = begin; i < end && !StopRequested(); ++i)
        RunLine(LineAt(in, out, i), scratch + slot * line_bytes(1), FftTasks(nullptr));
    });
  }

  std::string Describe() const override {
    const auto [n1, n2] = core_.split();
    return absl::StrCat(task_.length, core_.is_chirped() ? " by convolution over " : " as ", n1, "x", n2,
                        packs_ ? ", two real numbers as one" : "");
  }

 private:
  struct Roots {
    explicit Roots(int64_t n) : of(n) {}
    FftRoots of;
    int64_t table_bytes() const { return of.bytes(); }
  };

  // Tells whether a line's numbers lie together in the result, so that no buffer has to hold them. They are complex
  // numbers as they are; half as many made of real ones, before their bins are told apart; or numbers that become real
  // ones.
  static bool LiesInResult(const FftLineTask& task, bool packs) {
    if (task.lines.inner != 1) return false;
    if (task.form == FftForm::kHalfToReal) return packs && task.lines.out_length == task.length;
    return !packs || task.lines.out_length >= task.length / 2;
  }
  // Returns the size of the buffer, 0 if there is none.
  int64_t buffer_bytes() const {
    return lies_in_result_ ? 0 : RoundUp(core_length_ * static_cast<int64_t>(sizeof(Number)), 64);
  }
  int64_t line_bytes(int64_t slots) const { return buffer_bytes() + core_.scratch_bytes(slots); }
  bool in_is_real() const {
    return task_.lines.real_in || task_.form == FftForm::kRealToHalf || task_.form == FftForm::kRealToFull;
  }
  bool out_is_real() const { return task_.form == FftForm::kHalfToReal; }

  FftLines LineAt(const void* in, void* out, int64_t line) const {
    FftLines lines = task_.lines;
    const int64_t before = line / lines.inner * lines.inner, offset = line % lines.inner;
    lines.in = static_cast<const T*>(in) + (offset + before * lines.in_length) * (in_is_real() ? 1 : 2);
    lines.out = static_cast<T*>(out) + (offset + before * lines.out_length) * (out_is_real() ? 1 : 2);
    return lines;
  }

  // Element k of a line, zero past its end.
  Number Read(const FftLines& line, int64_t k) const {
    if (k >= line.in_length) return {0, 0};
    if (in_is_real()) return {static_cast<const T*>(line.in)[k * line.inner], 0};
    return static_cast<const Number*>(line.in)[k * line.inner];
  }
  static void Write(const FftLines& line, int64_t k, Number value) {
    if (k < line.out_length) static_cast<Number*>(line.out)[k * line.inner] = value;
  }

  void RunLine(const FftLines& line, char* scratch, const FftTasks& tasks) const {
    Number* const buffer = lies_in_result_ ? static_cast<Number*>(line.out) : reinterpret_cast<Number*>(scratch);
    char* const rest = scratch + buffer_bytes();
    FftLines core{.in = buffer,
                  .out = buffer,
                  .in_length = core_length_,
                  .out_length = core_length_,
                  .forward = line.forward,
                  .scale = line.scale};
    if (out_is_real()) {
      RunToReal(line, core, buffer, rest, tasks);
    } else if (packs_) {
      RunFromReal(line, core, buffer, rest, tasks);
    } else {
      RunComplex(line, core, buffer, rest, tasks);
    }
  }

  void RunComplex(const FftLines& line, FftLines core, Number* buffer, char* rest, const FftTasks& tasks) const {
    if (line.inner == 1) {
      core.in = line.in;
      core.in_length = line.in_length;
      core.real_in = in_is_real();
      core.out = line.out;
      core.out_length = line.out_length;
      core_.Run(core, rest, tasks);
      return;
    }
    Fill(buffer, tasks, [&](int64_t k) { return Read(line, k); });
    core_.Run(core, rest, tasks);
    tasks.For(line.out_length, kLineTaskElements, [&](int64_t begin, int64_t end, int64_t) {
      for (int64_t k = begin; k < end; ++k) Write(line, k, buffer[k]);
    });
  }

  // With z the transform of pairs: the even elements' is (z[k] + conj z[-k]) / 2, the odd ones' -i (z[k] - conj z[-k])
  // / 2. Bins k and n/2 - k follow from z at k and n/2 - k, and may take their places.
  void RunFromReal(const FftLines& line, FftLines core, Number* buffer, char* rest, const FftTasks& tasks) const {
    if (line.inner == 1 && (line.in_length >= task_.length || line.in_length % 2 == 0)) {
      core.in = line.in;
      core.in_length = std::min(core_length_, line.in_length / 2);
    } else {
      Fill(buffer, tasks, [&](int64_t k) { return Number{Read(line, 2 * k).r, Read(line, 2 * k + 1).r}; });
    }
    core.forward = true;
    core_.Run(core, rest, tasks);
    const int64_t half = core_length_;
    if (line.inner == 1 && line.out_length == half + 1) return MakeBins(line, buffer, tasks);
    const T sign = line.forward ? 1 : -1;
    const auto write_bin = [&](int64_t k, Number value) {
      Write(line, k, {value.r, sign * value.i});
      if (k > 0 && k < half) Write(line, task_.length - k, {value.r, -sign * value.i});
    };
    tasks.For(half / 2 + 1, kLineTaskElements, [&](int64_t begin, int64_t end, int64_t) {
      for (int64_t k = begin; k < end; ++k) {
        if (k == 0) {
          const Number sums = buffer[0];
          write_bin(0, {sums.r + sums.i, 0});
          write_bin(half, {sums.r - sums.i, 0});
          continue;
        }
        const Number a = buffer[k], b = buffer[half - k];
        const Number even{(a.r + b.r) / 2, (a.i - b.i) / 2}, odd{(a.i + b.i) / 2, (b.r - a.r) / 2};
        const FftRoot w = roots_->of.At(k);
        const Number turned = odd * Number{static_cast<T>(w.r), static_cast<T>(-w.i)};
        write_bin(k, {even.r + turned.r, even.i + turned.i});
        if (2 * k != half) write_bin(half - k, {even.r - turned.r, turned.i - even.i});
      }
    });
  }

  // Makes bins that lie together from the transform of pairs, which may lie in their place.
  void MakeBins(const FftLines& line, const Number* z, const FftTasks& tasks) const {
    const int64_t half = core_length_;
    Number* const bins = static_cast<Number*>(line.out);
    const Number sums = z[0];
    bins[0] = {sums.r + sums.i, 0};
    bins[half] = {sums.r - sums.i, 0};
    const T sign = line.forward ? 1 : -1;
    if (half % 2 == 0) bins[half / 2] = {z[half / 2].r, -sign * z[half / 2].i};
    ForPairs(tasks, [&](int64_t begin, int64_t end) {
      BinsFromHalves(&z->r, half, roots_->of, begin, end, !line.forward, &bins->r);
    });
  }

  // Backwards, from bins that lie together elsewhere.
  void MakeHalves(const Number* bins, Number* z, const FftTasks& tasks) const {
    const int64_t half = core_length_;
    const T first = bins[0].r, last = bins[half].r;  // their imaginary parts are none
    z[0] = {first + last, first - last};
    if (half % 2 == 0) z[half / 2] = {2 * bins[half / 2].r, -2 * bins[half / 2].i};
    ForPairs(tasks, [&](int64_t begin, int64_t end) { HalvesFromBins(&bins->r, half, roots_->of, begin, end, &z->r); });
  }

  // Calls pairs(begin, end) for ranges of the bins that another one mirrors, the lesser of the two.
  template <typename Pairs>
  void ForPairs(const FftTasks& tasks, const Pairs& pairs) const {
    tasks.For((core_length_ - 1) / 2, kLineTaskElements / 2,
              [&](int64_t begin, int64_t end, int64_t) { pairs(begin + 1, end + 1); });
  }

  void RunToReal(const FftLines& line, FftLines core, Number* buffer, char* rest, const FftTasks& tasks) const {
    const int64_t n = task_.length, half = n / 2;
    const auto bin = [&](int64_t k) {
      Number value = Read(line, k);
      if (k == 0 || 2 * k == n) value.i = 0;
      return value;
    };
    if (packs_ && line.inner == 1 && line.in_length > half && !in_is_real()) {
      MakeHalves(static_cast<const Number*>(line.in), buffer, tasks);
    } else if (packs_) {
      Fill(buffer, tasks, [&](int64_t k) {
        const Number a = bin(k), b = bin(half - k);
        const Number odd{a.r - b.r, a.i + b.i};
        const FftRoot w = roots_->of.At(k);
        const Number turned = odd * Number{static_cast<T>(w.r), static_cast<T>(w.i)};
        return Number{a.r + b.r - turned.i, a.i - b.i + turned.r};
      });
    } else {
      Fill(buffer, tasks, [&](int64_t k) {
        if (k <= half) return bin(k);
        const Number value = bin(n - k);
        return Number{value.r, -value.i};
      });
    }
    core.forward = false;
    core_.Run(core, rest, tasks);
    if (lies_in_result_) return;
    tasks.For(line.out_length, kLineTaskElements, [&](int64_t begin, int64_t end, int64_t) {
      for (int64_t k = begin; k < end; ++k) {
        const T value = !packs_ ? buffer[k].r : k % 2 == 0 ? buffer[k / 2].r : buffer[k / 2].i;
        static_cast<T*>(line.out)[k * line.inner] = value;
      }
    });
  }

  template <typename Value>
  void Fill(Number* buffer, const FftTasks& tasks, const Value& value) const {
    tasks.For(core_length_, kLineTaskElements, [&](int64_t begin, int64_t end, int64_t) {
      for (int64_t k = begin; k < end; ++k) buffer[k] = value(k);
    });
  }

  const FftLineTask task_;
  const bool packs_;
  const bool spreads_;
  const int64_t core_length_;
  const bool lies_in_result_;
  const FftLongTransform<T> core_;
  std::shared_ptr<const Roots> roots_;
};

bool Splits(bool is_double, int64_t length) {
  return is_double ? FftSplit<double>(length).has_value() : FftSplit<float>(length).has_value();
}

}  // namespace

bool RunsInLanes(const FftLineTask& task) {
  const int64_t n = task.length;
  const bool is_complex = task.form == FftForm::kComplex;
  const bool splits = Splits(task.is_double, is_complex || n % 2 != 0 ? n : n / 2);
  if (is_complex && splits && task.lines.inner == 1) return false;
  if (n < (is_complex ? kShortLine : 2 * kShortLine)) return true;
  if (task.num_lines < kFewLines) return false;
  if (!is_complex && splits && task.lines.inner == 1) return n <= kMaxRealLaneLength;
  return n <= (splits ? kMaxLaneLength : kMaxAwkwardLaneLength);
}

absl::StatusOr<std::unique_ptr<const FftLineStep>> FftLineStep::Create(const FftLineTask& task,
                                                                       FftTransforms& transforms) {
  // Real numbers of an even length are half as many complex ones.
  const bool packs = task.form != FftForm::kComplex && task.length % 2 == 0;
  const bool splits = Splits(task.is_double, packs ? task.length / 2 : task.length);
  const int64_t limit = splits || packs ? kMaxLength : kMaxAwkwardLength;
  if (task.length > limit) {
    return Refuse(Refusal::kUnsupportedOnDevice, absl::StrCat("the device cpu transforms up to ", limit,
                                                              " elements of such a length, and has ", task.length));
  }
  if (RunsInLanes(task)) return std::make_unique<const LaneStep>(task, transforms);
  if (task.is_double) return std::make_unique<const LongStep<double>>(task, transforms);
  return std::make_unique<const LongStep<float>>(task, transforms);
}

}  // namespace tensord::cpu
