#include "tensord/printing.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <complex>
#include <ostream>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "clients/cpp/values/number_text.h"

namespace tensord::client {
namespace {

constexpr char kLeftOut[] = "...";

template <typename T>
ShortNumber Shortest(T value) {
  if (!std::isfinite(value)) return {.value = value, .scientific = ""};
  std::array<char, 64> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::scientific).ptr;
  return {.value = value, .scientific = std::string(text.data(), end)};
}

template <typename T>
bool IsRead(const std::string& text, T as) {
  float value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return T::FromFloat(value).bits == as.bits;
}

// The fewest digits that give the same bits again.
template <typename T>
ShortNumber ShortestNarrow(T narrow) {
  const double value = narrow.ToFloat();
  for (int digits = 0; std::isfinite(value) && digits < 6; ++digits) {
    const std::string nearest = absl::StrFormat("%.*e", digits, value);
    if (IsRead(nearest, narrow)) return {.value = value, .scientific = nearest};
    // A power of two is read from twice as far above it as below.
    const double half_unit = 0.5 * std::pow(10.0, std::floor(std::log10(std::abs(value))) - digits);
    const std::string outward = absl::StrFormat("%.*e", digits, value + std::copysign(half_unit, value));
    if (IsRead(outward, narrow)) return {.value = value, .scientific = outward};
  }
  return Shortest(narrow.ToFloat());
}

ShortNumber ShortNumberOf(float value) { return Shortest(value); }
ShortNumber ShortNumberOf(double value) { return Shortest(value); }
ShortNumber ShortNumberOf(Half value) { return ShortestNarrow(value); }
ShortNumber ShortNumberOf(BFloat16 value) { return ShortestNarrow(value); }

// Offsets of the shown elements, row-major, and the nesting around them.
class Shown {
 public:
  Shown(const HostTensor& tensor, const PrintOptions& options)
      : shape_(tensor.shape()),
        edge_(std::max<int64_t>(options.edge_elements, 1)),
        line_(std::max<int64_t>(options.line_characters, 1)),
        is_summarized_(tensor.element_count() > options.threshold) {
    int64_t stride = 1;
    strides_.resize(shape_.size());
    for (size_t i = 0; i < shape_.size(); ++i) {
      const size_t axis = tensor.order() == MemoryOrder::kRowMajor ? shape_.size() - 1 - i : i;
      strides_[axis] = stride;
      stride *= shape_[axis];
    }
    Collect(0, 0);
  }

  const std::vector<int64_t>& offsets() const { return offsets_; }

  // Writes the texts of the shown elements.
  std::string Nest(const std::vector<std::string>& words) const {
    size_t next = 0;
    return Nest(words, &next, 0, " ", line_);
  }

 private:
  bool IsCut(size_t axis) const { return is_summarized_ && (shape_[axis] - 1) / 2 >= edge_; }

  void Collect(size_t axis, int64_t offset) {
    if (axis == shape_.size()) return offsets_.push_back(offset);
    for (int64_t i = 0; i < shape_[axis]; ++i) {
      if (IsCut(axis) && i == edge_) i = shape_[axis] - edge_;
      Collect(axis + 1, offset + i * strides_[axis]);
    }
  }

  std::string Nest(const std::vector<std::string>& words, size_t* next, size_t axis, const std::string& indent,
                   int64_t width) const {
    if (axis == shape_.size()) return words[(*next)++];
    const bool is_cut = IsCut(axis);
    const int64_t count = is_cut ? 2 * edge_ : shape_[axis];
    const bool is_last_axis = axis + 1 == shape_.size();
    std::string text, line = indent;
    const auto add = [&](const std::string& word) {
      if (!is_last_axis) {
        absl::StrAppend(&line, word);
        return;
      }
      if (static_cast<int64_t>(line.size() + word.size()) > width - 1 && line.size() > indent.size()) {
        absl::StrAppend(&text, absl::StripTrailingAsciiWhitespace(line), "\n");
        line = indent;
      }
      absl::StrAppend(&line, word);
    };
    const std::string separator =
        is_last_axis ? " " : absl::StrCat(std::string(shape_.size() - axis - 1, '\n'), indent);
    for (int64_t i = 0; i < count; ++i) {
      if (is_cut && i == edge_) {
        add(kLeftOut);
        line += separator;
      }
      add(Nest(words, next, axis + 1, indent + " ", width - 1));
      if (i + 1 < count) line += separator;
    }
    text += line;
    return absl::StrCat("[", text.substr(indent.size()), "]");
  }

  const Shape shape_;
  const int64_t edge_, line_;
  const bool is_summarized_;
  std::vector<int64_t> strides_;
  std::vector<int64_t> offsets_;
};

void Align(std::vector<std::string>* words) {
  size_t width = 0;
  for (const std::string& word : *words) width = std::max(width, word.size());
  for (std::string& word : *words) word.insert(0, width - word.size(), ' ');
}

std::vector<std::string> Words(const bool* values, const std::vector<int64_t>& offsets, int) {
  std::vector<std::string> words;
  for (const int64_t offset : offsets) words.push_back(values[offset] ? "True" : "False");
  // NumPy leaves room for False beside True, even if there is none.
  for (std::string& word : words) word.insert(0, 5 - word.size(), ' ');
  return words;
}

template <typename T>
std::vector<std::string> WholeWords(const T* values, const std::vector<int64_t>& offsets) {
  std::vector<std::string> words;
  for (const int64_t offset : offsets) words.push_back(absl::StrCat(values[offset]));
  Align(&words);
  return words;
}

std::vector<std::string> Words(const int32_t* values, const std::vector<int64_t>& offsets, int) {
  return WholeWords(values, offsets);
}
std::vector<std::string> Words(const int64_t* values, const std::vector<int64_t>& offsets, int) {
  return WholeWords(values, offsets);
}

template <typename T>
std::vector<std::string> Words(const T* values, const std::vector<int64_t>& offsets, int precision) {
  std::vector<ShortNumber> numbers;
  for (const int64_t offset : offsets) numbers.push_back(ShortNumberOf(values[offset]));
  const NumberColumn column(numbers, precision, /*has_plus=*/false);
  std::vector<std::string> words;
  for (const ShortNumber& number : numbers) words.push_back(column.Text(number));
  return words;
}

template <typename T>
std::vector<std::string> Words(const std::complex<T>* values, const std::vector<int64_t>& offsets, int precision) {
  std::vector<ShortNumber> real, imaginary;
  for (const int64_t offset : offsets) {
    real.push_back(Shortest(values[offset].real()));
    imaginary.push_back(Shortest(values[offset].imag()));
  }
  const NumberColumn real_column(real, precision, /*has_plus=*/false);
  const NumberColumn imaginary_column(imaginary, precision, /*has_plus=*/true);
  std::vector<std::string> words;
  for (size_t i = 0; i < offsets.size(); ++i) {
    // The unit stands at the number, before what pads it.
    std::string unit = imaginary_column.Text(imaginary[i]);
    unit.insert(unit.find_last_not_of(' ') + 1, "j");
    words.push_back(real_column.Text(real[i]) + unit);
  }
  return words;
}

std::string Lone(bool value) { return value ? "True" : "False"; }
std::string Lone(int32_t value) { return absl::StrCat(value); }
std::string Lone(int64_t value) { return absl::StrCat(value); }
template <typename T>
std::string Lone(T value) {
  return LoneText(ShortNumberOf(value), /*is_part=*/false);
}
template <typename T>
std::string Lone(std::complex<T> value) {
  const std::string imaginary = LoneText(Shortest(value.imag()), /*is_part=*/true);
  // As Python does: a real part of 0, but not of -0, is left out.
  if (value.real() == 0 && !std::signbit(value.real())) return imaginary + "j";
  return absl::StrCat("(", LoneText(Shortest(value.real()), /*is_part=*/true), imaginary.front() == '-' ? "" : "+",
                      imaginary, "j)");
}

template <typename T>
std::string TextOf(const HostTensor& tensor, const PrintOptions& options) {
  if (tensor.element_count() == 0) return "[]";
  const T* const values = reinterpret_cast<const T*>(tensor.bytes());
  if (tensor.shape().empty()) return Lone(*values);
  const Shown shown(tensor, options);
  return shown.Nest(Words(values, shown.offsets(), options.precision));
}

}  // namespace

std::string ToString(const HostTensor& tensor, const PrintOptions& options) {
  switch (tensor.dtype()) {
    case DType::kBool:
      return TextOf<bool>(tensor, options);
    case DType::kI32:
      return TextOf<int32_t>(tensor, options);
    case DType::kI64:
      return TextOf<int64_t>(tensor, options);
    case DType::kF16:
      return TextOf<Half>(tensor, options);
    case DType::kBF16:
      return TextOf<BFloat16>(tensor, options);
    case DType::kF32:
      return TextOf<float>(tensor, options);
    case DType::kF64:
      return TextOf<double>(tensor, options);
    case DType::kC64:
      return TextOf<std::complex<float>>(tensor, options);
    case DType::kC128:
      return TextOf<std::complex<double>>(tensor, options);
  }
  return "";
}

std::ostream& operator<<(std::ostream& out, const HostTensor& tensor) { return out << ToString(tensor); }

}  // namespace tensord::client
