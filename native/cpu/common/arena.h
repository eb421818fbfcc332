// Working memory that a thread keeps from one call to the next, so that a batch writes to the pages
// of the last one: fresh pages cost a fault each, 4 KiB at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace gnnbench {

class Arena {
 public:
  // The most that waits to be used again. What goes beyond it is given up.
  static constexpr size_t kMost = size_t{256} << 20;

  // The calling thread's own; freed with the thread.
  static Arena& of_thread();

  // At least `bytes`, aligned to a cache line, contents undefined. Goes back to the arena of the
  // thread that destroys it. Throws std::bad_alloc where there is not that much memory.
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
    friend class Arena;
    struct Free {
      void operator()(void* memory) const;
    };
    std::unique_ptr<void, Free> memory_;
    int log2_;  // of its size
  };

  size_t kept() const { return kept_; }

 private:
  using Memory = std::unique_ptr<void, Piece::Free>;

  static constexpr int kLeastLog2 = 8;

  Memory take(int log2);
  void keep(Memory memory, int log2) noexcept;

  std::vector<Memory> waiting_[64];  // by the log2 of their size
  size_t kept_ = 0;
};

}  // namespace gnnbench
