// What is built once per instruction set, and which one the machine has.
#pragma once

#include "cpu/attention.h"
#include "cpu/depthwise.h"
#include "cpu/matrix.h"
#include "cpu/moments.h"
#include "cpu/pairs.h"
#include "cpu/tail.h"
#include "cpu/tile.h"
#include "cpu/weight_storage.h"

namespace retouch {

/// The inner loops for an instruction set.
struct InstructionSet {
  const char* name;
  /// Numbers in a vector, and vectors in a panel of weights.
  size_t lanes;
  size_t vectors;
  /// By the weights' storage, by rows and by vectors of columns, from one on.
  TileFunction tiles[kWeightStorages][kMaxTileRows][kMaxTileVectors];
  WidenFunction widen[kWeightStorages];
  TailFunction finish;
  DepthwiseFunction weigh_taps;
  MomentFunction move_moments;
  SpreadFunction spread;
  AttentionFunctions attention;

  size_t panel() const { return lanes * vectors; }
};

/// Built where the compiler has AMX; beside AVX-512.
extern const MatrixFunctions kAmx;
extern const InstructionSet kAvx512;
extern const InstructionSet kAvx2;
extern const InstructionSet kPortable;

/// The best instruction set of this machine, or the one that RETOUCH_ORT_EP_CPU names.
const InstructionSet& instruction_set();

/// Matrix instructions, if this machine has them and RETOUCH_ORT_EP_CPU names no lesser set; else null.
const MatrixFunctions* matrix_functions();

/// Instructions for pairs of bfloat16 numbers, if this machine has them and RETOUCH_ORT_EP_CPU names no lesser set; else null.
const PairFunctions* pair_functions();

}  // namespace retouch
