// Host-only test of the working memory that a thread keeps.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>
#include <thread>
#include <utility>

#include "cpu/common/workspace.h"
#include "expect.h"

int main() {
  using gnnbench::Workspace;
  Workspace& workspace = Workspace::of_thread();
  const auto at = [](size_t bytes) {
    const Workspace::Piece piece(bytes);
    std::memset(piece.get(), 1, std::min<size_t>(bytes, 4096));
    return piece.get();
  };
  expect(workspace.kept() == 0, "a workspace begins empty");
  void* const first = at(100000);
  expect(workspace.kept() == 131072, "what is given back is kept, as a power of two");
  expect(at(70000) == first && workspace.kept() == 131072, "a piece is used again for its size");
  expect(at(60000) != first && workspace.kept() == 131072 + 65536, "and not for another");
  {
    const Workspace::Piece one(100000), two(100000);
    expect(one.get() == first && two.get() != first, "what is in use is nobody else's");
    expect(reinterpret_cast<uintptr_t>(two.get()) % 64 == 0, "pieces begin with a cache line");
  }
  expect(workspace.kept() == 2 * 131072 + 65536, "as many are kept as were in use");
  {
    Workspace::Piece one(300), two(3000);
    void* const old = two.get();
    std::swap(one, two);
    expect(one.get() == old, "pieces can change places");
  }
  at(Workspace::kMost);
  expect(workspace.kept() == Workspace::kMost, "a large piece takes the room of others");
  at(2 * Workspace::kMost);
  expect(workspace.kept() == Workspace::kMost, "one that is too large is given up");
  size_t theirs = 1;
  std::thread([&] { theirs = Workspace::of_thread().kept(); }).join();
  expect(theirs == 0, "every thread has its own");
  at(0);
  const auto throws = [](size_t bytes) {
    try {
      const Workspace::Piece piece(bytes);
    } catch (const std::bad_alloc&) {
      return true;
    }
    return false;
  };
  const size_t kept = workspace.kept();
  expect(throws(Workspace::Piece::kLargest + 1),
         "a piece larger than the address space is refused");
  expect(throws(static_cast<size_t>(int64_t{-1})), "a negative size is refused");
  expect(throws(Workspace::Piece::kLargest), "memory that is not there is refused");
  expect(workspace.kept() == kept, "a refused piece changes nothing");
  return failed();
}
