#include "tests/testlib/property/growth_rules.h"

namespace tensord::property {

GrowthRule FindGrowthRule(CoreOp op) {
  switch (Def(op).op_class) {
    case OpClass::kUnary:
      return &GrowUnary;
    case OpClass::kBinary:
      return &GrowBinary;
    case OpClass::kPlain:
    case OpClass::kExtension:
      break;
  }
  switch (op) {
    case CoreOp::kConstant:
      return &GrowConstant;
    case CoreOp::kIota:
      return &GrowIota;
    case CoreOp::kCompare:
      return &GrowCompare;
    case CoreOp::kSelect:
      return &GrowSelect;
    case CoreOp::kClamp:
      return &GrowClamp;
    case CoreOp::kConvert:
      return &GrowConvert;
    case CoreOp::kTranspose:
      return &GrowTranspose;
    case CoreOp::kReshape:
      return &GrowReshape;
    case CoreOp::kBroadcastInDim:
      return &GrowBroadcastInDim;
    case CoreOp::kReduce:
      return &GrowReduce;
    case CoreOp::kDotGeneral:
      return &GrowDotGeneral;
    case CoreOp::kSlice:
      return &GrowSlice;
    case CoreOp::kPad:
      return &GrowPad;
    case CoreOp::kConcatenate:
      return &GrowConcatenate;
    case CoreOp::kReverse:
      return &GrowReverse;
    case CoreOp::kExtractDiag:
      return &GrowExtractDiag;
    case CoreOp::kEmbedDiag:
      return &GrowEmbedDiag;
    case CoreOp::kTril:
    case CoreOp::kTriu:
      return &GrowTriangle;
    case CoreOp::kGather:
      return &GrowGather;
    case CoreOp::kGatherDynamicSliceSizes:
      return &GrowGatherDynamicSliceSizes;
    case CoreOp::kScatter:
      return &GrowScatter;
    case CoreOp::kDynamicSlice:
      return &GrowDynamicSlice;
    case CoreOp::kDynamicUpdateSlice:
      return &GrowDynamicUpdateSlice;
    case CoreOp::kDynamicTruncate:
      return &GrowDynamicTruncate;
    case CoreOp::kShapeOf:
      return &GrowShapeOf;
    case CoreOp::kPadToMatch:
      return &GrowPadToMatch;
    case CoreOp::kOptimizationBarrier:
      return &GrowOptimizationBarrier;
    default:
      return nullptr;
  }
}

}  // namespace tensord::property
