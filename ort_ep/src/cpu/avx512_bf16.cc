// AVX512_BF16: pairs of bfloat16 numbers.
#include <immintrin.h>

#include "cpu/pairs.h"

constexpr size_t kLanes = 16;
#include "cpu/vector.h"
// This needs the vectors.
#include "cpu/sums_impl.h"

namespace retouch {
namespace {

constexpr size_t kStep = 2 * kLanes;

/// Room for a row's numbers and for the rest of the vector that holds the last ones.
struct alignas(64) Halves {
  uint16_t numbers[kPairDepth + kStep];
};

inline __attribute__((always_inline)) __m512 load_first(const float* from, size_t count) {
  const __mmask16 mask = static_cast<__mmask16>(count >= kLanes ? 0xFFFF : (1U << count) - 1);
  return _mm512_maskz_loadu_ps(mask, from);
}

/// The numbers of a row that a tile covers, rounded to bfloat16, and zeros behind them.
void round_row(const Tile& tile, const char* const* taps, Halves& to) {
  uint16_t* place = to.numbers;
  for (size_t tap = 0; tap < tile.taps; ++tap, place += tile.channels) {
    const float* from = reinterpret_cast<const float*>(taps[tap]) + tile.first_channel;
    for (size_t channel = 0; channel < tile.channels; channel += kStep) {
      const size_t left = tile.channels - channel;
      const __m512 lower = load_first(from + channel, left);
      const __m512 upper = left > kLanes ? load_first(from + channel + kLanes, left - kLanes) : _mm512_setzero_ps();
      const __m512bh both = _mm512_cvtne2ps_pbh(upper, lower);
      __builtin_memcpy(place + channel, &both, sizeof(both));
    }
  }
}

template <size_t Rows, size_t Vectors>
void compute(const Tile& tile) {
  Halves halves[Rows];
  for (size_t r = 0; r < Rows; ++r) round_row(tile, tile.rows + r * tile.row_stride, halves[r]);
  Vector sum[Rows][Vectors];
  begin_sums(tile, sum);
  const char* weights = tile.weights;
  const size_t pairs = (tile.taps * tile.channels + 1) / 2;
  Fetching fetching(tile.ahead, pairs);
  for (size_t pair = 0; pair < pairs; ++pair, weights += Vectors * kLanes * sizeof(float)) {
    __m512bh weight[Vectors];
    for (size_t v = 0; v < Vectors; ++v) __builtin_memcpy(&weight[v], weights + v * sizeof(Vector), sizeof(Vector));
    for (size_t r = 0; r < Rows; ++r) {
      int32_t both;
      __builtin_memcpy(&both, halves[r].numbers + 2 * pair, sizeof(both));
      const __m512i row = _mm512_set1_epi32(both);
      for (size_t v = 0; v < Vectors; ++v) sum[r][v] = _mm512_dpbf16_ps(sum[r][v], reinterpret_cast<__m512bh>(row), weight[v]);
    }
    fetching.step();
  }
  keep_sums(tile, sum);
}

void widen(const char* panel, size_t depth, size_t count, size_t width, float* to) {
  for (size_t k = depth; k < depth + count; ++k, to += width) {
    const char* pair = panel + k / 2 * width * sizeof(float);
    for (size_t column = 0; column < width; column += kLanes) {
      Words both;
      __builtin_memcpy(&both, pair + column * sizeof(float), sizeof(both));
      store(to + column, vector_of_bits(k % 2 == 0 ? both << 16 : both & 0xFFFF0000U));
    }
  }
}

#define RETOUCH_PAIR_ROW(rows) {compute<rows, 1>, compute<rows, 2>, compute<rows, 3>, compute<rows, 4>}

}  // namespace

const PairFunctions kPairs = {
    {RETOUCH_PAIR_ROW(1), RETOUCH_PAIR_ROW(2), RETOUCH_PAIR_ROW(3), RETOUCH_PAIR_ROW(4), RETOUCH_PAIR_ROW(5), RETOUCH_PAIR_ROW(6)}, widen};

}  // namespace retouch
