#include "clients/cpp/lazy/expression.h"

#include <atomic>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "clients/cpp/lazy/recorded_call.h"

namespace tensord::client {
namespace {

constexpr size_t kMaxFileBytes = 64;

struct PendingVisit {
  const Expression* expression;
  size_t next_operand;
};

}  // namespace

Expression::~Expression() {
  std::vector<std::shared_ptr<const Expression>> pending = std::move(operands);
  while (!pending.empty()) {
    std::shared_ptr<const Expression> last = std::move(pending.back());
    pending.pop_back();
    if (last.use_count() != 1) continue;
    // Nobody else can see it any more; the fence orders this after the last accesses of other threads.
    std::atomic_thread_fence(std::memory_order_acquire);
    auto& orphans = const_cast<Expression&>(*last).operands;
    for (auto& orphan : orphans) pending.push_back(std::move(orphan));
    orphans.clear();
  }
}

std::string NodeNameOf(const Expression& expression, int number) {
  std::string file(FileOf(expression.place).substr(0, kMaxFileBytes));
  for (char& c : file) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '-') c = '_';
  }
  return absl::StrCat(expression.call.empty() ? "Op" : expression.call, "_", number, "@", file, "#L",
                      expression.place.line());
}

void VisitOperandsFirst(const Expression& root, absl::FunctionRef<bool(const Expression&)> is_done,
                        absl::FunctionRef<void(const Expression&)> visit) {
  std::vector<PendingVisit> stack;
  if (!is_done(root)) stack.push_back({&root, 0});
  while (!stack.empty()) {
    PendingVisit& top = stack.back();
    if (top.next_operand < top.expression->operands.size()) {
      const Expression* operand = top.expression->operands[top.next_operand++].get();
      if (!is_done(*operand)) stack.push_back({operand, 0});
      continue;
    }
    visit(*top.expression);
    stack.pop_back();
  }
}

}  // namespace tensord::client
