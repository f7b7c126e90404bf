#include "operator.h"

namespace retouch::ort {

Call::Call(OrtKernelContext* context, int type) : raw_(context), context_(context), type_(type) {}

Call::~Call() {
  if (allocator_ == nullptr) return;
  // What is given back while the stream still works is used again behind that work only.
  if (workspace_ != nullptr) allocator_->Free(allocator_, workspace_);
  Ort::GetApi().ReleaseAllocator(allocator_);
}

const void* Call::in(size_t input) const {
  if (input >= context_.GetInputCount()) return nullptr;
  const Ort::ConstValue value = context_.GetInput(input);
  return value == nullptr ? nullptr : value.GetTensorRawData();
}

std::vector<int64_t> Call::dims(size_t input) const { return context_.GetInput(input).GetTensorTypeAndShapeInfo().GetShape(); }

void* Call::out(size_t output, const std::vector<int64_t>& dims) const { return context_.GetOutput(output, dims).GetTensorMutableRawData(); }

void* Call::workspace(size_t bytes) {
  const OrtMemoryInfo* place = context_.GetInput(0).GetTensorMemoryInfo();
  Ort::ThrowOnError(Ort::GetApi().KernelContext_GetAllocator(raw_, place, &allocator_));
  Ort::ThrowOnError(Ort::GetApi().KernelContext_GetScratchBuffer(raw_, place, bytes, &workspace_));
  return workspace_;
}

}  // namespace retouch::ort
