#include "clients/cli/programs/program_drawing.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "clients/cli/files/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tensord::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Returns the texts of Explain in the golden cases.
std::vector<std::string> GoldenTexts() {
  std::vector<std::string> texts;
  for (const auto& entry : std::filesystem::directory_iterator("tests/golden/explain")) {
    const absl::StatusOr<std::string> file = ReadFile(entry.path().string());
    EXPECT_TRUE(file.ok()) << file.status();
    size_t begin = 0;
    while ((begin = file->find("\n----\n", begin)) != std::string::npos) {
      const size_t end = std::min(file->find("\n==== ", begin), file->size());
      texts.push_back(file->substr(begin + 6, end - begin - 6));
      begin = end;
    }
  }
  return texts;
}

// Reads the part of Graphviz's language that drawings use; says what is wrong, or nothing.
class DotReader {
 public:
  explicit DotReader(std::string text) : text_(std::move(text)) {}

  std::string Check() {
    if (!Word("digraph") || !Id() || !Statements()) return Where();
    Spaces();
    if (at_ != text_.size()) return Where();
    for (const std::string& end : ends_) {
      if (declared_.count(end) == 0) return absl::StrCat("an edge ends at what is not there: ", end);
    }
    return "";
  }

 private:
  std::string Where() const { return absl::StrCat("cannot be read from here: ", text_.substr(at_, 60)); }
  void Spaces() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool Word(const std::string& word) {
    Spaces();
    if (text_.compare(at_, word.size(), word) != 0) return false;
    at_ += word.size();
    return true;
  }
  // A quoted one; kept in id_.
  bool Id() {
    Spaces();
    if (at_ >= text_.size() || text_[at_] != '"') return false;
    size_t end = at_ + 1;
    while (end < text_.size() && text_[end] != '"') end += text_[end] == '\\' ? 2 : 1;
    if (end >= text_.size()) return false;
    id_ = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return true;
  }
  bool BareWord() {
    Spaces();
    const size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0)) ++at_;
    return at_ > begin;
  }
  bool Attributes() {
    if (!Word("[")) return false;
    do {
      if (!BareWord() || !Word("=") || !(Id() || BareWord())) return false;
    } while (Word(","));
    return Word("]");
  }
  bool Statements() {
    if (!Word("{")) return false;
    while (!Word("}")) {
      if (Word("subgraph")) {
        if (!Id() || id_.rfind("cluster", 0) != 0 || !Statements()) return false;
        continue;
      }
      if (Id()) {
        const std::string from = id_;
        if (Word("->")) {
          if (!Id()) return false;
          ends_.insert(from);
          ends_.insert(id_);
          if (!Word(";") && !(Attributes() && Word(";"))) return false;
        } else {
          declared_.insert(from);
          if (!Attributes() || !Word(";")) return false;
        }
      } else if (!BareWord() || !(Attributes() || (Word("=") && (Id() || BareWord()))) || !Word(";")) {
        return false;
      }
    }
    return true;
  }

  std::string text_;
  size_t at_ = 0;
  std::string id_;
  std::set<std::string> declared_;
  std::set<std::string> ends_;
};

TEST(ProgramDrawingTest, WhatExplainSaysIsDrawn) {
  size_t drawn = 0;
  for (const std::string& text : GoldenTexts()) {
    const auto program = ParseExplainText(text);
    ASSERT_TRUE(program.ok()) << program.status() << "\n" << text;
    size_t segments = 0;
    for (const auto& session : program->sessions) segments += session.segments.size();
    EXPECT_THAT(text, HasSubstr(absl::StrCat(" ", segments, segments == 1 ? " segment in " : " segments in ")));
    for (const auto& session : program->sessions) {
      for (const auto& segment : session.segments) {
        EXPECT_FALSE(segment.results.empty()) << text;
        EXPECT_FALSE(segment.nodes.empty()) << text;
        for (int64_t operand : segment.operands) EXPECT_EQ(program->values.count(operand), 1u) << operand << text;
      }
    }
    const std::string dot = DrawProgram(*program);
    EXPECT_EQ(DotReader(dot).Check(), "") << dot;
    ++drawn;
  }
  EXPECT_GT(drawn, 5u);
}

ExplainedProgram Fused() {
  ExplainedProgram program{.name = "a \"b\" \\ {c}", .device = "cpu:0"};
  program.values[0] = {.kind = ExplainedProgram::ValueKind::kInput, .name = "x|\"y\"<z>\\", .type = "f32[n]"};
  program.values[1] = {.kind = ExplainedProgram::ValueKind::kNode, .name = "e", .type = "f32[n]"};
  program.values[2] = {.kind = ExplainedProgram::ValueKind::kNode, .name = "f", .type = "f32[n,1]", .view_of = 1};
  program.outputs = {{.name = "out", .value = 2}};
  program.sessions.push_back({.title = "session 0",
                              .segments = {{.kernel = "fused: add multiply",
                                            .results = {1},
                                            .operands = {0, 0},
                                            .nodes = {"a|b", "{c} \"d\""},
                                            .moves = "8 bytes: 4 read, 4 written"}}});
  return program;
}

TEST(ProgramDrawingTest, AFusedSegmentIsARecordOfItsOps) {
  const std::string dot = DrawProgram(Fused());
  EXPECT_EQ(DotReader(dot).Check(), "") << dot;
  EXPECT_THAT(dot,
              HasSubstr(R"("segment 0" [shape=record, label="{fused|{add|multiply}|a\|b,\ \{c\}\ \"d\"|8\ bytes}"];)"));
  EXPECT_THAT(dot, HasSubstr(R"("input %0" [shape=ellipse, label="x|\"y\"<z>\\"];)"));
  EXPECT_THAT(dot, HasSubstr(R"("input %0" -> "segment 0" [label="f32[n]"];)"));
  EXPECT_THAT(dot, HasSubstr(R"("segment 0" -> "output 0" [label="f32[n,1]"];)"));
}

TEST(ProgramDrawingTest, WhatNobodyComputesHasNoEdge) {
  ExplainedProgram program = Fused();
  program.values[2].view_of = 7;
  program.sessions[0].segments[0].operands = {5, 2};
  program.decisions = {{.stage = 3, .value = 9, .symbol = "?s"}};
  const std::string dot = DrawProgram(program);
  EXPECT_EQ(DotReader(dot).Check(), "") << dot;
  EXPECT_THAT(dot, Not(HasSubstr("->")));
}

TEST(ProgramDrawingTest, GraphvizTakesIt) {
  if (std::system("dot -V >/dev/null 2>&1") != 0) GTEST_SKIP() << "graphviz is not installed";
  std::vector<std::string> drawings = {DrawProgram(Fused())};
  for (const std::string& text : GoldenTexts()) {
    const auto program = ParseExplainText(text);
    ASSERT_TRUE(program.ok()) << program.status() << "\n" << text;
    drawings.push_back(DrawProgram(*program));
  }
  const std::string path = absl::StrCat(::testing::TempDir(), "/drawing-", getpid(), ".dot");
  for (const std::string& drawing : drawings) {
    ASSERT_TRUE(WriteFile(path, drawing).ok());
    EXPECT_EQ(std::system(absl::StrCat("dot -Tsvg -o /dev/null ", path).c_str()), 0) << drawing;
  }
  std::remove(path.c_str());
}

}  // namespace
}  // namespace tensord::cli
