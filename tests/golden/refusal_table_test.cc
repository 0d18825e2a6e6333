// The golden refusals and the tables of the ops say the same: every refusal of an op's rule is a row of its table, and
// every row is shown by a case.

#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "engine/families/all_families.h"
#include "engine/ir/op_refusals.h"
#include "engine/ir/verifier.h"
#include "engine/ops/core_ops.h"
#include "gtest/gtest.h"
#include "tests/golden/graph_cases.h"
#include "tests/testlib/golden.h"

namespace tensord {
namespace {

// Returns the declarer of a row: an op, or the template of all unary or all binary ones.
std::string Declarer(const OpDef& op) {
  switch (op.op_class) {
    case OpClass::kUnary:
      return "every unary op";
    case OpClass::kBinary:
      return "every binary op";
    case OpClass::kPlain:
    case OpClass::kExtension:
      break;
  }
  return std::string(op.name);
}

using Row = std::tuple<std::string, std::string, std::string>;  // declarer, reason, when

Row RowOf(absl::string_view declarer, const OpRefusal& refusal) {
  return {std::string(declarer), std::string(InfoOf(refusal.reason).id), refusal.when};
}

constexpr char kEveryOp[] = "every op";

std::vector<Row> RowsOf(const OpDef& op) {
  std::vector<Row> rows;
  for (const OpRefusal& refusal : RefusalsOf(op)) rows.push_back(RowOf(Declarer(op), refusal));
  for (const OpRefusal& refusal : CommonRefusals()) rows.push_back(RowOf(kEveryOp, refusal));
  return rows;
}

// "<op>: <when>", or with what is special about the case: "<op>: <when> (the last axis)".
bool IsTitleOf(absl::string_view title, absl::string_view op, absl::string_view when) {
  const std::string full = absl::StrCat(op, ": ", when);
  return title == full || (absl::StartsWith(title, absl::StrCat(full, " (")) && absl::EndsWith(title, ")"));
}

TEST(RefusalTables, NameEachRowOnce) {
  for (const OpDef* op : FamilyRegistry().all()) {
    std::set<Row> rows;
    for (const Row& row : RowsOf(*op)) {
      EXPECT_TRUE(rows.insert(row).second) << op->name << ": " << std::get<1>(row) << ": " << std::get<2>(row);
    }
  }
}

TEST(RefusalTables, AreWhatTheGoldenCasesShow) {
  std::set<Row> shown;
  for (const auto& path : GoldenFilesIn("tests/golden/refusals")) {
    const absl::StatusOr<GoldenFile> file = ReadGoldenFile(path);
    ASSERT_TRUE(file.ok()) << file.status();
    for (const GoldenCase& c : file->cases) {
      absl::StatusOr<Graph> graph = ReadGraphCase(c.input);
      const absl::Status status = graph.ok() ? InferTypes(&*graph).status() : graph.status();
      const std::string where = absl::StrCat(path.string(), ":", c.line, ": ", c.name);
      ASSERT_FALSE(status.ok()) << where << " is not refused";
      const RefusalDetail detail = DetailOf(status).value_or(RefusalDetail{});
      const OpDef* const op = FamilyRegistry().Find(detail.op);
      if (op == nullptr) continue;  // of an input, an output or the whole graph
      // A refusal of a node as such, whatever its op: its name, its operands.
      if (!graph.ok() && !absl::StartsWith(c.name, absl::StrCat(op->name, ": "))) continue;
      bool found = false;
      std::string titles;
      for (const Row& row : RowsOf(*op)) {
        const auto& [declarer, reason, when] = row;
        if (reason != detail.reason) continue;
        absl::StrAppend(&titles, "\n  ", op->name, ": ", when);
        if (!IsTitleOf(c.name, op->name, when)) continue;
        found = true;
        shown.insert(row);
      }
      EXPECT_TRUE(found) << where << "\nis refused with " << detail.reason
                         << "; its title must name a row of that reason: " << titles;
    }
  }
  std::set<Row> rows;
  for (const OpDef* op : FamilyRegistry().all()) {
    for (Row& row : RowsOf(*op)) rows.insert(std::move(row));
  }
  for (const OpRefusal& refusal : CommonRefusals()) {
    // Too many parts: takes a graph that is too large for a golden file: tests/unit/engine/ir/inference_limits_test.cc.
    if (absl::EndsWith(refusal.when, "parts")) rows.erase(RowOf(kEveryOp, refusal));
  }
  for (const Row& row : rows) {
    const auto& [declarer, reason, when] = row;
    EXPECT_TRUE(shown.contains(row)) << "no case in tests/golden/refusals shows the row of " << declarer << ": "
                                     << reason << ", \"" << when << "\"";
  }
}

}  // namespace
}  // namespace tensord
