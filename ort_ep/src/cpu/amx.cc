// AMX: tiles of bfloat16 numbers (Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1, chapter 18).
#include <immintrin.h>

#include "cpu/instruction_set.h"
#include "cpu/matrix.h"

namespace retouch {
namespace {

/// The leading eight binary digits of every number, and what is left.
inline __attribute__((always_inline)) __m512 leading(__m512 x) {
  return _mm512_castsi512_ps(_mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(static_cast<int>(0xFFFF0000))));
}

/// The upper halves of two vectors one after the other: as bfloat16 numbers.
inline __attribute__((always_inline)) __m512i joined(__m512 x, __m512 y, __m512i upper) {
  return _mm512_permutex2var_epi16(_mm512_castps_si512(x), upper, _mm512_castps_si512(y));
}

/// The upper halves of two vectors, one of each in turn.
inline __attribute__((always_inline)) __m512i paired(__m512 x, __m512 y) {
  typedef uint32_t Words __attribute__((vector_size(64)));
  const Words lower = reinterpret_cast<Words>(_mm512_castps_si512(x)) >> 16;
  return _mm512_mask_blend_epi16(0xAAAAAAAA, reinterpret_cast<__m512i>(lower), _mm512_castps_si512(y));
}

inline __attribute__((always_inline)) __m512i upper_halves() {
  alignas(64) uint16_t index[32];
  for (int i = 0; i < 32; ++i) index[i] = static_cast<uint16_t>(i < 16 ? 2 * i + 1 : 32 + 2 * (i - 16) + 1);
  return _mm512_load_si512(index);
}

/// A row of a tile: 32 numbers taken apart.
inline __attribute__((always_inline)) void split_row(__m512 x, __m512 y, __m512i upper, uint16_t* to) {
  for (size_t part = 0; part < kParts; ++part) {
    _mm512_store_si512(to + part * kTileNumbers, joined(x, y, upper));
    x = _mm512_sub_ps(x, leading(x));
    y = _mm512_sub_ps(y, leading(y));
  }
}

/// Numbers `begin` and following of a row whose taps lie apart.
void gather(const SplitRows& rows, const char* const* sources, size_t begin, float* to) {
  const size_t depth = rows.taps * rows.channels;
  size_t tap = begin / rows.channels, channel = begin % rows.channels;
  for (size_t i = 0; i < kStepDepth; ++i) {
    to[i] = begin + i < depth ? reinterpret_cast<const float*>(sources[tap])[channel] : 0.0F;
    if (++channel == rows.channels) {
      channel = 0;
      ++tap;
    }
  }
}

void split_rows(const SplitRows& rows) {
  const __m512i upper = upper_halves();
  const bool whole = rows.channels % kStepDepth == 0;
  alignas(64) float numbers[kStepDepth];
  for (size_t row = 0; row < rows.count; ++row) {
    const char* const* sources = rows.rows + row * rows.taps;
    uint16_t* to = rows.out + row / kTileSide * (rows.steps * kParts * kTileNumbers) + row % kTileSide * kStepDepth;
    for (size_t step = 0; step < rows.steps; ++step, to += kParts * kTileNumbers) {
      const size_t begin = rows.begin + step * kStepDepth;
      const float* from = numbers;
      if (whole && begin < rows.taps * rows.channels) {
        from = reinterpret_cast<const float*>(sources[begin / rows.channels]) + begin % rows.channels;
      } else {
        gather(rows, sources, begin, numbers);
      }
      split_row(_mm512_loadu_ps(from), _mm512_loadu_ps(from + 16), upper, to);
    }
  }
}

void split_weights(const SplitWeights& weights) {
  Fetching fetching(weights.ahead, weights.column_tiles * weights.steps * kTileSide);
  for (size_t tile = 0; tile < weights.column_tiles; ++tile) {
    const float* from = weights.weights + tile * kTileSide;
    uint16_t* to = weights.out + tile * (weights.steps * kParts * kTileNumbers);
    for (size_t pair = 0; pair < weights.steps * kTileSide; ++pair, from += 2 * weights.stride) {
      __m512 x = 2 * pair < weights.depth ? _mm512_loadu_ps(from) : _mm512_setzero_ps();
      __m512 y = 2 * pair + 1 < weights.depth ? _mm512_loadu_ps(from + weights.stride) : _mm512_setzero_ps();
      uint16_t* place = to + pair / kTileSide * (kParts * kTileNumbers) + pair % kTileSide * kStepDepth;
      for (size_t part = 0; part < kParts; ++part) {
        _mm512_store_si512(place + part * kTileNumbers, paired(x, y));
        x = _mm512_sub_ps(x, leading(x));
        y = _mm512_sub_ps(y, leading(y));
      }
      fetching.step();
    }
  }
}

/// Numbers in a tile of sums.
constexpr size_t kSums = kTileSide * kTileSide;

/// Sizes of the tiles: four of sums (0 to 3), two of rows (4, 5), two of weights (6, 7).
struct alignas(64) Configuration {
  uint8_t palette = 1;
  uint8_t start = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {};

  Configuration(size_t upper, size_t lower) {
    const size_t heights[8] = {upper, upper, lower, lower, upper, lower, kTileSide, kTileSide};
    for (int i = 0; i < 8; ++i) rows[i] = static_cast<uint8_t>(heights[i] != 0 ? heights[i] : 1);
  }
};

/// Two tiles of rows times two of columns, or one of either.
template <bool Lower, bool Right>
void multiply_pair(const MatrixTile& tile, const uint16_t* rows, const uint16_t* weights, float* sums, Fetching& fetching) {
  const size_t further = tile.steps * kParts * kTileNumbers;
  float* below = sums + tile.row_step;
  if (tile.first) {
    _tile_zero(0);
    if (Right) _tile_zero(1);
    if (Lower) _tile_zero(2);
    if (Lower && Right) _tile_zero(3);
  } else {
    _tile_loadd(0, sums, 64);
    if (Right) _tile_loadd(1, sums + kSums, 64);
    if (Lower) _tile_loadd(2, below, 64);
    if (Lower && Right) _tile_loadd(3, below + kSums, 64);
  }
  const auto load_rows = [&](size_t part) __attribute__((always_inline)) {
    _tile_loadd(4, rows + part * kTileNumbers, 64);
    if (Lower) _tile_loadd(5, rows + further + part * kTileNumbers, 64);
  };
  const auto load_weights = [&](size_t part) __attribute__((always_inline)) {
    _tile_loadd(6, weights + part * kTileNumbers, 64);
    if (Right) _tile_loadd(7, weights + further + part * kTileNumbers, 64);
  };
  const auto add = [&]() __attribute__((always_inline)) {
    _tile_dpbf16ps(0, 4, 6);
    if (Right) _tile_dpbf16ps(1, 4, 7);
    if (Lower) _tile_dpbf16ps(2, 5, 6);
    if (Lower && Right) _tile_dpbf16ps(3, 5, 7);
  };
  for (size_t step = 0; step < tile.steps; ++step) {
    load_rows(2);
    load_weights(0);
    add();
    load_rows(1);
    add();
    load_weights(1);
    add();
    load_rows(0);
    add();
    load_weights(2);
    add();
    load_weights(0);
    add();
    rows += kParts * kTileNumbers;
    weights += kParts * kTileNumbers;
    fetching.step();
  }
  _tile_stored(0, sums, 64);
  if (Right) _tile_stored(1, sums + kSums, 64);
  if (Lower) _tile_stored(2, below, 64);
  if (Lower && Right) _tile_stored(3, below + kSums, 64);
}

void multiply(const MatrixTile& tile) {
  constexpr size_t kSide = 2 * kTileSide;
  const size_t further = 2 * tile.steps * kParts * kTileNumbers;
  Fetching fetching(tile.ahead, (tile.count + kSide - 1) / kSide * tile.steps);
  const uint16_t* rows = tile.rows;
  float* sums = tile.sums;
  for (size_t row = 0; row < tile.count; row += kSide, rows += further, sums += 2 * tile.row_step) {
    const size_t left = tile.count - row, upper = left < kTileSide ? left : kTileSide, lower = left < kSide ? left - upper : kTileSide;
    if (row == 0 || upper + lower < kSide) {
      const Configuration configuration(upper, lower);
      _tile_loadconfig(&configuration);
    }
    if (lower != 0 && tile.column_tiles == kTilePair) {
      multiply_pair<true, true>(tile, rows, tile.weights, sums, fetching);
    } else if (lower != 0) {
      multiply_pair<true, false>(tile, rows, tile.weights, sums, fetching);
    } else if (tile.column_tiles == kTilePair) {
      multiply_pair<false, true>(tile, rows, tile.weights, sums, fetching);
    } else {
      multiply_pair<false, false>(tile, rows, tile.weights, sums, fetching);
    }
  }
  _tile_release();
}

}  // namespace

const MatrixFunctions kAmx = {split_rows, split_weights, multiply};

}  // namespace retouch
