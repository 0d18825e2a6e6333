#ifndef TENSORD_BACKENDS_CPU_FFT_LANES_LANES_H_
#define TENSORD_BACKENDS_CPU_FFT_LANES_LANES_H_

#include <cstdint>
#include <memory>

namespace tensord::cpu {

// Discrete Fourier transforms of lines, as many side by side as a vector has lanes. The passes are those of the library
// ducc0, compiled once for each instruction set; this header is the backend's view of them.

enum class FftForm : uint8_t {
  kComplex,     // n to n
  kRealToHalf,  // n real numbers to the n/2+1 bins that are not redundant
  kRealToFull,  // n real numbers to all n bins
  kHalfToReal,  // n/2+1 bins to n real numbers; what is imaginary in bins 0 and n/2 is ignored
};

// Lines of two dense tensors, or of a single one if the lengths and element sizes agree. Element k of line l lies l %
// inner + (k + l / inner * length) * inner elements from the start. With a step, for lanes alone, it lies l % inner +
// (k + l / inner * length) * step from there: some of the lines that lie beside each other.
struct FftLines {
  const void* in;
  void* out;
  int64_t inner = 1;
  int64_t in_step = 0;
  int64_t out_step = 0;
  int64_t in_length = 0;   // along a line of `in`: what the transform lacks is zero, what it does not need is not read
  int64_t out_length = 0;  // along a line of `out`: at most what the transform yields
  bool real_in = false;    // `in` is real where the form asks for complex numbers
  bool forward = true;
  double scale = 1;
};

// The transform of one length and form. Immutable and shared by threads.
class FftLaneTransform {
 public:
  virtual ~FftLaneTransform() = default;
  virtual int64_t table_bytes() const = 0;
  virtual int64_t task_bytes() const = 0;  // scratch of Run, aligned to 64
  // The vectors of lines to read and write together if the lines lie element beside element.
  virtual int64_t groups_together() const = 0;
  // Lines [begin, end). A line's bits depend on its values alone.
  virtual void Run(const FftLines& lines, int64_t begin, int64_t end, char* scratch) const = 0;
};

// A complex transform of n1 * n2 numbers that lie together, by columns and then by rows (Bailey's four steps): every
// column group before any row group, the groups of either kind in any order and on any threads.
class FftSplitTransform {
 public:
  virtual ~FftSplitTransform() = default;
  virtual int64_t table_bytes() const = 0;
  virtual int64_t middle_bytes() const = 0;  // between columns and rows; aligned to 64
  virtual int64_t task_bytes() const = 0;    // scratch of one call, aligned to 64
  virtual int64_t column_groups() const = 0;
  virtual int64_t row_groups() const = 0;
  virtual void RunColumns(const FftLines& line, int64_t begin, int64_t end, char* middle, char* scratch) const = 0;
  virtual void RunRows(const FftLines& line, int64_t begin, int64_t end, const char* middle, char* scratch) const = 0;
};

// The loops of one instruction set, for float and for double. Thread-safe.
struct FftLanes {
  const char* name;
  int64_t (*lanes)(bool is_double);
  std::unique_ptr<const FftLaneTransform> (*make_lanes)(bool is_double, FftForm form, int64_t length);
  std::unique_ptr<const FftSplitTransform> (*make_split)(bool is_double, int64_t n1, int64_t n2);
};

}  // namespace tensord::cpu

// One for each build of lanes.cc; CMake says which there are.
extern "C" {
extern const tensord::cpu::FftLanes tensord_fft_lanes_baseline;
extern const tensord::cpu::FftLanes tensord_fft_lanes_avx2;
extern const tensord::cpu::FftLanes tensord_fft_lanes_avx512;
}

#endif  // TENSORD_BACKENDS_CPU_FFT_LANES_LANES_H_
