// Every text that the backend makes for a program, under NVIDIA's compiler: for each generation without a warning and
// without a spill, in as many registers as its kind may have.
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/testlib/cuda/generations.h"
#include "tests/testlib/cuda/nvrtc.h"
#include "tests/testlib/graphs/node_case.h"
#include "tests/testlib/runs/compiled_run.h"
#include "tests/unit/backends/cuda/beside_cpu.h"

namespace tensord::cuda {
namespace {

std::mutex g_texts_mutex;
std::set<std::string>* g_texts = nullptr;  // those that the compiler was given
decltype(Nvrtc::nvrtcCreateProgram) g_create = nullptr;

NvrtcResult RecordAndCreate(NvrtcProgram* program, const char* source, const char* name, int num_headers,
                            const char* const* headers, const char* const* include_names) {
  {
    std::lock_guard lock(g_texts_mutex);
    g_texts->insert(source);
  }
  return g_create(program, source, name, num_headers, headers, include_names);
}

class EveryTextTest : public BesideCpuTest {
 protected:
  void SetUp() override {
    if (tensord::Nvrtc::Get() == nullptr) GTEST_SKIP() << "no NVRTC";
    auto* const table = const_cast<Nvrtc*>(*libraries_->nvrtc());
    g_texts = &texts_;
    g_create = std::exchange(table->nvrtcCreateProgram, &RecordAndCreate);
    backend_ = Made();
  }
  void TearDown() override {
    backend_ = nullptr;
    BesideCpuTest::TearDown();
  }

  void RunOne(absl::string_view op, int results, const std::vector<ConcreteType>& operands,
              absl::string_view attrs = "") {
    std::string text = "graph \"g\" {\n", names;
    std::vector<Literal> arguments;
    for (const ConcreteType& operand : operands) {
      const std::string name = absl::StrCat("%x", arguments.size());
      absl::StrAppend(&text, "  ", name, " = input : ", ToString(operand), "\n");
      absl::StrAppend(&names, names.empty() ? "" : ", ", name);
      arguments.push_back(RandomLiteral(operand, Values::kModest, &random_));
    }
    absl::StrAppend(&text, "  %y", results > 1 ? absl::StrCat(":", results) : "", " = ", op, "(", names, ")", attrs,
                    "\n");
    for (int i = 0; i < results; ++i) {
      absl::StrAppend(&text, "  output \"y", i, "\" = %y", results > 1 ? absl::StrCat(":", i) : "", "\n");
    }
    const auto run = Run(backend_.get(), absl::StrCat(text, "}\n"), arguments);
    // Random matrices may be refused, after their kernels were made.
    EXPECT_TRUE(run.ok() || absl::StrContains(ReasonOf(run.status()), "MATRIX")) << run.status() << text;
  }
  void RunLinalg(absl::string_view op, int results, std::vector<ConcreteType> operands, absl::string_view attrs = "") {
    RunOne(absl::StrCat("tensord.linalg.v1.", op), results, operands, attrs);
  }

  void ExpectAllFit(size_t least_texts, int most_registers) {
    EXPECT_GE(texts_.size(), least_texts);
    ExpectFitsGenerations(texts_, most_registers);
  }

  std::set<std::string> texts_;
  std::unique_ptr<Backend> backend_;
};

TEST_F(EveryTextTest, Factorizations) {
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kC64, DType::kC128}) {
    for (const int64_t n : {7, 34}) {
      const ConcreteType a = {dtype, {n, n, 2}};
      RunLinalg("Cholesky", 1, {a});
      RunLinalg("Lu", 4, {a});
      RunLinalg("Qr", 2, {a});
      RunLinalg("HouseholderQr", 2, {a});
    }
  }
  ExpectAllFit(48, 80);
}

TEST_F(EveryTextTest, SolutionsAndDeterminants) {
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kC64, DType::kC128}) {
    for (const int64_t n : {7, 34}) {
      const ConcreteType a = {dtype, {n, n, 2}}, b = {dtype, {n, 3, 2}};
      RunLinalg("Solve", 1, {a, b});
      RunLinalg("TriangularSolve", 1, {a, b}, " {lower = true, left_side = true}");
      RunLinalg("TriangularDeterminant", 3, {a});
      RunLinalg("Equilibrate", 2, {a});
    }
  }
  ExpectAllFit(48, 72);
}

TEST_F(EveryTextTest, Spectra) {
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kC64, DType::kC128}) {
    for (const int64_t n : {7, 34}) {
      const ConcreteType a = {dtype, {n, n, 2}}, wide = {dtype, {3, n}};
      RunLinalg("Eigh", 2, {a});
      RunLinalg("EighValues", 1, {a});
      RunLinalg("Svd", 3, {wide}, " {full = true}");
      RunLinalg("SvdValues", 1, {a});
      RunLinalg("Eig", 2, {a});
    }
  }
  ExpectAllFit(68, 88);
}

TEST_F(EveryTextTest, Transforms) {
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kC64, DType::kC128}) {
    const bool is_complex = dtype == DType::kC64 || dtype == DType::kC128;
    RunOne("tensord.fft.v1.Fft", 1, {{dtype, {6, 10}}}, " {kind = fft, axes = [1], lengths = [12], norm = ortho}");
    RunOne("tensord.fft.v1.Fft", 1, {{dtype, {6, 10}}}, " {kind = ifft, axes = [0, 1], norm = backward}");
    RunOne("tensord.fft.v1.Fft", 1, {{dtype, {6, 10}}},
           is_complex ? " {kind = irfft, axes = [1], lengths = [18], norm = ortho}"
                      : " {kind = rfft, axes = [0], norm = ortho}");
  }
  ExpectAllFit(22, 16);
}

// Returns a text's form: the text without its numbers, which are sizes, strides and names of values.
std::string FormOf(const std::string& text) {
  std::string form;
  for (size_t i = 0; i < text.size(); ++i) {
    if (!absl::ascii_isdigit(text[i])) {
      form += text[i];
    } else if (form.empty() || form.back() != '#') {
      form += '#';
    }
  }
  return form;
}

// One text of each form that core ops have, of a fraction of the forms.
class EveryFormTest : public EveryTextTest, public testing::WithParamInterface<int> {
 public:
  static constexpr int kParts = 4;

 protected:
  // No kernel is launched, so that the host's compiler makes none.
  void SetUp() override {
    EveryTextTest::SetUp();
    hostCudaSet("TOGETHER", "1");
  }
  void TearDown() override {
    hostCudaSet("TOGETHER", "");
    EveryTextTest::TearDown();
  }
};
INSTANTIATE_TEST_SUITE_P(Parts, EveryFormTest, testing::Range(1, EveryFormTest::kParts + 1));

TEST_P(EveryFormTest, OfCoreOps) {
  for (const NodeCase& node_case : CoreOpCases()) {
    for (const bool row_major : {false, true}) {
      const auto program = CompileAlone(GraphOf(node_case), {.backend = backend_.get(), .row_major = row_major});
      EXPECT_TRUE(program.ok() || ReasonOf(program.status()) == "UNSUPPORTED_ON_DEVICE")
          << node_case.name << ": " << program.status();
    }
  }
  std::map<std::string, std::string> by_form;
  for (const std::string& text : texts_) by_form.emplace(FormOf(text), text);
  EXPECT_GT(by_form.size(), 1000u) << "of " << texts_.size() << " texts";
  std::set<std::string> mine;
  int turn = 0;
  for (const auto& [form, text] : by_form) {
    if (++turn % kParts + 1 == GetParam()) mine.insert(text);
  }
  ExpectFitsGenerations(mine, 128);
}

}  // namespace
}  // namespace tensord::cuda
