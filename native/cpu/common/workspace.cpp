#include "cpu/common/workspace.h"

#include <algorithm>
#include <bit>
#include <new>

namespace gnnbench {
namespace {

constexpr std::align_val_t kLine{64};

}  // namespace

void Workspace::Piece::Free::operator()(void* memory) const { ::operator delete(memory, kLine); }

Workspace::Piece::Piece(size_t bytes) {
  if (bytes > kLargest) throw std::bad_alloc();  // rejects negative sizes too
  log2_ = std::max(kLeastLog2, static_cast<int>(std::bit_width(std::max<size_t>(bytes, 1) - 1)));
  memory_ = of_thread().take(log2_);
}

Workspace::Piece::~Piece() {
  if (memory_) of_thread().keep(std::move(memory_), log2_);
}

Workspace& Workspace::of_thread() {
  thread_local Workspace workspace;
  return workspace;
}

Workspace::Memory Workspace::take(int log2) {
  std::vector<Memory>& waiting = waiting_[log2];
  if (waiting.empty()) {
    Memory memory(::operator new(size_t{1} << log2, kLine, std::nothrow));
    if (!memory) throw std::bad_alloc();
    return memory;
  }
  Memory memory = std::move(waiting.back());
  waiting.pop_back();
  kept_ -= size_t{1} << log2;
  return memory;
}

// At the limit, frees cached memory of other sizes first, because batch sizes may have grown.
void Workspace::keep(Memory memory, int log2) noexcept {
  const size_t bytes = size_t{1} << log2;
  if (bytes > kMost) return;
  for (int other = 0; other < 64 && kept_ + bytes > kMost; ++other) {
    if (other == log2) continue;
    kept_ -= waiting_[other].size() << other;
    waiting_[other].clear();
  }
  if (kept_ + bytes > kMost) return;
  try {
    waiting_[log2].push_back(std::move(memory));
    kept_ += bytes;
  } catch (const std::bad_alloc&) {  // free it instead
  }
}

}  // namespace gnnbench
