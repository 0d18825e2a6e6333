// Times backends/cpu/linalg/lanes/loops.h on batches of square matrices, in turns with others: does what the lines of
// its standard input say and answers each with one line of JSON. Driven by
// tests/bench/small_matrices/small_matrices.py.
//
//   list                        the names of the operations
//   run NAME DTYPE SIZE COUNT   nanoseconds a matrix: the least of many rounds, of the thread's own time

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
#include "backends/cpu/linalg/lanes/loops.h"

namespace tensord {
namespace {

constexpr int kRounds = 9;

struct Operation {
  const char* name;
  cpu::SmallMatrixOp op;
  bool is_hermitian = false;
  bool has_vectors = true;
};

constexpr Operation kOperations[] = {
    {"cholesky", cpu::SmallMatrixOp::kCholesky, true},
    {"lu", cpu::SmallMatrixOp::kLu},
    {"qr", cpu::SmallMatrixOp::kQr},
    {"svd", cpu::SmallMatrixOp::kSvd},
    {"svdvals", cpu::SmallMatrixOp::kSvd, false, false},
    {"eigh", cpu::SmallMatrixOp::kEigh, true},
    {"eigvalsh", cpu::SmallMatrixOp::kEigh, true, false},
    {"solve", cpu::SmallMatrixOp::kSolve},
};

double ThreadNanoseconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

// T is what a complex number consists of, too. Hermitian ones are positive definite, so that everything can take them.
template <typename T>
std::vector<T> RandomMatrices(int64_t n, int64_t count, int64_t parts, bool is_hermitian) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<T> uniform(-1, 1);
  std::vector<T> values(static_cast<size_t>(n * n * count * parts));
  for (T& value : values) value = uniform(random);
  for (int64_t b = 0; is_hermitian && b < count; ++b) {
    const auto at = [&](int64_t i, int64_t j) { return static_cast<size_t>(((b * n + j) * n + i) * parts); };
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t i = 0; i < j; ++i) {
        values[at(i, j)] = values[at(j, i)];
        if (parts == 2) values[at(i, j) + 1] = -values[at(j, i) + 1];
      }
      values[at(j, j)] += static_cast<T>(2 * n);
      if (parts == 2) values[at(j, j) + 1] = 0;
    }
  }
  return values;
}

template <typename T>
double NanosecondsPerMatrix(const Operation& operation, DType dtype, int64_t n, int64_t count) {
  const int64_t parts = SizeOf(dtype) / static_cast<int64_t>(sizeof(T));
  const cpu::SmallMatrixLoops loops = cpu::GetSmallMatrixLoops(operation.op, dtype);
  const std::vector<T> a = RandomMatrices<T>(n, count, parts, operation.is_hermitian);
  std::vector<T> results[4];
  cpu::SmallMatrixBatch batch{.rows = n, .columns = n, .count = count};
  batch.operands[0] = a.data();
  batch.operands[1] = a.data();
  if (operation.op == cpu::SmallMatrixOp::kSolve) batch.right_sides = 1;
  for (size_t i = 0; i < 4; ++i) {
    results[i].resize(a.size());
    batch.results[i] = results[i].data();
  }
  batch.only_values = !operation.has_vectors;
  std::vector<char> storage(
      static_cast<size_t>(cpu::SmallMatrixScratchEntries(operation.op, batch) * loops.entry_bytes + 64));
  char* const scratch = storage.data() + (64 - reinterpret_cast<uintptr_t>(storage.data()) % 64);
  double least = std::numeric_limits<double>::infinity();
  for (int round = 0; round < kRounds; ++round) {
    const double start = ThreadNanoseconds();
    loops.run(batch, scratch);
    least = std::min(least, ThreadNanoseconds() - start);
  }
  return least / static_cast<double>(count);
}

std::string Run(const std::string& name, const std::string& dtype, int64_t n, int64_t count) {
  for (const Operation& operation : kOperations) {
    if (operation.name != name) continue;
    double time = 0;
    if (dtype == "f32") time = NanosecondsPerMatrix<float>(operation, DType::kF32, n, count);
    if (dtype == "f64") time = NanosecondsPerMatrix<double>(operation, DType::kF64, n, count);
    if (dtype == "c64") time = NanosecondsPerMatrix<float>(operation, DType::kC64, n, count);
    if (dtype == "c128") time = NanosecondsPerMatrix<double>(operation, DType::kC128, n, count);
    if (time > 0) return absl::StrFormat("%.4f", time);
  }
  return R"({"error": "no such operation"})";
}

std::string Answer(const std::string& line) {
  std::istringstream words(line);
  std::string command, name, dtype;
  int64_t n = 0, count = 0;
  words >> command >> name >> dtype >> n >> count;
  if (command == "list") {
    std::vector<std::string> names;
    for (const Operation& operation : kOperations) names.push_back(absl::StrFormat("\"%s\"", operation.name));
    return absl::StrFormat("[%s]", absl::StrJoin(names, ", "));
  }
  if (command == "run" && n > 0 && n <= 32 && count > 0) return Run(name, dtype, n, count);
  return R"({"error": "no such command"})";
}

}  // namespace
}  // namespace tensord

int main() {
  for (std::string line; std::getline(std::cin, line);) std::cout << tensord::Answer(line) << std::endl;
  return 0;
}
