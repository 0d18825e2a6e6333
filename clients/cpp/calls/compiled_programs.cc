#include "clients/cpp/calls/compiled_programs.h"

#include <utility>

namespace tensord::client {

void CompiledPrograms::Add(const std::string& fingerprint, v1::CompileRequest source, std::string route) {
  const size_t bytes = source.ByteSizeLong();
  auto kept = std::make_shared<const v1::CompileRequest>(std::move(source));
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto [found, is_new] = entries_.try_emplace(fingerprint);
  Entry& entry = found->second;
  if (is_new) {
    used_.push_front(fingerprint);
    entry.place = used_.begin();
  } else {
    used_.splice(used_.begin(), used_, entry.place);
    bytes_ -= entry.bytes;
  }
  entry.program = {.source = std::move(kept), .route = std::move(route), .fingerprint = fingerprint};
  entry.bytes = bytes;
  entry.was_unknown = false;
  bytes_ += bytes;
  while (bytes_ > most_bytes_ && used_.size() > 1) {
    const auto oldest = entries_.find(used_.back());
    bytes_ -= oldest->second.bytes;
    entries_.erase(oldest);
    used_.pop_back();
  }
}

std::optional<CompiledProgram> CompiledPrograms::Find(const std::string& fingerprint) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = entries_.find(fingerprint);
  if (found == entries_.end()) return std::nullopt;
  used_.splice(used_.begin(), used_, found->second.place);
  return found->second.program;
}

bool CompiledPrograms::NoteAnswer(const std::string& fingerprint, bool was_known) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = entries_.find(fingerprint);
  if (found == entries_.end()) return false;
  return std::exchange(found->second.was_unknown, !was_known) && !was_known;
}

void CompiledPrograms::Rename(const std::string& fingerprint, const std::string& now) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = entries_.find(fingerprint);
  if (found != entries_.end()) found->second.program.fingerprint = now;
}

}  // namespace tensord::client
