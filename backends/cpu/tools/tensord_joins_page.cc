// Prints docs/extend/joins.md, which is made from the table of the ways to join segments.

#include <cstdio>
#include <string>

#include "absl/strings/str_cat.h"
#include "backends/cpu/joins/ways.h"

namespace tensord::cpu {
namespace {

constexpr char kHead[] = R"(# Joins of the CPU backend

<!-- Generated from the code by `./dev update-golden`; edit the tables there, not this page. -->

A program becomes segments: kernels, one after the other. Neighbours that pass large values on, or
read the same ones, run as one. The backend goes through the segments of a session once and joins
what comes next in the first of these ways that fits; `backends/cpu/joins/ways.cc` gives the reasons
for the order. `Explain` tells how many segments of a program each way took, and which.

The setting `cpu.disabled_joins` leaves ways out, to compare them and to find faults; the last one
is always tried. `cpu.chain_block_bytes` and `cpu.epilogues` say when a way pays.

| way | what it does |
|---|---|
)";

std::string Page() {
  std::string page = kHead;
  for (const JoinWay& way : JoinWays()) absl::StrAppend(&page, "| `", way.name, "` | ", way.summary, " |\n");
  return page;
}

}  // namespace
}  // namespace tensord::cpu

int main() {
  std::fputs(tensord::cpu::Page().c_str(), stdout);
  return 0;
}
