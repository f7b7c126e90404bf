#include "cpu/row_product.h"

#include <algorithm>
#include <vector>

#include "api.h"
#include "cpu/scratch.h"
#include "cpu/weight_memory.h"

namespace retouch {
namespace {

/// Depth of a block of weights that several tiles use one after the other: it stays in the second-level cache.
constexpr size_t kBlockDepth = 256;
static_assert(kBlockDepth <= kPairDepth);
/// Bytes of rows that one task reads again and again, for every panel.
constexpr size_t kTaskBytes = 1 << 20;
constexpr size_t kLeastTaskRows = 96;
constexpr size_t kTasksPerThread = 2;

/// So many groups of rows make float32 of float16 weights as they read them, for which CPUs have an instruction. On some it
/// takes turns with multiplications, and does not pay for more groups.
constexpr size_t kHalfGroups = 3;

/// Bytes by which weights are fetched ahead of their use where nothing else fetches them.
constexpr size_t kAhead = 4096;

/// Fewer rows do not pay for taking weights apart.
constexpr size_t kLeastMatrixRows = 128;
/// Taking rows apart costs the same for any number of columns, and narrow products do not earn it back.
constexpr size_t kLeastMatrixColumns = 128;

size_t divided_up(size_t a, size_t b) { return (a + b - 1) / b; }

/// A part of the depth: several whole taps, or some channels of one tap.
struct Block {
  size_t tap, taps, first_channel, channels;
};

/// The block that begins at a depth; parts of a tap begin with a pair.
Block block_at(size_t depth, const Rows& rows, size_t wanted) {
  const size_t taps = rows.taps, channels = rows.channels;
  const size_t tap = depth / channels, first = depth % channels;
  if (channels <= wanted) return {tap, std::min(taps - tap, std::max<size_t>(1, wanted / channels)), 0, channels};
  const size_t parts = divided_up(channels, wanted), part = divided_up(divided_up(channels, parts), 2) * 2;
  return {tap, 1, first, std::min(part, channels - first)};
}

}  // namespace

RowProduct::RowProduct(const Source& source, size_t depth, size_t columns, WeightStorage storage)
    : set_(instruction_set()),
      matrix_(matrix_functions()),
      storage_(storage),
      pairs_(storage == WeightStorage::kBfloat16 ? pair_functions() : nullptr),
      depth_(depth),
      taps_(source.taps),
      packed_depth_(pairs_ == nullptr ? depth : divided_up(depth, 2) * 2),
      columns_(columns),
      panels_(divided_up(columns, set_.panel())),
      packed_(weight_memory(divided_up(columns, set_.lanes) * set_.lanes * packed_depth_ * bytes_of(storage))) {
  if (depth == 0) throw Error("retouch: expected a weight of at least one number per column, got none");
  for (size_t panel = 0; panel < panels_; ++panel) pack(source, panel);
}

void RowProduct::pack(const Source& source, size_t panel) {
  const size_t first = panel * set_.panel(), valid = std::min(set_.panel(), columns_ - first), width = width_of(panel);
  const size_t bytes = bytes_of(storage_);
  std::vector<char> row(width * bytes, '\0');
  char* to = packed_.get() + first * packed_depth_ * bytes;
  const size_t channels = depth_ / source.taps;
  for (size_t from = 0; from < packed_depth_; ++from) {
    // In the order of the source, whose cache lines are then read once; what pads a pair comes last in either order.
    const size_t k = from < depth_ ? from % source.taps * channels + from / source.taps : from;
    if (from < depth_) {
      keep_weights(storage_, source.data + from * source.depth_stride + first * source.column_stride, source.column_stride, valid, row.data());
    } else {
      std::fill(row.begin(), row.end(), '\0');
    }
    if (pairs_ == nullptr) {
      std::copy(row.begin(), row.end(), to + k * width * bytes);
    } else {
      for (size_t n = 0; n < width; ++n) std::copy_n(row.data() + n * bytes, bytes, to + (k / 2 * 2 * width + 2 * n + k % 2) * bytes);
    }
  }
}

/// A pair of numbers of different taps lies apart, so such rows are multiplied by weights made float32.
bool RowProduct::multiplies_pairs(const Rows& rows) const { return pairs_ != nullptr && (rows.taps == 1 || rows.channels % 2 == 0); }

void RowProduct::run(const Context& context, const Rows& rows, const TailTile& target) const {
  const size_t count = target.rows;
  if (count == 0 || columns_ == 0) return;
  TailTile all = target;
  // Sums are gathered where what stands before the tail is wanted, if it is.
  all.from = target.sum == nullptr ? target.out : target.sum;
  all.from_stride = target.stride;
  if (matrix_ != nullptr && count >= kLeastMatrixRows && columns_ >= kLeastMatrixColumns) return run_matrix(context, rows, all);
  const PerColumn bias = all.tail.bias;
  all.tail.bias = {};
  const size_t threads = context.threads_for(count * depth_ * columns_);
  const size_t most = std::max(kLeastTaskRows, kTaskBytes / std::max<size_t>(1, rows.channels * sizeof(float)));
  // Several threads want several tasks each, which end at about the same time, but every one reads its weights anew.
  const size_t wanted = threads == 1 ? 1 : divided_up(threads * kTasksPerThread, panels_);
  const size_t chunks = std::max(divided_up(count, most), std::min(wanted, divided_up(count, kLeastTaskRows)));
  context.parallel_for(chunks * panels_, threads, [&](size_t task) {
    const size_t chunk = task / panels_, begin = count * chunk / chunks, end = count * (chunk + 1) / chunks;
    const size_t panel = task % panels_, first = panel * set_.panel();
    const TailTile part = part_of(all, begin, end - begin, first, std::min(set_.panel(), columns_ - first));
    run_panel({rows.pointers + begin * rows.taps, rows.taps, rows.channels}, bias, part, panel);
  });
}

void RowProduct::run_panel(const Rows& rows, const PerColumn& bias, const TailTile& target, size_t panel) const {
  static thread_local Scratch<float> scratch;
  const size_t count = target.rows, first = panel * set_.panel(), valid = target.columns;
  float* sums = target.sum == nullptr ? target.out : target.sum;
  const bool plain = target.tail.is_empty() && target.sum == nullptr;
  const size_t vectors = divided_up(valid, set_.lanes), groups = divided_up(count, kMaxTileRows);
  // Many groups read the same weights, which are made float32 for all of them at once.
  const bool paired = multiplies_pairs(rows);
  const size_t most_groups = storage_ == WeightStorage::kFloat16 ? kHalfGroups : 1;
  const WeightStorage read = pairs_ == nullptr && groups <= most_groups ? storage_ : WeightStorage::kFloat32;
  const bool as_kept = paired || read == storage_;
  const TileFunction* tiles = paired ? pairs_->tiles[0] : set_.tiles[static_cast<size_t>(read)][0];
  Tile tile{};
  tile.row_stride = rows.taps;
  tile.bias = bias;
  if (bias) tile.bias.first += first;
  tile.samples = target.tail.samples;
  tile.out_stride = target.stride;
  tile.columns = valid;
  for (size_t begin = 0; begin < depth_;) {
    // A single group reads the weights once, so nothing is gained by cutting the depth.
    const Block block = block_at(begin, rows, groups == 1 && pairs_ == nullptr ? depth_ : kBlockDepth);
    const size_t size = block.taps * block.channels;
    tile.taps = block.taps;
    tile.first_channel = block.first_channel;
    tile.channels = block.channels;
    tile.first = begin == 0;
    const Ahead own = kept(panel, begin, size), next = next_after(own);
    tile.weights = as_kept ? own.from : reinterpret_cast<const char*>(float32_weights(panel, begin, size, scratch));
    const bool alone = groups == 1;
    for (size_t group = 0; group < groups; ++group) {
      const size_t from = count * group / groups, to = count * (group + 1) / groups;
      tile.rows = rows.pointers + from * rows.taps + block.tap;
      tile.out = sums + from * target.stride;
      tile.sample = (target.sample + from) % tile.samples;
      tile.ahead = alone ? Ahead{own.from + kAhead, own.lines} : next.share(group, groups);
      tiles[(to - from - 1) * kMaxTileVectors + vectors - 1](tile);
      // The rows are complete and still at hand.
      if (begin + size == depth_ && !plain) set_.finish(part_of(target, from, to - from, 0, valid));
    }
    begin += size;
  }
}

Ahead RowProduct::kept(size_t panel, size_t depth, size_t count) const {
  const size_t bytes = bytes_of(storage_), width = width_of(panel);
  const char* from = packed_.get() + (panel * set_.panel() * packed_depth_ + depth * width) * bytes;
  return {from, divided_up(count * width * bytes, kCacheLine)};
}

Ahead RowProduct::next_after(const Ahead& block) const {
  const Ahead last = kept(panels_ - 1, 0, packed_depth_);
  const char* from = block.from + block.lines * kCacheLine;
  const std::ptrdiff_t left = (last.from - from) / static_cast<std::ptrdiff_t>(kCacheLine) + static_cast<std::ptrdiff_t>(last.lines);
  return {from, std::min(block.lines, static_cast<size_t>(std::max<std::ptrdiff_t>(left, 0)))};
}

const float* RowProduct::float32_weights(size_t panel, size_t depth, size_t count, Scratch<float>& scratch) const {
  const Ahead own = kept(panel, depth, count);
  if (storage_ == WeightStorage::kFloat32) return reinterpret_cast<const float*>(own.from);
  const size_t numbers = count * width_of(panel);
  float* wide = scratch.get(numbers);
  if (pairs_ == nullptr) {
    set_.widen[static_cast<size_t>(storage_)](own.from, numbers, wide);
  } else {
    pairs_->widen(kept(panel, 0, 0).from, depth, count, width_of(panel), wide);
  }
  return wide;
}

size_t RowProduct::width_of(size_t panel) const {
  return divided_up(std::min(set_.panel(), columns_ - panel * set_.panel()), set_.lanes) * set_.lanes;
}

}  // namespace retouch
