// Compiled once for each instruction set, which TENSORD_FFT_LANES names: see CMakeLists.txt. All symbols but its table
// are made local to its object afterwards, so that it shares no code for a newer processor with the others.
#include "backends/cpu/fft/lanes/lanes.h"

#include <algorithm>
#include <vector>

#include "backends/cpu/fft/lanes/roots.h"

#define DUCC0_NO_LOWLEVEL_THREADING
#include "ducc0/infra/simd.h"

#ifndef DUCC0_HOMEGROWN_SIMD
namespace DUCC0_NAMESPACE::detail_simd {

// Only full vectors are used: the library need not be compiled for narrower ones.
#define TENSORD_ONLY_FULL(T, lanes) \
  template <>                       \
  inline constexpr bool simd_exists<T, lanes> = native_simd<T>::size() == lanes&& lanes > 1;
TENSORD_ONLY_FULL(float, 2)
TENSORD_ONLY_FULL(float, 4)
TENSORD_ONLY_FULL(float, 8)
TENSORD_ONLY_FULL(float, 16)
TENSORD_ONLY_FULL(double, 2)
TENSORD_ONLY_FULL(double, 4)
TENSORD_ONLY_FULL(double, 8)
#undef TENSORD_ONLY_FULL

}  // namespace DUCC0_NAMESPACE::detail_simd
#endif

#include "ducc0/fft/fft1d_impl.h"
#include "ducc0/infra/string_utils.cc"
#include "ducc0/infra/threading.cc"
//
#include "backends/cpu/fft/lanes/lane_access-inl.h"

namespace tensord::cpu::TENSORD_FFT_LANES {
namespace {

using ducc::detail_fft::cfftpass;
using ducc::detail_fft::rfftpass;
using ducc::detail_fft::tidx;

// A gap between buffers whose sizes are powers of two, so that they do not share sets of the cache.
constexpr size_t kGap = 3;

char* Align64(char* address) { return reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(address) + 63) / 64 * 64); }

// One pass object of the library, working on vectors of type V. Several transforms share its scratch, but not their
// data.
template <typename Pass, typename V>
class VectorPass {
 public:
  explicit VectorPass(int64_t length)
      : pass_(Pass::make_pass(static_cast<size_t>(length), false)), step_(static_cast<size_t>(length) + kGap) {}

  int64_t table_bytes() const { return static_cast<int64_t>(pass_->footprint()); }
  int64_t scratch_bytes(int64_t transforms = 1) const {
    const size_t vectors = static_cast<size_t>(transforms) + (pass_->needs_copy() ? 1 : 0);
    return static_cast<int64_t>((vectors * step_ + pass_->bufsize()) * sizeof(V)) + 64;
  }
  V* Input(char* scratch, int64_t transform = 0) const {
    return reinterpret_cast<V*>(Align64(scratch)) + static_cast<size_t>(transform) * step_;
  }
  // Transforms the numbers in Input(scratch); the result stands somewhere in the scratch.
  V* Exec(char* scratch, bool forward) const {
    V* spare = Input(scratch, 1);
    return Exec(Input(scratch), &spare, spare + (pass_->needs_copy() ? step_ : 0), forward);
  }
  // Transforms each input; results[i] says where the result stands.
  template <size_t transforms>
  void ExecAll(char* scratch, bool forward, std::array<const V*, transforms>* results) const {
    V* spare = Input(scratch, transforms);
    V* const buffer = spare + (pass_->needs_copy() ? step_ : 0);
    for (size_t i = 0; i < transforms; ++i) {
      (*results)[i] = Exec(Input(scratch, static_cast<int64_t>(i)), &spare, buffer, forward);
    }
  }

 private:
  // The library may leave the result in memory that it was lent: then the place of the input is the next one's spare
  // place.
  V* Exec(V* in, V** spare, V* buffer, bool forward) const {
    V* const result = static_cast<V*>(pass_->exec(tidx<V*>(), in, *spare, buffer, forward));
    if (result == *spare) *spare = in;
    return result;
  }

  decltype(Pass::make_pass(size_t{1}, false)) pass_;
  size_t step_;
};

// Groups of lines that lie element beside element are read and written together if their scratch stays in a
// second-level cache. One group alone makes runs of a cache line or two, too short for the processor to see the next
// one.
constexpr int64_t kMostTogether = 4;
constexpr int64_t kTogetherBytes = int64_t{1} << 20;

template <typename T>
class LaneTransform final : public FftLaneTransform {
 public:
  LaneTransform(FftForm form, int64_t length) : form_(form), n_(length) {
    if (form == FftForm::kComplex) {
      complex_ = std::make_unique<VectorPass<cfftpass<T>, Complex<T>>>(length);
    } else {
      real_ = std::make_unique<VectorPass<rfftpass<T>, Vector<T>>>(length);
    }
  }

  int64_t table_bytes() const override { return complex_ ? complex_->table_bytes() : real_->table_bytes(); }
  int64_t task_bytes() const override {
    return complex_ ? complex_->scratch_bytes(groups_together()) : real_->scratch_bytes();
  }

  int64_t groups_together() const override {
    if (form_ != FftForm::kComplex) return 1;
    int64_t groups = kMostTogether;
    while (groups > 1 && complex_->scratch_bytes(groups) > kTogetherBytes) groups /= 2;
    return groups;
  }

  void Run(const FftLines& lines, int64_t begin, int64_t end, char* scratch) const override {
    const int64_t together = groups_together();
    for (int64_t line = begin; line < end;) {
      const int64_t groups =
          std::min(together, std::min(end - line, lines.inner - line % lines.inner) / int64_t{kLanes<T>});
      if (groups >= 2) {
        groups >= 4 ? RunGroups<4>(lines, line, scratch) : RunGroups<2>(lines, line, scratch);
        line += (groups >= 4 ? 4 : 2) * kLanes<T>;
        continue;
      }
      const int64_t room = std::min<int64_t>(kLanes<T>, end - line);
      // Lines that lie together are of one block; where a block has fewer than a vector, lines are picked one by one.
      const int64_t left = lines.inner - line % lines.inner;
      const int count = static_cast<int>(lines.inner >= kLanes<T> ? std::min(room, left) : room);
      const LineGroup in = GroupOf(lines, line, count, lines.in_length, InStep(lines));
      const LineGroup out = GroupOf(lines, line, count, lines.out_length, OutStep(lines));
      if (form_ == FftForm::kComplex) {
        RunComplex(lines, in, out, scratch);
      } else if (form_ == FftForm::kHalfToReal) {
        RunToReal(lines, in, out, scratch);
      } else {
        RunFromReal(lines, in, out, scratch);
      }
      line += count;
    }
  }

 private:
  static int64_t InStep(const FftLines& lines) { return lines.in_step > 0 ? lines.in_step : lines.inner; }
  static int64_t OutStep(const FftLines& lines) { return lines.out_step > 0 ? lines.out_step : lines.inner; }

  template <int groups>
  void RunGroups(const FftLines& lines, int64_t first, char* scratch) const {
    const int64_t in_step = InStep(lines), out_step = OutStep(lines);
    const auto offset = [&](int64_t length, int64_t step) {
      return first % lines.inner + first / lines.inner * length * step;
    };
    const int64_t size = std::min(n_, lines.in_length);
    const T* const from = static_cast<const T*>(lines.in) + (lines.real_in ? 1 : 2) * offset(lines.in_length, in_step);
    std::array<Complex<T>*, groups> data;
    for (int64_t g = 0; g < groups; ++g) data[g] = complex_->Input(scratch, g);
    // The next groups' elements are fetched meanwhile: runs lie too far apart for the processor to do so.
    for (int64_t k = 0; k < size; ++k) {
      Unrolled<groups>([&](int g) {
        const int64_t at = k * in_step + g * kLanes<T>;
        __builtin_prefetch(from + (lines.real_in ? 1 : 2) * (at + groups * kLanes<T>), 0, 2);
        data[g][k] = lines.real_in ? Complex<T>(LoadReal<T>(from + at), Vector<T>(0)) : LoadComplex<T>(from + 2 * at);
      });
    }
    std::array<const Complex<T>*, groups> results;
    for (int64_t g = 0; g < groups; ++g) {
      for (int64_t k = size; k < n_; ++k) data[g][k] = Complex<T>(Vector<T>(0), Vector<T>(0));
    }
    complex_->ExecAll(scratch, lines.forward, &results);
    const Vector<T> scale(static_cast<T>(lines.scale));
    T* const into = static_cast<T*>(lines.out) + 2 * offset(lines.out_length, out_step);
    for (int64_t k = 0; k < lines.out_length; ++k) {
      Unrolled<groups>([&](int g) {
        const Complex<T>& value = results[g][k];
        StoreComplex<T>(Complex<T>(value.r * scale, value.i * scale), into + 2 * (k * out_step + g * kLanes<T>));
      });
    }
  }

  static LineGroup GroupOf(const FftLines& lines, int64_t first, int count, int64_t length, int64_t step) {
    LineGroup group{.count = count,
                    .together = count == kLanes<T> && lines.inner >= kLanes<T>,
                    .dense = count == kLanes<T> && step == 1,
                    .step = step};
    for (int l = 0; l < count; ++l) {
      const int64_t line = first + l;
      group.offsets[static_cast<size_t>(l)] = line % lines.inner + line / lines.inner * length * step;
    }
    return group;
  }

  void RunComplex(const FftLines& lines, const LineGroup& in, const LineGroup& out, char* scratch) const {
    Complex<T>* const data = complex_->Input(scratch);
    const int64_t size = std::min(n_, lines.in_length);
    const T* const from = static_cast<const T*>(lines.in);
    if (lines.real_in) {
      ReadReal<T>(from, in, size, [&](int64_t k, Vector<T> v) { data[k] = Complex<T>(v, Vector<T>(0)); });
    } else {
      ReadComplex<T>(from, in, size, [&](int64_t k, const Complex<T>& v) { data[k] = v; });
    }
    for (int64_t k = size; k < n_; ++k) data[k] = Complex<T>(Vector<T>(0), Vector<T>(0));
    const Complex<T>* const result = complex_->Exec(scratch, lines.forward);
    const Vector<T> scale(static_cast<T>(lines.scale));
    WriteComplex<T>(static_cast<T*>(lines.out), out, lines.out_length,
                    [&](int64_t k) { return Complex<T>(result[k].r * scale, result[k].i * scale); });
  }

  void RunFromReal(const FftLines& lines, const LineGroup& in, const LineGroup& out, char* scratch) const {
    Vector<T>* const data = real_->Input(scratch);
    const int64_t size = std::min(n_, lines.in_length);
    ReadReal<T>(static_cast<const T*>(lines.in), in, size, [&](int64_t k, Vector<T> v) { data[k] = v; });
    for (int64_t k = size; k < n_; ++k) data[k] = Vector<T>(0);
    // Real parts of bin k at 2k-1, imaginary ones at 2k. The inverse has the conjugate bins.
    const Vector<T>* const result = real_->Exec(scratch, true);
    const Vector<T> scale(static_cast<T>(lines.scale)),
        sign(static_cast<T>(lines.forward ? lines.scale : -lines.scale));
    const auto half_bin = [&](int64_t k, Vector<T> imaginary_scale) {
      if (k == 0) return Complex<T>(result[0] * scale, Vector<T>(0));
      if (2 * k == n_) return Complex<T>(result[n_ - 1] * scale, Vector<T>(0));
      return Complex<T>(result[2 * k - 1] * scale, result[2 * k] * imaginary_scale);
    };
    WriteComplex<T>(static_cast<T*>(lines.out), out, lines.out_length,
                    [&](int64_t k) { return 2 * k <= n_ ? half_bin(k, sign) : half_bin(n_ - k, -sign); });
  }

  void RunToReal(const FftLines& lines, const LineGroup& in, const LineGroup& out, char* scratch) const {
    Vector<T>* const data = real_->Input(scratch);
    const int64_t size = std::min(n_ / 2 + 1, lines.in_length);
    const auto put = [&](int64_t k, Vector<T> r, Vector<T> i) {
      if (k == 0) {
        data[0] = r;
      } else {
        data[2 * k - 1] = r;
        if (2 * k < n_) data[2 * k] = i;
      }
    };
    const T* const from = static_cast<const T*>(lines.in);
    if (lines.real_in) {
      ReadReal<T>(from, in, size, [&](int64_t k, Vector<T> v) { put(k, v, Vector<T>(0)); });
    } else {
      ReadComplex<T>(from, in, size, [&](int64_t k, const Complex<T>& v) { put(k, v.r, v.i); });
    }
    for (int64_t k = size; k <= n_ / 2; ++k) put(k, Vector<T>(0), Vector<T>(0));
    const Vector<T>* const result = real_->Exec(scratch, false);
    const Vector<T> scale(static_cast<T>(lines.scale));
    WriteReal<T>(static_cast<T*>(lines.out), out, lines.out_length, [&](int64_t k) { return result[k] * scale; });
  }

  const FftForm form_;
  const int64_t n_;
  std::unique_ptr<VectorPass<cfftpass<T>, Complex<T>>> complex_;  // one of the two
  std::unique_ptr<VectorPass<rfftpass<T>, Vector<T>>> real_;
};

// The line that follows such a short one is fetched meanwhile: it is the next to be transformed, mostly.
constexpr int64_t kFetchedLineBytes = int64_t{64} << 10;

// x[n2*j1 + j2] to X[k1 + n1*k2]: columns j2 are transformed over j1, turned by w^(j2*k1), and then rows k1 over j2.
// Vectors hold neighbouring columns, and then neighbouring rows. Middle: for each group of columns all k1, its pad
// zero.
template <typename T>
class SplitTransform final : public FftSplitTransform {
 public:
  SplitTransform(int64_t n1, int64_t n2) : n1_(n1), n2_(n2), columns_(n1), rows_(n2), roots_(n1 * n2) {
    const bool all = n1 * n2 <= kMaxTurns;
    const int64_t groups = all ? column_groups() : 1;
    turns_.resize(static_cast<size_t>(groups * n1));
    for (int64_t g = 0; g < groups; ++g) {
      for (int64_t k1 = 0; k1 < n1; ++k1) turns_[static_cast<size_t>(g * n1 + k1)] = TurnsOf(g, k1);
    }
    has_all_turns_ = all;
  }

  int64_t table_bytes() const override {
    return columns_.table_bytes() + rows_.table_bytes() + roots_.bytes() +
           static_cast<int64_t>(turns_.size() * sizeof(Complex<T>));
  }
  int64_t middle_bytes() const override {
    return column_groups() * padded_rows() * static_cast<int64_t>(sizeof(Complex<T>));
  }
  int64_t task_bytes() const override { return std::max(columns_.scratch_bytes(), rows_.scratch_bytes()); }
  int64_t column_groups() const override { return (n2_ + kLanes<T> - 1) / kLanes<T>; }
  int64_t row_groups() const override { return (n1_ + kLanes<T> - 1) / kLanes<T>; }

  void RunColumns(const FftLines& line, int64_t begin, int64_t end, char* middle, char* scratch) const override {
    for (int64_t g = begin; g < end; ++g) {
      LoadColumns(line, g * kLanes<T>, columns_.Input(scratch));
      const Complex<T>* const result = columns_.Exec(scratch, line.forward);
      Complex<T>* const out = reinterpret_cast<Complex<T>*>(middle) + g * padded_rows();
      line.forward ? Turn<true>(g, result, out) : Turn<false>(g, result, out);
      for (int64_t k1 = n1_; k1 < padded_rows(); ++k1) out[k1] = Complex<T>(Vector<T>(0), Vector<T>(0));
    }
  }

  void RunRows(const FftLines& line, int64_t begin, int64_t end, const char* middle, char* scratch) const override {
    for (int64_t g = begin; g < end; ++g) {
      LoadRows(reinterpret_cast<const Complex<T>*>(middle) + g * kLanes<T>, rows_.Input(scratch));
      StoreRows(line, g * kLanes<T>, rows_.Exec(scratch, line.forward));
    }
  }

 private:
  // Up to so many the factors between columns and rows are kept; of more, they are products of a group's and a lane's.
  static constexpr int64_t kMaxTurns = int64_t{1} << 14;

  int64_t padded_rows() const { return row_groups() * kLanes<T>; }

  Complex<T> TurnsOf(int64_t group, int64_t k1) const {
    Raw<T> r{}, i{};
    for (int l = 0; l < kLanes<T>; ++l) {
      const int64_t j2 = group * kLanes<T> + l;
      const FftRoot w = roots_.At(j2 * k1 % (n1_ * n2_));
      r[l] = static_cast<T>(w.r);
      i[l] = static_cast<T>(w.i);
    }
    return Complex<T>(FromRaw<T>(r), FromRaw<T>(i));
  }

  void LoadColumns(const FftLines& line, int64_t j2, Complex<T>* data) const {
    const T* const from = static_cast<const T*>(line.in);
    const Vector<T> zero(0);
    // Columns are read across, which the processor does not see coming.
    const int64_t number_size = line.real_in ? 1 : 2;
    const bool fetches = line.in_length * number_size * static_cast<int64_t>(sizeof(T)) <= kFetchedLineBytes;
    const T* const next = from + number_size * line.in_length;
    const T* const into = static_cast<const T*>(line.out);
    const bool writes_elsewhere = fetches && line.out != line.in && line.out_length >= n1_ * n2_;
    for (int64_t j1 = 0; j1 < n1_; ++j1) {
      const int64_t at = j1 * n2_ + j2, end = std::min(line.in_length, (j1 + 1) * n2_);
      if (fetches) __builtin_prefetch(next + number_size * at, 0, 2);
      if (writes_elsewhere) __builtin_prefetch(into + 2 * at, 1, 2);
      if (at + kLanes<T> <= end) {
        data[j1] = line.real_in ? Complex<T>(LoadReal<T>(from + at), zero) : LoadComplex<T>(from + 2 * at);
        continue;
      }
      Raw<T> r{}, i{};
      for (int l = 0; l < kLanes<T> && at + l < end; ++l) {
        r[l] = line.real_in ? from[at + l] : from[2 * (at + l)];
        if (!line.real_in) i[l] = from[2 * (at + l) + 1];
      }
      data[j1] = Complex<T>(FromRaw<T>(r), FromRaw<T>(i));
    }
  }

  template <bool forward>
  void Turn(int64_t group, const Complex<T>* in, Complex<T>* out) const {
    if (has_all_turns_ || group == 0) {
      const Complex<T>* const turns = turns_.data() + (has_all_turns_ ? group * n1_ : 0);
      for (int64_t k1 = 0; k1 < n1_; ++k1) out[k1] = in[k1].template special_mul<forward>(turns[k1]);
      return;
    }
    int64_t root = 0;
    for (int64_t k1 = 0; k1 < n1_; ++k1) {
      const FftRoot w = roots_.At(root);
      const Vector<T> r(static_cast<T>(w.r)), i(static_cast<T>(w.i));
      const Complex<T> lane = turns_[static_cast<size_t>(k1)];
      out[k1] = in[k1].template special_mul<forward>(Complex<T>(lane.r * r - lane.i * i, lane.r * i + lane.i * r));
      root += group * kLanes<T>;  // below n2, so at most one round too far
      if (root >= n1_ * n2_) root -= n1_ * n2_;
    }
  }

  void LoadRows(const Complex<T>* middle, Complex<T>* data) const {
    for (int64_t g = 0; g < column_groups(); ++g) {
      const Complex<T>* const block = middle + g * padded_rows();
      Square<T> real, imaginary;
      Unrolled<kLanes<T>>([&](int l) {
        real[l] = ToRaw<T>(block[l].r);
        imaginary[l] = ToRaw<T>(block[l].i);
      });
      Transpose<T>(&real);
      Transpose<T>(&imaginary);
      const int64_t count = n2_ - g * kLanes<T>;
      Unrolled<kLanes<T>>([&](int l) {
        if (l < count) data[g * kLanes<T> + l] = Complex<T>(FromRaw<T>(real[l]), FromRaw<T>(imaginary[l]));
      });
    }
  }

  void StoreRows(const FftLines& line, int64_t k1, const Complex<T>* result) const {
    T* const into = static_cast<T*>(line.out);
    const Vector<T> scale(static_cast<T>(line.scale));
    for (int64_t k2 = 0; k2 < n2_; ++k2) {
      const int64_t at = k1 + n1_ * k2, end = std::min(line.out_length, n1_ * (k2 + 1));
      const Complex<T> value(result[k2].r * scale, result[k2].i * scale);
      if (at + kLanes<T> <= end) {
        StoreComplex<T>(value, into + 2 * at);
        continue;
      }
      const Raw<T> r = ToRaw<T>(value.r), i = ToRaw<T>(value.i);
      for (int l = 0; l < kLanes<T> && at + l < end; ++l) {
        into[2 * (at + l)] = r[l];
        into[2 * (at + l) + 1] = i[l];
      }
    }
  }

  const int64_t n1_;
  const int64_t n2_;
  const VectorPass<cfftpass<T>, Complex<T>> columns_;
  const VectorPass<cfftpass<T>, Complex<T>> rows_;
  const FftRoots roots_;
  std::vector<Complex<T>> turns_;  // [group][k1]; only of the first group where has_all_turns_ is false
  bool has_all_turns_ = false;
};

int64_t LanesOf(bool is_double) { return is_double ? kLanes<double> : kLanes<float>; }

std::unique_ptr<const FftLaneTransform> MakeLanes(bool is_double, FftForm form, int64_t length) {
  if (is_double) return std::make_unique<LaneTransform<double>>(form, length);
  return std::make_unique<LaneTransform<float>>(form, length);
}

std::unique_ptr<const FftSplitTransform> MakeSplit(bool is_double, int64_t n1, int64_t n2) {
  if (is_double) return std::make_unique<SplitTransform<double>>(n1, n2);
  return std::make_unique<SplitTransform<float>>(n1, n2);
}

}  // namespace
}  // namespace tensord::cpu::TENSORD_FFT_LANES

#define TENSORD_STRING(name) #name
#define TENSORD_STRING_OF(name) TENSORD_STRING(name)
#define TENSORD_JOIN(a, b) a##b
#define TENSORD_TABLE(name) TENSORD_JOIN(tensord_fft_lanes_, name)

extern "C" const tensord::cpu::FftLanes TENSORD_TABLE(TENSORD_FFT_LANES) = {
    .name = TENSORD_STRING_OF(TENSORD_FFT_LANES),
    .lanes = &tensord::cpu::TENSORD_FFT_LANES::LanesOf,
    .make_lanes = &tensord::cpu::TENSORD_FFT_LANES::MakeLanes,
    .make_split = &tensord::cpu::TENSORD_FFT_LANES::MakeSplit};
