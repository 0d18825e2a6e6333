#ifndef TENSORD_TESTS_TESTLIB_GRAPHS_RANDOM_CHOICES_H_
#define TENSORD_TESTS_TESTLIB_GRAPHS_RANDOM_CHOICES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace tensord {

// The choices of a test that draws its graphs: the same for the same seed.
class RandomChoices {
 public:
  explicit RandomChoices(uint64_t seed) : random_(seed) {}

  // From 0 on.
  int64_t Below(int64_t n) { return std::uniform_int_distribution<int64_t>(0, n - 1)(random_); }

  template <typename T>
  T OneOf(const std::vector<T>& choices) {
    return choices[static_cast<size_t>(Below(static_cast<int64_t>(choices.size())))];
  }

  template <typename Values>
  void Shuffle(Values* values) {
    std::shuffle(values->begin(), values->end(), random_);
  }

 private:
  std::mt19937_64 random_;
};

}  // namespace tensord

#endif  // TENSORD_TESTS_TESTLIB_GRAPHS_RANDOM_CHOICES_H_
