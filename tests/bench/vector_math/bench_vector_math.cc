// Times the functions of backends/cpu/math/vector_math.h, in turns with others: does what the lines of its standard
// input say and answers each with one line of JSON. Driven by tests/bench/vector_math/vector_math.py.
//
//   list                       the functions: {"name", "dtype", "operands": [[least, most], …]}
//   run NAME DTYPE COUNT       nanoseconds an element on arrays of COUNT random numbers: the least of many rounds, of
//   the
//                              thread's own time

#include <time.h>

#include <algorithm>
#include <iostream>
#include <limits>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "backends/cpu/math/vector_math.h"

namespace tensord {
namespace {

constexpr int64_t kElementsPerRound = 1 << 16;  // at least; short arrays are run over several times
constexpr int kRounds = 25;

struct Range {
  double least;
  double most;
};

template <typename T>
struct Function {
  const char* name;
  Range x;
  typename cpu::VectorMath<T>::Unary cpu::VectorMath<T>::*unary;
  Range y = {0, 0};
  typename cpu::VectorMath<T>::Binary cpu::VectorMath<T>::*binary = nullptr;
};

template <typename T>
const std::vector<Function<T>>& Functions() {
  using M = cpu::VectorMath<T>;
  static const auto* const functions = new std::vector<Function<T>>{
      {"exp", {-10, 10}, &M::exp},
      {"expm1", {-2, 2}, &M::expm1},
      {"log", {0.001, 10}, &M::log},
      {"log2", {0.001, 10}, &M::log2},
      {"log10", {0.001, 10}, &M::log10},
      {"log1p", {-0.9, 10}, &M::log1p},
      {"logistic", {-10, 10}, &M::logistic},
      {"tanh", {-4, 4}, &M::tanh},
      {"sin", {-10, 10}, &M::sin},
      {"cos", {-10, 10}, &M::cos},
      {"tan", {-10, 10}, &M::tan},
      {"sqrt", {0, 10}, &M::sqrt},
      {"rsqrt", {0.001, 10}, &M::rsqrt},
      {"erf", {-3, 3}, &M::erf},
      {"cbrt", {-10, 10}, &M::cbrt},
      {"pow", {0.01, 10}, nullptr, {-4, 4}, &M::pow},
      {"atan2", {-10, 10}, nullptr, {-10, 10}, &M::atan2},
      {"maximum", {-10, 10}, nullptr, {-10, 10}, &M::maximum},
      {"remainder", {-100, 100}, nullptr, {0.5, 10}, &M::remainder},
  };
  return *functions;
}

template <typename T>
std::vector<T> RandomNumbers(Range range, int64_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<T> numbers(static_cast<size_t>(count));
  for (T& number : numbers) number = static_cast<T>(std::uniform_real_distribution(range.least, range.most)(random));
  return numbers;
}

double ThreadNanoseconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

template <typename T>
double NanosecondsPerElement(const Function<T>& function, int64_t count) {
  const cpu::VectorMath<T>& math = cpu::GetVectorMath<T>();
  const std::vector<T> x = RandomNumbers<T>(function.x, count, 1), y = RandomNumbers<T>(function.y, count, 2);
  std::vector<T> result(x.size());
  const int64_t runs = std::max<int64_t>(1, kElementsPerRound / count);
  double least = std::numeric_limits<double>::infinity();
  for (int round = 0; round < kRounds; ++round) {
    const double start = ThreadNanoseconds();
    for (int64_t run = 0; run < runs; ++run) {
      if (function.unary != nullptr) {
        (math.*function.unary)(x.data(), result.data(), count);
      } else {
        (math.*function.binary)(x.data(), y.data(), result.data(), count);
      }
    }
    least = std::min(least, ThreadNanoseconds() - start);
  }
  return least / static_cast<double>(runs * count);
}

template <typename T>
void List(absl::string_view dtype, std::vector<std::string>* out) {
  for (const Function<T>& f : Functions<T>()) {
    std::string operands = absl::StrFormat("[%g, %g]", f.x.least, f.x.most);
    if (f.binary != nullptr) operands += absl::StrFormat(", [%g, %g]", f.y.least, f.y.most);
    out->push_back(absl::StrFormat(R"({"name": "%s", "dtype": "%s", "operands": [%s]})", f.name, dtype, operands));
  }
}

template <typename T>
std::string Run(const std::string& name, int64_t count) {
  for (const Function<T>& f : Functions<T>()) {
    if (f.name == name) return absl::StrFormat("%.4f", NanosecondsPerElement(f, count));
  }
  return R"({"error": "no such function"})";
}

std::string Answer(const std::string& line) {
  std::istringstream words(line);
  std::string command, name, dtype;
  int64_t count = 0;
  words >> command >> name >> dtype >> count;
  if (command == "list") {
    std::vector<std::string> functions;
    List<float>("f32", &functions);
    List<double>("f64", &functions);
    return absl::StrFormat("[%s]", absl::StrJoin(functions, ", "));
  }
  if (command == "run" && count > 0) return dtype == "f32" ? Run<float>(name, count) : Run<double>(name, count);
  return R"({"error": "no such command"})";
}

}  // namespace
}  // namespace tensord

int main() {
  for (std::string line; std::getline(std::cin, line);) std::cout << tensord::Answer(line) << std::endl;
  return 0;
}
