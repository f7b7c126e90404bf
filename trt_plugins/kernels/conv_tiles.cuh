// What a block of EditConv multiplies: tiles of the columns, which are gathered while they are read, and of the weight.
#pragma once

#include "copies.cuh"
#include "row_table.cuh"
#include "tail.cuh"

namespace retouch {

constexpr int kConvColumns = 64;
constexpr int kConvDepth = 32;
constexpr unsigned kConvThreads = 128;
/// So many numbers a thread moves at a time.
constexpr int kConvPart = 8;

template <typename T>
struct ConvOperands {
  T* out;
  RowTable table;
  const int64_t* neighbours;  // null where every row is its own only neighbour
  const T* weight;
  bool by_depth;  // whether the weight is [T * C, C_out]
  const T* bias;
  Tail<T> tail;
  int64_t rows, taps, channels, columns;
  /// Whether eight numbers of a row, and of the weight, can be read at once.
  bool aligned;
  float* shares;       // [blocks along depth, rows, columns] of sums, or null where one block has the whole depth
  int64_t each_depth;  // how much of the depth a block has

  __device__ __forceinline__ const char* neighbour(int64_t row, int64_t tap) const {
    return table.at(neighbours == nullptr ? row : neighbours[row * taps + tap], channels * static_cast<int64_t>(sizeof(T)));
  }
};

/// Tiles of a step in shared memory. Pads keep the rows that a warp reads at once out of each other's banks.
template <typename T, int Rows>
struct ConvTiles {
  static constexpr int kPitch = kConvDepth + 16 / static_cast<int>(sizeof(T));
  static constexpr int kTurnedPitch = kConvColumns + 8;
  static_assert(kConvDepth * kTurnedPitch <= kConvColumns * kPitch || sizeof(T) == 4, "the weight fits either way");

  alignas(16) T left[Rows][kPitch];
  /// [columns][kPitch], or in half precision [depth][kTurnedPitch] where the weight is stored by depth.
  alignas(16) T right[kConvColumns * kPitch];
};

/// Starts to bring eight numbers, zeros if not ``inside``.
template <typename T>
__device__ __forceinline__ void take_part(T* target, const T* source, bool inside) {
  constexpr int kEach = 16 / static_cast<int>(sizeof(T));
#pragma unroll
  for (int i = 0; i < kConvPart; i += kEach) start_copy(target + i, source + i, inside);
}

/// A thread's way along a row of columns: where the next numbers of its part are. It divides once, and looks a neighbour up
/// once per tap.
template <typename T>
struct ConvWalk {
  const T* source;  // the neighbour's row, null behind the last
  int64_t row;
  int tap, channel;

  __device__ __forceinline__ void begin(const ConvOperands<T>& op, int64_t of_row, int64_t depth) {
    row = of_row;
    tap = static_cast<int>(depth / op.channels);
    channel = static_cast<int>(depth - tap * op.channels);
    look(op);
  }
  __device__ __forceinline__ void advance(const ConvOperands<T>& op) {
    channel += kConvDepth;
    if (channel < op.channels) return;
    for (; channel >= op.channels; ++tap) channel -= static_cast<int>(op.channels);
    look(op);
  }
  __device__ __forceinline__ void look(const ConvOperands<T>& op) {
    source = row < op.rows && tap < op.taps ? reinterpret_cast<const T*>(op.neighbour(row, tap)) : nullptr;
  }
};

/// Brings the parts of a thread from step to step.
template <typename T, int Rows>
struct ConvLoader {
  static constexpr int kParts = Rows * kConvDepth / kConvPart / static_cast<int>(kConvThreads);
  static constexpr int kWeightParts = kConvColumns * kConvDepth / kConvPart / static_cast<int>(kConvThreads);
  static constexpr int kPerLine = kConvDepth / kConvPart, kPerDepth = kConvColumns / kConvPart;

  ConvWalk<T> walks[kParts];
  int64_t row0, column0;

  __device__ __forceinline__ void begin(const ConvOperands<T>& op, int64_t depth) {
    if (!op.aligned) return;
#pragma unroll
    for (int i = 0; i < kParts; ++i) walks[i].begin(op, row0 + number(i) / kPerLine, depth + number(i) % kPerLine * kConvPart);
  }

  /// Starts to bring the tiles of the next step, which begins at ``depth0``.
  __device__ __forceinline__ void take(const ConvOperands<T>& op, ConvTiles<T, Rows>& tiles, int64_t depth0) {
#pragma unroll
    for (int i = 0; i < kParts; ++i) {
      const int line = number(i) / kPerLine, place = number(i) % kPerLine * kConvPart;
      T* target = &tiles.left[line][place];
      if (!op.aligned) {
        gather(op, target, row0 + line, depth0 + place);
        continue;
      }
      const ConvWalk<T>& walk = walks[i];
      take_part(target, walk.source == nullptr ? op.weight : walk.source + walk.channel, walk.source != nullptr);
      walks[i].advance(op);
    }
#pragma unroll
    for (int i = 0; i < kWeightParts; ++i) op.by_depth ? take_depth(op, tiles, number(i), depth0) : take_column(op, tiles, number(i), depth0);
  }

 private:
  __device__ __forceinline__ static int number(int part) { return static_cast<int>(threadIdx.x) + part * static_cast<int>(kConvThreads); }

  /// Numbers of a row of columns where they do not lie as copies want them.
  __device__ __forceinline__ static void gather(const ConvOperands<T>& op, T* target, int64_t row, int64_t depth) {
    for (int i = 0; i < kConvPart; ++i) {
      const int64_t tap = (depth + i) / op.channels;
      const bool inside = row < op.rows && tap < op.taps;
      const T* source = inside ? reinterpret_cast<const T*>(op.neighbour(row, tap)) : nullptr;
      target[i] = inside ? source[depth + i - tap * op.channels] : from_float<T>(0.0f);
    }
  }

  __device__ __forceinline__ void take_column(const ConvOperands<T>& op, ConvTiles<T, Rows>& tiles, int number, int64_t depth0) const {
    const int line = number / kPerLine, place = number % kPerLine * kConvPart;
    const int64_t column = column0 + line, depth = depth0 + place, all = op.taps * op.channels;
    T* target = &tiles.right[line * ConvTiles<T, Rows>::kPitch + place];
    const T* source = op.weight + column * all + depth;
    const bool inside = column < op.columns && depth < all;
    if (op.aligned) {
      take_part(target, inside ? source : op.weight, inside);
      return;
    }
    for (int i = 0; i < kConvPart; ++i) target[i] = inside && depth + i < all ? source[i] : from_float<T>(0.0f);
  }

  /// Eight columns of the weight at one depth. Single precision has no products of turned tiles: it turns them here.
  __device__ __forceinline__ void take_depth(const ConvOperands<T>& op, ConvTiles<T, Rows>& tiles, int number, int64_t depth0) const {
    using Tiles = ConvTiles<T, Rows>;
    const int line = number / kPerDepth, place = number % kPerDepth * kConvPart;
    const int64_t depth = depth0 + line, column = column0 + place;
    const T* source = op.weight + depth * op.columns + column;
    const bool inside = depth < op.taps * op.channels && column < op.columns;
    if (sizeof(T) == 2 && op.aligned && op.columns % kConvPart == 0) {
      take_part(&tiles.right[line * Tiles::kTurnedPitch + place], inside ? source : op.weight, inside);
      return;
    }
    for (int i = 0; i < kConvPart; ++i) {
      const T value = inside && column + i < op.columns ? source[i] : from_float<T>(0.0f);
      tiles.right[sizeof(T) == 2 ? line * Tiles::kTurnedPitch + place + i : (place + i) * Tiles::kPitch + line] = value;
    }
  }
};

}  // namespace retouch
