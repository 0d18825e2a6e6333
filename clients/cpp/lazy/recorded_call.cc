#include "clients/cpp/lazy/recorded_call.h"

namespace tensord::client {
namespace {

thread_local const RecordedCall* outermost = nullptr;

}  // namespace

RecordedCall::RecordedCall(absl::string_view name, const SourceLocation& place)
    : name_(name), place_(place), is_outermost_(outermost == nullptr) {
  if (is_outermost_) outermost = this;
}

RecordedCall::~RecordedCall() {
  if (is_outermost_) outermost = nullptr;
}

const RecordedCall* RecordedCall::Outermost() { return outermost; }

absl::string_view FileOf(const SourceLocation& place) {
  const absl::string_view path = place.file_name();
  const size_t folder = path.rfind('/');
  return folder == absl::string_view::npos ? path : path.substr(folder + 1);
}

}  // namespace tensord::client
