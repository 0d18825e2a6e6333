#include "server/rpc/programs/capabilities.h"

#include <algorithm>
#include <vector>

#include "engine/ops/core_ops.h"
#include "proto/codec/type_codec.h"

namespace tensord::server {
namespace {

// The dtypes with which an op may be asked for, the first operand's (or the result's) being `dtype`.
struct Signature {
  std::vector<DType> operands;
  DType result;
};

std::vector<DType> ResultsOf(const OpDef& op, DType dtype) {
  if (Is(op, CoreOp::kCompare) || Is(op, CoreOp::kIsFinite)) return {DType::kBool};
  if (Is(op, CoreOp::kAbs) || Is(op, CoreOp::kReal) || Is(op, CoreOp::kImag)) return {RealPartOf(dtype)};
  if (Is(op, CoreOp::kComplex)) {
    const auto result = ComplexOf(dtype);
    return result.has_value() ? std::vector<DType>{*result} : std::vector<DType>{};
  }
  if (Is(op, CoreOp::kConvert)) return {kAllDTypes.begin(), kAllDTypes.end()};
  return {dtype};
}

std::vector<Signature> SignaturesOf(const OpDef& op, DType dtype) {
  std::vector<DType> operands(static_cast<size_t>(op.min_operands), dtype);
  if (Is(op, CoreOp::kSelect)) operands[0] = DType::kBool;
  std::vector<Signature> signatures;
  for (const DType result : ResultsOf(op, dtype)) signatures.push_back({operands, result});
  return signatures;
}

bool Runs(const OpDef& op, DType dtype, const Backend& backend) {
  if (op.expand.has()) return true;  // what it is expanded into is asked for when it is compiled
  for (const Signature& signature : SignaturesOf(op, dtype)) {
    if (backend.Supports(op, signature.operands, signature.result).ok()) return true;
  }
  return false;
}

bool RunsAtAll(const OpDef& op, const Backend& backend) {
  return std::any_of(kAllDTypes.begin(), kAllDTypes.end(),
                     [&](DType dtype) { return op.dtypes.Contains(dtype) && Runs(op, dtype, backend); });
}

}  // namespace

void AddFamilies(const Backend& backend, const OpRegistry& registry, v1::ServerInfo* info) {
  for (const OpDef* op : registry.all()) {
    if (op->op_class != OpClass::kExtension || !RunsAtAll(*op, backend)) continue;
    const auto& listed = info->families();
    if (std::find(listed.begin(), listed.end(), op->name) == listed.end()) info->add_families(std::string(op->name));
  }
}

void AddCapabilities(const std::string& device, const Backend& backend, const OpRegistry& registry,
                     v1::ServerInfo* info) {
  for (const OpDef* op : registry.all()) {
    v1::Capability capability;
    for (const DType dtype : kAllDTypes) {
      if (op->dtypes.Contains(dtype) && Runs(*op, dtype, backend)) capability.add_dtypes(codec::EncodeDType(dtype));
    }
    if (capability.dtypes().empty()) continue;
    capability.set_device(device);
    capability.set_op(std::string(op->name));
    *info->add_capabilities() = std::move(capability);
  }
}

}  // namespace tensord::server
