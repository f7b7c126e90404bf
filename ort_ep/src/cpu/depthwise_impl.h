// Depthwise convolutions. Included once by the source of each instruction set, behind its vectors.
#include "cpu/depthwise.h"
#include "cpu/tail_impl.h"

namespace retouch {
namespace {

void weigh_taps(const DepthwiseTile& tile) {
  size_t sample = tile.sample;
  for (size_t row = 0; row < tile.count; ++row) {
    const char* const* sources = tile.rows + row * tile.taps;
    const float* bias = tile.bias.of(sample);
    float* out = tile.out + row * tile.channels;
    for (size_t channel = 0; channel < tile.channels; channel += kLanes) {
      const size_t width = tile.channels - channel;
      Vector sum = tile.bias ? load_up_to(bias + channel, width) : Vector{};
      const float* weights = tile.weights + channel;
      for (size_t tap = 0; tap < tile.taps; ++tap, weights += tile.channels)
        sum += load_up_to(reinterpret_cast<const float*>(sources[tap]) + channel, width) * load_up_to(weights, width);
      store_up_to(out + channel, sum, width);
    }
    if (++sample == tile.samples) sample = 0;
  }
}

}  // namespace
}  // namespace retouch
