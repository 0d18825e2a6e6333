#ifndef TENSORD_TESTS_UNIT_BACKENDS_CPU_LINALG_NARROW_MATRIX_H_
#define TENSORD_TESTS_UNIT_BACKENDS_CPU_LINALG_NARROW_MATRIX_H_

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "engine/base/stop_signal.h"
#include "gtest/gtest.h"

namespace tensord::cpu {

// A matrix of a diagonal and the numbers beside it, which is tridiagonal or bidiagonal.
template <typename R>
struct NarrowMatrix {
  std::string name;
  std::vector<R> diagonal, beside;  // as many of both

  int64_t size() const { return static_cast<int64_t>(diagonal.size()); }
  double largest() const {
    double largest = 0;
    for (const std::vector<R>* numbers : {&diagonal, &beside}) {
      for (const R x : *numbers) largest = std::max(largest, std::abs(double{x}));
    }
    return largest;
  }
  // Returns the bound of values' differences from those of another algorithm.
  double value_bound() const {
    return 20 * std::sqrt(static_cast<double>(size() + 10)) * largest() * double{std::numeric_limits<R>::epsilon()};
  }
  // Returns the bound of residuals beside largest(), and of products of vectors.
  double vector_bound() const {
    return 2 * static_cast<double>(std::max<int64_t>(size(), 10)) * double{std::numeric_limits<R>::epsilon()};
  }
};

// The largest magnitude that it was shown, or NaN if one was NaN.
class Worst {
 public:
  void See(double x) {
    if (!std::isnan(worst_) && !(std::abs(x) <= worst_)) worst_ = std::abs(x);
  }
  double value() const { return worst_; }

 private:
  double worst_ = 0;
};

// Makes matrices of `n` rows by their elements.
template <typename R>
class NarrowMatrices {
 public:
  using Element = std::function<double(int64_t)>;

  explicit NarrowMatrices(int64_t n) : n_(n), random_(static_cast<uint32_t>(n)) {}

  const double tiny = std::is_same_v<R, float> ? 1e-30 : 1e-250;
  const double rounding = double{std::numeric_limits<R>::epsilon()};

  double any() { return std::uniform_real_distribution<double>(-1, 1)(random_); }

  NarrowMatrix<R> Made(const std::string& name, const Element& diagonal, const Element& beside) const {
    NarrowMatrix<R> matrix{.name = name + " of " + std::to_string(n_)};
    for (int64_t i = 0; i < n_; ++i) {
      matrix.diagonal.push_back(static_cast<R>(diagonal(i)));
      matrix.beside.push_back(static_cast<R>(beside(i)));
    }
    return matrix;
  }

  // Returns matrices that are hard for either kind.
  std::vector<NarrowMatrix<R>> All() {
    const Element draw = [this](int64_t) { return any(); }, nothing = [](int64_t) { return 0.0; },
                  one = [](int64_t) { return 1.0; };
    const Element graded = [this](int64_t i) { return std::pow(rounding, double(i) / double(n_)); };
    const Element upwards = [this, graded](int64_t i) { return graded(n_ - i); };
    const Element steep = [this](int64_t i) { return std::pow(tiny, double(i) / double(n_)); };
    const Element small = [this](int64_t) { return any() * tiny; }, huge = [this](int64_t) { return any() / tiny; };
    const Element wilkinson = [](int64_t i) { return std::abs(double(i % 21) - 10); };
    const auto is_first = [this](int64_t i) { return 2 * i < n_; };
    return {
        Made("random", draw, draw),
        Made("zero", nothing, nothing),
        Made("identity", one, nothing),
        Made("diagonal", draw, nothing),
        Made("no diagonal", nothing, one),
        Made("ones", one, one),
        Made(
            "second difference", [](int64_t) { return 2; }, [](int64_t) { return -1; }),
        Made(
            "Wilkinson's", [this](int64_t i) { return std::abs(double(i) - double(n_ - 1) / 2); }, one),
        Made("glued Wilkinson's", wilkinson, [this](int64_t i) { return i % 21 == 20 ? 10 * rounding : 1; }),
        Made("torn", draw, [this](int64_t i) { return i % 37 == 36 ? 0 : any(); }),
        Made(
            "of deficient rank", [this](int64_t i) { return i % 11 == 5 ? 0 : any(); }, draw),
        Made("graded", graded, [graded](int64_t i) { return graded(i) / 3; }),
        Made("graded upwards", upwards, upwards),
        Made("steep", steep, steep),
        Made(
            "a cluster", [this](int64_t i) { return i % 5 == 0 ? any() : 1; },
            [this](int64_t) { return any() * 10 * rounding; }),
        Made("of rank one and rounding", one, [this](int64_t) { return 1 + any() * rounding; }),
        Made("tiny", small, small),
        Made("huge", huge, huge),
        Made(
            "blocks of two scales", [this, is_first](int64_t i) { return any() * (is_first(i) ? 1 : 1e-12); },
            [this, is_first](int64_t i) {
              return is_first(i) && !is_first(i + 2) ? 0 : any() * (is_first(i) ? 1 : 1e-12);
            }),
    };
  }

 private:
  const int64_t n_;
  std::mt19937 random_;
};

// That the work ends at whatever ask of it is answered with a stop, and asks more than `least` times.
inline void ExpectStopsWhereverItAsks(int64_t least, const std::function<void()>& work) {
  int64_t asks = 0, last = std::numeric_limits<int64_t>::max();
  const StopSignal::Check check = [&] { return ++asks >= last ? absl::CancelledError("enough") : absl::OkStatus(); };
  const auto run = [&] {
    asks = 0;
    StopSignal stop(check, std::chrono::nanoseconds(0));
    const StopSignal::Scope scope(&stop);
    work();
    return asks;
  };
  const int64_t all = run();
  EXPECT_GT(all, least);
  for (last = 1; last <= all; last += std::max<int64_t>(7, all / 200)) EXPECT_EQ(run(), last);
}

}  // namespace tensord::cpu

#endif  // TENSORD_TESTS_UNIT_BACKENDS_CPU_LINALG_NARROW_MATRIX_H_
