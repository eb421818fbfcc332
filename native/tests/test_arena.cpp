// Host-only test of the working memory that a thread keeps.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>
#include <thread>
#include <utility>

#include "cpu/common/arena.h"
#include "expect.h"

int main() {
  using gnnbench::Arena;
  Arena& arena = Arena::of_thread();
  const auto at = [](size_t bytes) {
    const Arena::Piece piece(bytes);
    std::memset(piece.get(), 1, std::min<size_t>(bytes, 4096));
    return piece.get();
  };
  expect(arena.kept() == 0, "an arena begins empty");
  void* const first = at(100000);
  expect(arena.kept() == 131072, "what is given back is kept, as a power of two");
  expect(at(70000) == first && arena.kept() == 131072, "a piece is used again for its size");
  expect(at(60000) != first && arena.kept() == 131072 + 65536, "and not for another");
  {
    const Arena::Piece one(100000), two(100000);
    expect(one.get() == first && two.get() != first, "what is in use is nobody else's");
    expect(reinterpret_cast<uintptr_t>(two.get()) % 64 == 0, "pieces begin with a cache line");
  }
  expect(arena.kept() == 2 * 131072 + 65536, "as many are kept as were in use");
  {
    Arena::Piece one(300), two(3000);
    void* const old = two.get();
    std::swap(one, two);
    expect(one.get() == old, "pieces can change places");
  }
  at(Arena::kMost);
  expect(arena.kept() == Arena::kMost, "a large piece takes the room of others");
  at(2 * Arena::kMost);
  expect(arena.kept() == Arena::kMost, "one that is too large is given up");
  size_t theirs = 1;
  std::thread([&] { theirs = Arena::of_thread().kept(); }).join();
  expect(theirs == 0, "every thread has its own");
  at(0);
  const auto throws = [](size_t bytes) {
    try {
      const Arena::Piece piece(bytes);
    } catch (const std::bad_alloc&) {
      return true;
    }
    return false;
  };
  const size_t kept = arena.kept();
  expect(throws(Arena::Piece::kLargest + 1), "a piece larger than the address space is refused");
  expect(throws(static_cast<size_t>(int64_t{-1})), "a negative size is refused");
  expect(throws(Arena::Piece::kLargest), "memory that is not there is refused");
  expect(arena.kept() == kept, "a refused piece changes nothing");
  return failed();
}
