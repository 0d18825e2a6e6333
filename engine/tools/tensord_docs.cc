// Prints the pages of docs/ that are made from the code's own tables: `tensord_docs errors|ops|passes`.

#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "engine/base/refusal.h"
#include "engine/exec/program/program_passes.h"
#include "engine/families/all_families.h"
#include "engine/ir/op_refusals.h"
#include "engine/ops/core_ops.h"
#include "engine/passes/pipeline.h"

namespace tensord {
namespace {

constexpr char kGenerated[] =
    "<!-- Generated from the code by `./dev update-golden`; edit the tables there, not this page. -->\n\n";

void AppendRefusals(absl::string_view title, const std::vector<OpRefusal>& refusals, std::string* page) {
  absl::StrAppend(page, "\n### ", title, "\n\n| reason | when |\n|---|---|\n");
  for (const OpRefusal& refusal : refusals) {
    absl::StrAppend(page, "| `", InfoOf(refusal.reason).id, "` | ", refusal.when, " |\n");
  }
}

// One table for the ops that a functor declares: they differ in their dtypes only, and some take all.
void AppendClassRefusals(absl::string_view title, OpClass op_class, std::string* page) {
  std::vector<OpRefusal> longest;
  for (const OpDef& op : CoreOps()) {
    std::vector<OpRefusal> refusals = RefusalsOf(op);
    if (op.op_class == op_class && refusals.size() > longest.size()) longest = std::move(refusals);
  }
  AppendRefusals(title, longest, page);
}

std::string ErrorsPage() {
  std::string page =
      absl::StrCat("# Errors\n\n", kGenerated,
                   "Every refusal carries a `tensord.v1.ErrorDetail` with one of these reasons. It is packed into the\n"
                   "`google.rpc.Status` of the trailer `grpc-status-details-bin`, and names the node and the op at\n"
                   "fault. Reasons are stable: match on them, never on the text.\n\n"
                   "| reason | code | meaning |\n|---|---|---|\n");
  for (const RefusalInfo& info : AllRefusals()) {
    absl::StrAppend(&page, "| `", info.id, "` | ", absl::StatusCodeToString(info.code), " | ", info.doc, " |\n");
  }
  absl::StrAppend(&page,
                  "\n## What operations refuse\n\n"
                  "A compilation refuses nodes by their attributes and by the sizes that are known. The run refuses\n"
                  "nodes by symbolic sizes, with the same reason and before the first kernel. Reasons that hold for\n"
                  "nodes of any operation, such as their names, stand above.\n");
  AppendRefusals("every operation", CommonRefusals(), &page);
  AppendClassRefusals("unary operations", OpClass::kUnary, &page);
  AppendClassRefusals("binary operations", OpClass::kBinary, &page);
  for (const OpDef* op : FamilyRegistry().all()) {
    const bool has_table = op->op_class == OpClass::kPlain || op->op_class == OpClass::kExtension;
    if (has_table) AppendRefusals(absl::StrCat("`", op->name, "`"), RefusalsOf(*op), &page);
  }
  return page;
}

std::string DTypeNames(DTypeSet set) {
  std::string names;
  for (DType d : kAllDTypes) {
    if (set.Contains(d)) absl::StrAppend(&names, names.empty() ? "" : " ", absl::AsciiStrToUpper(Name(d)));
  }
  return names;
}

absl::string_view KindName(AttrKind kind) {
  switch (kind) {
    case AttrKind::kInt:
      return "integer";
    case AttrKind::kInts:
      return "integers";
    case AttrKind::kDims:
      return "sizes";
    case AttrKind::kDType:
      return "dtype";
    case AttrKind::kEnum:
      return "enumerator";
    case AttrKind::kType:
      return "type";
    case AttrKind::kLiteral:
      return "tensor";
    case AttrKind::kFlag:
      return "flag";
    case AttrKind::kText:
      return "text";
    case AttrKind::kMaybeInt:
      return "integer, or absent";
    case AttrKind::kMaybeReal:
      return "number, or absent";
    case AttrKind::kIntLists:
      return "lists of integers";
  }
  return "";
}

std::string Operands(const OpDef& op) {
  std::string text =
      op.max_operands == kVariadic ? absl::StrCat(op.min_operands, " or more") : absl::StrCat(op.min_operands);
  if (op.has(kShapeSources)) absl::StrAppend(&text, ", then shape sources");
  return text;
}

std::string OpsPage() {
  std::string page = absl::StrCat(
      "# Operations\n\n", kGenerated,
      "Names are those of the text form. On the wire they are fields of `tensord.v1.Node`, enumerators of\n"
      "`UnaryOp` and `BinaryOp`, or full names of messages in `tensord.v1.Extension`. The comments of the\n"
      "`.proto` files define the semantics. The device `cpu` runs every op on every dtype in its row;\n"
      "`GetServerInfo` lists the ops of a running server.\n\n"
      "| op | operands | attributes | dtypes | meaning |\n|---|---|---|---|---|\n");
  for (const OpDef* op : FamilyRegistry().all()) {
    std::string attributes;
    for (const AttrDef& attr : op->attrs) {
      if (attr.engine_only) continue;
      absl::StrAppend(&attributes, attributes.empty() ? "" : "<br>", "`", attr.name, "`: ", KindName(attr.kind));
    }
    absl::StrAppend(&page, "| `", op->name, "` | ", Operands(*op), " | ", attributes, " | ", DTypeNames(op->dtypes),
                    " | ", op->summary, " |\n");
  }
  return page;
}

std::string PassesPage() {
  std::string page = absl::StrCat(
      "# Compiler passes\n\n", kGenerated,
      "Passes in the order in which they run; `engine/passes/pipeline.cc` gives the reasons for the order.\n"
      "`CompileOptions.disabled_passes` leaves one out by its name. The server's settings\n"
      "`compiler.disabled_passes` and `compiler.enabled_passes` leave passes out for every request, and run\n"
      "passes that are off by default. A pass in both lists does not run.\n\n"
      "## Of the graph\n\n| pass | what it does |\n|---|---|\n");
  for (const Pass& pass : GraphPasses()) {
    absl::StrAppend(&page, "| `", pass.name, "` | ", pass.summary, pass.on_by_default ? "" : " Off by default.",
                    " |\n");
  }
  absl::StrAppend(&page, "\n## Of the program that the graph became\n\n| pass | what it does |\n|---|---|\n");
  for (const ProgramPass& pass : ProgramPasses()) {
    absl::StrAppend(&page, "| `", pass.name, "` | ", pass.summary, " |\n");
  }
  return page;
}

}  // namespace
}  // namespace tensord

int main(int argc, char** argv) {
  const absl::string_view page = argc == 2 ? argv[1] : "";
  std::string text;
  if (page == "errors") {
    text = tensord::ErrorsPage();
  } else if (page == "ops") {
    text = tensord::OpsPage();
  } else if (page == "passes") {
    text = tensord::PassesPage();
  } else {
    std::fprintf(stderr, "usage: tensord_docs errors|ops|passes\n");
    return 2;
  }
  std::fwrite(text.data(), 1, text.size(), stdout);
  return 0;
}
