// Working memory that a thread reuses between calls: each fresh 4 KiB page costs a page fault.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace gnnbench {

class Workspace {
 public:
  // Limit of the memory cached for reuse. Memory beyond it is freed.
  static constexpr size_t kMost = size_t{256} << 20;

  // The calling thread's workspace, freed with the thread.
  static Workspace& of_thread();

  // At least `bytes` of memory, aligned to a cache line, with undefined contents. Returns to the
  // workspace of the thread that destroys it. Throws std::bad_alloc if there is not enough memory.
  class Piece {
   public:
    static constexpr size_t kLargest = size_t{1} << 47;  // addresses have 47 bits

    explicit Piece(size_t bytes);
    ~Piece();
    Piece(Piece&& other) noexcept : memory_(std::move(other.memory_)), log2_(other.log2_) {}
    Piece& operator=(Piece&& other) noexcept {
      std::swap(memory_, other.memory_);
      std::swap(log2_, other.log2_);
      return *this;
    }

    void* get() const { return memory_.get(); }

   private:
    friend class Workspace;
    struct Free {
      void operator()(void* memory) const;
    };
    std::unique_ptr<void, Free> memory_;
    int log2_;  // of its size in bytes
  };

  size_t kept() const { return kept_; }

 private:
  using Memory = std::unique_ptr<void, Piece::Free>;

  static constexpr int kLeastLog2 = 8;

  Memory take(int log2);
  void keep(Memory memory, int log2) noexcept;

  std::vector<Memory> waiting_[64];  // by the log2 of their size in bytes
  size_t kept_ = 0;
};

}  // namespace gnnbench
