#ifndef TENSORD_ENGINE_EXEC_BACKEND_BACKEND_H_
#define TENSORD_ENGINE_EXEC_BACKEND_BACKEND_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/exec/backend/bound_instruction.h"
#include "engine/exec/backend/buffer.h"
#include "engine/exec/backend/memory_stats.h"
#include "engine/exec/backend/segment_chain.h"
#include "engine/exec/program/exec_program.h"

namespace tensord {

// A segment: an instruction to run, with every size known, and the slots that it reads and writes. One kernel.
struct SegmentInstruction {
  BoundInstruction bound;
  absl::Span<const Slot> operands;
  absl::Span<const Slot> results;
  // Slots that have the memory, by operand: another one than the operand if that is a view.
  std::vector<Slot> memory;
  // The node that it computes, and the op that the client gave that node, for refusals.
  absl::string_view node;
  const OpDef* written = nullptr;
  // The number of instructions that read each result, whether they are run or views; an output counts as one.
  std::vector<int32_t> num_readers;
};

// A backend's preparation of the segments of a session: kernels, compiled code. Immutable, so thread-safe; sessions on
// several threads may run it at once.
class PreparedSession {
 public:
  virtual ~PreparedSession() = default;
  // Device memory that the segment at this position needs besides the slots', while it runs and no longer, or its chain
  // does. The same at every call.
  virtual int64_t scratch_bytes(size_t position) const = 0;
  // Returns the device memory that a session takes from Run to Finish for all its segments alike: working memory in the
  // processor's caches, a few MiB whatever the sizes are. It comes on top of planned memory, and is counted with it.
  virtual int64_t workspace_bytes() const { return 0; }
  // Segments that run together, by position; no two chains overlap. The same at every call.
  virtual absl::Span<const SegmentChain> chains() const { return {}; }
  // Counts the segments of each way in which the backend runs them, together or one by itself, for Explain: all ways,
  // in the order in which it tries them. Empty where it has one only.
  virtual std::vector<JoinCount> joins() const { return {}; }
  // Names the way in which the segment at this position is computed, in a few words for Explain: "tiles of 512, two
  // passes". Empty if there is only one.
  virtual std::string DescribeKernel(size_t position) const = 0;
  // Says in a few words how the device is given all segments at once, for Explain: "replayed as one graph of 12 nodes".
  // Empty where it is given one after the other. It may change from run to run.
  virtual std::string DescribeReplay() const { return ""; }
};

// The time of a segment's run, by the host's clock.
struct SegmentTime {
  std::chrono::steady_clock::time_point start;
  std::chrono::steady_clock::time_point end;
};

// A check that is asked while a run goes on; its refusal ends the run.
using RunCheck = std::function<absl::Status()>;

// The scope of one run on one device: a backend sets up here once the state that all instructions need. Confined to the
// thread that opened it. Work may still be going on when Run returns; Finish waits for it.
class BackendSession {
 public:
  virtual ~BackendSession() = default;
  // Sets the check before Run. A backend asks between kernels and inside long ones (engine/base/stop_signal.h), on
  // whatever threads they run, about every millisecond.
  void set_check(RunCheck check) { check_ = std::move(check); }
  // `slots` holds an address for every slot that the segments touch. `scratch` is empty if no segment asked for any,
  // or has an entry a segment: memory of that segment alone, aligned to 64 bytes; null if it asked for none. Before
  // and after the segment it may be anyone's. `times` is empty, and then no clock is read, or has an entry a segment,
  // to be written by the time that Finish returns: a device that works on its own records events and converts them
  // there. Segments follow each other and no times overlap; a chain's time is split as its segments took it.
  virtual absl::Status Run(const PreparedSession& prepared, absl::Span<void* const> slots,
                           absl::Span<void* const> scratch, absl::Span<SegmentTime> times) = 0;
  virtual absl::Status Finish() = 0;

 protected:
  const RunCheck& check() const { return check_; }  // empty where nobody set one
  absl::Status CheckWanted() const { return check_ ? check_() : absl::OkStatus(); }

 private:
  RunCheck check_;
};

// A library of the vendor's that drives a device.
struct DeviceLibrary {
  std::string name;     // libnvrtc.so.13
  std::string version;  // 13.0
  std::string path;     // of the file
};

struct DeviceDescription {
  std::string model;  // as the vendor calls it
  int64_t memory_bytes = 0;
  // A session computes on the thread that calls it, and never waits for anything else.
  bool computes_on_caller = false;
  // True if its buffers are memory of the host: a session reads and writes the very bytes that others have there.
  bool computes_in_host_memory = false;
  // Prepare takes so long, since it compiles, that no thread that runs programs is to do it: a program whose sizes the
  // arguments decide is compiled anew for each set of sizes, as those are whose ops are planned by size.
  bool prepares_slowly = false;
  std::vector<DeviceLibrary> libraries;  // that are open now, in the order in which they were opened
};

// The driver of one device: it tells which ops it can run, prepares sessions, and owns the device's memory.
// Thread-safe. Never moves anything to another device and never falls back: it refuses a missing op with
// UNSUPPORTED_ON_DEVICE.
class Backend {
 public:
  virtual ~Backend() = default;

  virtual absl::string_view kind() const = 0;  // "cpu"
  virtual DeviceDescription Describe() const = 0;
  virtual MemoryStats Memory() const = 0;
  // Checks that the op runs here on operands of these dtypes (one for each operand that it computes with) giving that
  // dtype.
  virtual absl::Status Supports(const OpDef& op, absl::Span<const DType> operands, DType result) const = 0;

  // Tells whether nodes that passes make of several ops run here: fused instructions, of every micro program, and
  // affine_dot.
  virtual bool runs_fused() const { return false; }

  // Prepares instructions for one session that runs them in this order. Their programs and tables, to which they point,
  // outlive it.
  virtual absl::StatusOr<std::unique_ptr<PreparedSession>> Prepare(
      absl::Span<const SegmentInstruction> segments) const = 0;
  virtual absl::StatusOr<std::unique_ptr<BackendSession>> OpenSession() = 0;

  // Aligned to 64 bytes, contents undefined; OUT_OF_MEMORY if there is none. Zero bytes give a valid address.
  virtual absl::StatusOr<std::shared_ptr<Buffer>> Allocate(int64_t size_bytes) = 0;
  // Returns a buffer with these bytes. A device that reads host memory takes it as it is and keeps `owner` until the
  // buffer goes; the bytes must not change meanwhile. Others copy.
  virtual absl::StatusOr<BufferPtr> Import(const void* bytes, int64_t size_bytes,
                                           std::shared_ptr<const void> owner) = 0;
  // Returns the buffer's bytes as host memory, kept alive by the returned pointer: the buffer itself where the host may
  // read it, else a copy.
  virtual absl::StatusOr<std::shared_ptr<const void>> Export(BufferPtr buffer) = 0;
  // Exports several buffers, each into the entry of `bytes` at its place; null ones are left out. A device that copies
  // waits once for all of them.
  virtual absl::Status ExportAll(absl::Span<const BufferPtr> buffers, absl::Span<std::shared_ptr<const void>> bytes) {
    for (size_t i = 0; i < buffers.size(); ++i) {
      if (buffers[i] == nullptr) continue;
      absl::StatusOr<std::shared_ptr<const void>> exported = Export(buffers[i]);
      if (!exported.ok()) return exported.status();
      bytes[i] = *std::move(exported);
    }
    return absl::OkStatus();
  }

  // Writes bytes of the host into a part of a buffer of this device, which holds them when this returns. Nobody else
  // reads or writes that part meanwhile, and it lies inside the buffer.
  virtual absl::Status Write(Buffer* buffer, int64_t offset_bytes, absl::string_view bytes) = 0;
  // Returns memory of its own with the bytes of a buffer of this device; OUT_OF_MEMORY if there is none.
  virtual absl::StatusOr<std::shared_ptr<Buffer>> Copy(const Buffer& buffer) = 0;
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_EXEC_BACKEND_BACKEND_H_
