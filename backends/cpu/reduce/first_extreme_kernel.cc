#include "backends/cpu/reduce/first_extreme_kernel.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "backends/cpu/machine/thread_pool.h"
#include "backends/cpu/reduce/first_extreme_loops.h"
#include "engine/base/rounding.h"
#include "engine/base/stop_signal.h"

namespace tensord::cpu {
namespace {

constexpr int64_t kBlockBytes = int64_t{8} << 10;   // looked into twice
constexpr int64_t kTaskBytes = int64_t{128} << 10;  // as of sums (reduce.cc)
constexpr int64_t kMaxTasks = 1024;                 // likewise
constexpr int64_t kFewRows = 16;                    // of which parts are tasks
constexpr int64_t kMaxParts = 32;                   // likewise
constexpr int64_t kLeastRowBytes = 1024;            // shorter ones are faster side by side

// The question that a program of this kind asks.
struct Question {
  DType dtype = DType::kInvalid;  // of what is searched
  DType index_dtype = DType::kInvalid;
  bool greatest = false;
  int32_t tensor = 0;
  MicroAccess elements;
  MicroAccess numbers;
};

class Reader {
 public:
  explicit Reader(const MicroProgram& program) : program_(program) {}

  std::optional<Question> Read() {
    if (program_.results.size() != 1 || program_.axes.empty() || !program_.axes[0].is_reduced) return std::nullopt;
    for (size_t d = 1; d < program_.axes.size(); ++d) {
      if (program_.axes[d].is_reduced) return std::nullopt;
    }
    const MicroInstruction& least = At(program_.results[0].value);
    if (least.kind != MicroKind::kReduce || least.reduce != ReduceKind::kMin) return std::nullopt;
    const MicroInstruction& chosen = At(least.operands[0]);
    if (chosen.kind != MicroKind::kSelect || !ReadNumbers(chosen)) return std::nullopt;
    if (!ReadFound(At(chosen.operands[0]))) return std::nullopt;
    question_.index_dtype = least.dtype;
    return question_;
  }

 private:
  const MicroInstruction& At(int32_t value) const { return program_.instructions[static_cast<size_t>(value)]; }
  int64_t length() const { return program_.axes[0].size; }

  // Reads the number of an element: its own if it is found, and else a constant that is no less than any.
  bool ReadNumbers(const MicroInstruction& chosen) {
    const MicroInstruction &number = At(chosen.operands[1]), &otherwise = At(chosen.operands[2]);
    if (number.kind != MicroKind::kIota || !kIntegers.Contains(number.dtype)) return false;
    if (otherwise.kind != MicroKind::kConstant) return false;
    question_.numbers = number.access;
    const auto& strides = number.access.strides;
    if (strides[0] < 1 || std::any_of(strides.begin() + 1, strides.end(), [](int64_t s) { return s != 0; })) {
      return false;
    }
    const int64_t last = number.access.offset + strides[0] * (length() - 1);
    const int64_t value = otherwise.dtype == DType::kI32 ? otherwise.constant->values<int32_t>()[0]
                                                         : otherwise.constant->values<int64_t>()[0];
    return value >= last;
  }

  // Equal to the extreme, or no number.
  bool ReadFound(const MicroInstruction& found) {
    if (found.kind == MicroKind::kCompare) return ReadIsExtreme(found) && kIntegers.Contains(question_.dtype);
    if (found.kind != MicroKind::kBinary || found.op != CoreOp::kOr || found.dtype != DType::kBool) return false;
    const MicroInstruction &a = At(found.operands[0]), &b = At(found.operands[1]);
    return (ReadIsExtreme(a) && IsNoNumber(b)) || (ReadIsExtreme(b) && IsNoNumber(a));
  }

  bool ReadIsExtreme(const MicroInstruction& compare) {
    if (compare.kind != MicroKind::kCompare || compare.direction != CompareDirection::kEq) return false;
    const MicroInstruction *element = &At(compare.operands[0]), *extreme = &At(compare.operands[1]);
    if (element->kind == MicroKind::kReduce) std::swap(element, extreme);
    if (extreme->kind != MicroKind::kReduce || element->kind != MicroKind::kLoad) return false;
    if (extreme->reduce != ReduceKind::kMax && extreme->reduce != ReduceKind::kMin) return false;
    question_.dtype = element->dtype;
    question_.greatest = extreme->reduce == ReduceKind::kMax;
    question_.tensor = element->tensor;
    question_.elements = element->access;
    return IsElement(At(extreme->operands[0])) && element->access.strides[0] == 1;
  }

  bool IsElement(const MicroInstruction& load) const {
    return load.kind == MicroKind::kLoad && load.tensor == question_.tensor && load.access == question_.elements;
  }

  bool IsNoNumber(const MicroInstruction& compare) const {
    return compare.kind == MicroKind::kCompare && compare.direction == CompareDirection::kNe &&
           IsElement(At(compare.operands[0])) && IsElement(At(compare.operands[1]));
  }

  const MicroProgram& program_;
  Question question_;
};

class FirstExtremeKernel final : public Kernel {
 public:
  FirstExtremeKernel(const MicroProgram& program, Question question)
      : question_(std::move(question)),
        loops_(GetFirstExtremeLoops(question_.greatest, question_.dtype)),
        element_bytes_(SizeOf(question_.dtype)),
        length_(program.axes[0].size) {
    for (size_t d = 1; d < program.axes.size(); ++d) {
      kept_sizes_.push_back(program.axes[d].size);
      rows_ *= program.axes[d].size;
    }
    const int64_t row_bytes = length_ * element_bytes_;
    if (rows_ < kFewRows) parts_ = std::clamp(row_bytes / kTaskBytes, int64_t{1}, kMaxParts);
    num_tasks_ = parts_ > 1 ? rows_ * parts_ : std::clamp(rows_ * row_bytes / kTaskBytes, int64_t{1}, kMaxTasks);
    if (parts_ == 1) num_tasks_ = std::min(num_tasks_, std::max<int64_t>(1, rows_));
  }

  int64_t scratch_bytes() const override {
    return parts_ > 1 ? RoundUp(rows_ * parts_ * static_cast<int64_t>(sizeof(Candidate)), 64) : 0;
  }

  std::string Describe() const override {
    return absl::StrCat("the first ", question_.greatest ? "greatest" : "least", " in one pass, ", parts_,
                        parts_ == 1 ? " part" : " parts", " a row, ", num_tasks_, num_tasks_ == 1 ? " task" : " tasks");
  }

  void Run(const KernelArgs& args) const override {
    if (parts_ == 1) {
      ForEachTask(args, [&](int64_t task) {
        const int64_t end = ShareBegin(rows_, num_tasks_, task + 1);
        for (int64_t row = ShareBegin(rows_, num_tasks_, task); row < end && !StopRequested(); ++row) {
          Answer(args, row, BestOf(RowStart(args, row), 0, length_));
        }
      });
      return;
    }
    Candidate* const candidates = static_cast<Candidate*>(args.scratch);
    const bool done = ForEachTask(args, [&](int64_t task) {
      const int64_t row = task / parts_, part = task % parts_;
      candidates[task] =
          BestOf(RowStart(args, row), ShareBegin(length_, parts_, part), ShareBegin(length_, parts_, part + 1));
    });
    if (!done) return;
    for (int64_t row = 0; row < rows_; ++row) {
      Candidate best = candidates[row * parts_];
      for (int64_t part = 1; part < parts_; ++part) {
        const Candidate& next = candidates[row * parts_ + part];
        if (!best.is_nan && (next.is_nan || loops_.wins(next.value, best.value))) best = next;
      }
      Answer(args, row, best);
    }
  }

 private:
  // The extreme of some elements, and the block that has it first.
  struct Candidate {
    alignas(8) char value[8];
    int64_t begin;
    int64_t count;
    bool is_nan;
  };

  template <typename Body>
  bool ForEachTask(const KernelArgs& args, const Body& body) const {
    if (num_tasks_ > 1) return args.pool->ParallelFor(num_tasks_, body);
    body(0);
    return true;
  }

  const char* RowStart(const KernelArgs& args, int64_t row) const {
    int64_t offset = question_.elements.offset;
    for (size_t d = 0; d < kept_sizes_.size(); ++d) {
      offset += row % kept_sizes_[d] * question_.elements.strides[d + 1];
      row /= kept_sizes_[d];
    }
    return static_cast<const char*>(args.operands[static_cast<size_t>(question_.tensor)]) + offset * element_bytes_;
  }

  Candidate BestOf(const char* row, int64_t begin, int64_t end) const {
    const int64_t block = kBlockBytes / element_bytes_;
    Candidate best{.value = {}, .begin = begin, .count = 0, .is_nan = false};
    for (int64_t i = begin; i < end && !StopRequested(); i += block) {
      Candidate next{.value = {}, .begin = i, .count = std::min(block, end - i), .is_nan = false};
      next.is_nan = loops_.extreme(row + i * element_bytes_, next.count, next.value);
      if (next.is_nan) return next;
      if (best.count == 0 || loops_.wins(next.value, best.value)) best = next;
    }
    return best;
  }

  void Answer(const KernelArgs& args, int64_t row, const Candidate& best) const {
    const char* const start = RowStart(args, row) + best.begin * element_bytes_;
    const int64_t place = best.begin + loops_.find(start, best.count, best.value, best.is_nan);
    int64_t number = question_.numbers.offset + place * question_.numbers.strides[0];
    if (!args.origin.empty()) number += args.origin[0] * question_.numbers.strides[0];
    char* const result = static_cast<char*>(args.results[0]);
    if (question_.index_dtype == DType::kI32) {
      const int32_t narrow = static_cast<int32_t>(number);
      std::memcpy(result + row * static_cast<int64_t>(sizeof(narrow)), &narrow, sizeof(narrow));
    } else {
      std::memcpy(result + row * static_cast<int64_t>(sizeof(number)), &number, sizeof(number));
    }
  }

  const Question question_;
  const FirstExtremeLoops loops_;
  const int64_t element_bytes_;
  const int64_t length_;
  absl::InlinedVector<int64_t, 6> kept_sizes_;
  int64_t rows_ = 1;
  int64_t parts_ = 1;  // of a row
  int64_t num_tasks_ = 1;
};

}  // namespace

std::unique_ptr<Kernel> MakeFirstExtremeKernel(const MicroProgram& program) {
  std::optional<Question> question = Reader(program).Read();
  if (!question.has_value() || GetFirstExtremeLoops(question->greatest, question->dtype).find == nullptr)
    return nullptr;
  if (program.axes[0].size * SizeOf(question->dtype) < kLeastRowBytes) return nullptr;
  return std::make_unique<FirstExtremeKernel>(program, *std::move(question));
}

}  // namespace tensord::cpu
