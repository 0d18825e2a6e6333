#include "server/connections/frame_meter.h"

#include <algorithm>
#include <cstring>

namespace tensord::server {
namespace {

// RFC 9113.
constexpr int64_t kPrefaceBytes = 24;
enum Type : uint8_t { kData = 0, kHeaders = 1, kReset = 3, kSettings = 4, kPing = 6, kContinuation = 9 };
constexpr uint8_t kAcknowledges = 1;

// Its answer waits for the client, and where there are too many gRPC keeps some kilobytes of each until it has ended
// the connection. Clients that measure their connections ping as often as they call.
constexpr double kCancelsOfAPing = 1.0 / 8;

// Clients fill frames. The smallest limit that a peer may set is 16 KiB; some frames are a little less full.
constexpr int64_t kFrameBytes = int64_t{16} << 10;
constexpr int64_t kPartialFrames = 8;

// Bytes that count as a further frame where only the number of frames is bounded.
constexpr double kBytesOfOneFrame = 512;

// Data of fewer bytes than this costs gRPC more by the frame than by the byte. Clients send tiny messages like that.
constexpr int64_t kTinyBytes = 128;
constexpr double kFramesOfTinyData = 0.5;

constexpr double kLooksToFill = 8;  // at least, from nothing to all at once

}  // namespace

FrameMeter::FrameMeter(const FrameLimits& limits, Clock::time_point now)
    : limits_(limits),
      skip_bytes_(kPrefaceBytes),
      cancels_(static_cast<double>(limits.cancels_at_once)),
      refilled_(now),
      frames_(static_cast<double>(limits.frames_at_once())),
      frames_refilled_(now) {}

void FrameMeter::Sent(int64_t bytes) {
  frames_ = std::min(static_cast<double>(limits_.frames_at_once()),
                     frames_ + static_cast<double>(bytes) / FrameLimits::kBytesOfAFrame);
}

ConnectionExcess FrameMeter::Read(absl::string_view bytes, Clock::time_point now, const Reads& reads) {
  while (excess_ == ConnectionExcess::kNone && !bytes.empty()) {
    const size_t skipped = static_cast<size_t>(std::min<int64_t>(skip_bytes_, static_cast<int64_t>(bytes.size())));
    bytes.remove_prefix(skipped);
    skip_bytes_ -= static_cast<int64_t>(skipped);
    const size_t taken = std::min(kHeadBytes - head_bytes_, bytes.size());
    if (taken == 0) break;
    std::memcpy(head_.data() + head_bytes_, bytes.data(), taken);
    bytes.remove_prefix(taken);
    head_bytes_ += taken;
    if (head_bytes_ < kHeadBytes) break;
    head_bytes_ = 0;
    excess_ = ReadHead(now, reads);
  }
  return excess_;
}

ConnectionExcess FrameMeter::ReadHead(Clock::time_point now, const Reads& reads) {
  const int64_t size = head_[0] << 16 | head_[1] << 8 | head_[2];
  const uint8_t type = head_[3], flags = head_[4];
  const uint32_t stream = static_cast<uint32_t>((head_[5] & 0x7F) << 24 | head_[6] << 16 | head_[7] << 8 | head_[8]);
  const bool acknowledges = (flags & kAcknowledges) != 0;
  const double frames = 1 + static_cast<double>(size) / kBytesOfOneFrame;
  skip_bytes_ = size;
  AddTime(now, reads);
  switch (type) {
    case kData:
      return size < kTinyBytes ? TakeFrames(size == 0 ? 1 : kFramesOfTinyData) : ConnectionExcess::kNone;
    case kHeaders:
      // Of a call that is over, or has begun: no client of gRPC has trailers.
      if (stream <= last_stream_ && !TakeCancel()) return ConnectionExcess::kCancels;
      last_stream_ = std::max(last_stream_, stream);
      block_bytes_ = block_frames_ = 0;
      if (!is_acknowledged_) early_calls_.insert(stream);
      return AddHeaders(size);
    case kContinuation:
      return AddHeaders(size);
    case kReset:
      if (!TakeCancel()) return ConnectionExcess::kCancels;
      early_calls_.erase(stream);
      return ConnectionExcess::kNone;
    case kSettings:
      if (acknowledges && has_sent_) Acknowledged();
      if (acknowledges) return TakeFrames(frames);
      return TakeCancel() ? ConnectionExcess::kNone : ConnectionExcess::kCancels;
    case kPing:
      if (acknowledges) return TakeFrames(frames);
      return TakeCancel(kCancelsOfAPing) ? ConnectionExcess::kNone : ConnectionExcess::kCancels;
    default:
      return TakeFrames(frames);
  }
}

ConnectionExcess FrameMeter::AddHeaders(int64_t size) {
  block_bytes_ += size;
  ++block_frames_;
  if (block_bytes_ > limits_.header_bytes) return ConnectionExcess::kHeaders;
  // Each is looked at for itself, and empty ones cost as much.
  if (block_frames_ > limits_.header_bytes / kFrameBytes + kPartialFrames) return ConnectionExcess::kHeaders;
  return is_acknowledged_ || FitsEarly(size) ? ConnectionExcess::kNone : ConnectionExcess::kSettings;
}

// gRPC holds nobody to settings that he has not acknowledged: neither to the number of calls, nor to the size of their
// headers with references, of one byte each, written out.
bool FrameMeter::FitsEarly(int64_t size) {
  early_bytes_ += size;
  return early_bytes_ <= limits_.early_header_bytes && static_cast<int64_t>(early_calls_.size()) <= limits_.early_calls;
}

void FrameMeter::Acknowledged() {
  is_acknowledged_ = true;
  early_calls_ = {};
}

void FrameMeter::AddTime(Clock::time_point now, const Reads& reads) {
  // Window updates of a client whose network is slow come while its socket never has room, so these do not depend on
  // it.
  const double frames_earned =
      std::chrono::duration<double>(now - frames_refilled_).count() * static_cast<double>(limits_.frames_per_second());
  frames_ = std::min(static_cast<double>(limits_.frames_at_once()), frames_ + frames_earned);
  frames_refilled_ = now;
  const double most = static_cast<double>(limits_.cancels_at_once);
  const double earned =
      std::chrono::duration<double>(now - refilled_).count() * static_cast<double>(limits_.cancels_per_second);
  // To ask is a call of the system.
  if (cancels_ >= most || earned < most / kLooksToFill || !reads()) return;
  cancels_ = std::min(most, cancels_ + earned);
  refilled_ = now;
}

bool FrameMeter::TakeCancel(double cost) {
  if (cancels_ < cost) return false;
  cancels_ -= cost;
  return true;
}

ConnectionExcess FrameMeter::TakeFrames(double cost) {
  frames_ -= cost;
  return frames_ < 0 ? ConnectionExcess::kFrames : ConnectionExcess::kNone;
}

}  // namespace tensord::server
