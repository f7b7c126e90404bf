// What Retouch's operators are to ONNX Runtime: custom operators that call the kernels of launch.h.
#pragma once

// The API comes with the session that the operators are registered in.
#define ORT_API_MANUAL_INIT
#include <onnxruntime_cxx_api.h>

#include <cstdint>
#include <string>
#include <vector>

#include "../kernels/launch.h"

namespace retouch::ort {

/// Which attributes and operands the operators have; models built for others do not fit.
constexpr int32_t kInterface = 3;
constexpr const char* kDomain = "ai.retouch";

/// What an operand's elements are: those of the kernel's type, int64, or float32 in every kernel.
enum class Kind { kNumber, kIndex, kFloat };

struct Operand {
  Kind kind;
  bool optional;
};

/// The attributes of a node, in the order in which its operator names them.
struct Settings {
  std::vector<int64_t> integers;
  std::vector<float> numbers;
};

/// A run of a node.
class Call {
 public:
  Call(OrtKernelContext* context, int type);
  ~Call();
  Call(const Call&) = delete;

  /// Number of the element type, as launch.h has it.
  int type() const { return type_; }
  int64_t number_bytes() const { return type_ == RETOUCH_FLOAT32 ? 4 : 2; }
  /// An operand, null if it is left out.
  const void* in(size_t input) const;
  const int64_t* index(size_t input) const { return static_cast<const int64_t*>(in(input)); }
  std::vector<int64_t> dims(size_t input) const;
  int64_t dim(size_t input, size_t axis) const { return dims(input)[axis]; }
  void* out(size_t output, const std::vector<int64_t>& dims) const;
  /// Memory for this run alone; asked for once.
  void* workspace(size_t bytes);
  void* stream() const { return context_.GetGPUComputeStream(); }

 private:
  OrtKernelContext* raw_;
  Ort::KernelContext context_;
  int type_;
  OrtAllocator* allocator_ = nullptr;
  void* workspace_ = nullptr;
};

/// What an operator wants and computes. One object of each kind serves all nodes.
class Operator {
 public:
  virtual ~Operator() = default;
  virtual const char* name() const = 0;
  /// Names of the attributes that are integers, and of those that are floats. A node has all of them.
  virtual std::vector<const char*> integers() const { return {}; }
  virtual std::vector<const char*> numbers() const { return {}; }
  virtual std::vector<Operand> inputs() const = 0;
  virtual std::vector<Operand> outputs() const { return {{Kind::kNumber, false}}; }
  virtual int run(Call& call, const Settings& settings) const = 0;
};

/// All operators.
const std::vector<const Operator*>& operators();

/// The product of dims from an axis on, to the last or to before another one.
inline int64_t volume(const std::vector<int64_t>& dims, size_t from, size_t end) {
  int64_t product = 1;
  for (size_t axis = from; axis < end; ++axis) product *= dims[axis];
  return product;
}
inline int64_t volume(const std::vector<int64_t>& dims, size_t from = 0) { return volume(dims, from, dims.size()); }

}  // namespace retouch::ort
