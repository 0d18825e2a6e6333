#ifndef TENSORD_BACKENDS_CPU_LINALG_LANES_LOOP_TABLES_H_
#define TENSORD_BACKENDS_CPU_LINALG_LANES_LOOP_TABLES_H_

#include "backends/cpu/linalg/lanes/loops.h"

// The parts of GetSmallMatrixLoops, a source each.

namespace tensord::cpu {

SmallMatrixLoops GetTriangularLoops(SmallMatrixOp op, DType dtype);  // kCholesky, kLu, kSolve, kTriangularSolve
SmallMatrixLoops GetQrLoops(DType dtype);
SmallMatrixLoops GetSvdLoops(DType dtype);
SmallMatrixLoops GetEighLoops(DType dtype);

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_LINALG_LANES_LOOP_TABLES_H_
