// Host-only test of the memory that a thread caches.
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
  expect(workspace.kept() == 0, "a workspace is initially empty");
  void* const first = at(100000);
  expect(workspace.kept() == 131072, "freed memory is cached, as a power of two");
  expect(at(70000) == first && workspace.kept() == 131072, "cached memory is reused for its size");
  expect(at(60000) != first && workspace.kept() == 131072 + 65536,
         "cached memory is not reused for another size");
  {
    const Workspace::Piece one(100000), two(100000);
    expect(one.get() == first && two.get() != first, "memory in use is not shared");
    expect(reinterpret_cast<uintptr_t>(two.get()) % 64 == 0, "pieces are line-aligned");
  }
  expect(workspace.kept() == 2 * 131072 + 65536, "all freed pieces are cached");
  {
    Workspace::Piece one(300), two(3000);
    void* const old = two.get();
    std::swap(one, two);
    expect(one.get() == old, "pieces can be swapped");
  }
  at(Workspace::kMost);
  expect(workspace.kept() == Workspace::kMost, "a large piece evicts others from the cache");
  at(2 * Workspace::kMost);
  expect(workspace.kept() == Workspace::kMost, "a piece above the limit is freed");
  size_t theirs = 1;
  std::thread([&] { theirs = Workspace::of_thread().kept(); }).join();
  expect(theirs == 0, "every thread has a separate workspace");
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
  expect(throws(Workspace::Piece::kLargest + 1), "a piece larger than the address space fails");
  expect(throws(static_cast<size_t>(int64_t{-1})), "a negative size fails");
  expect(throws(Workspace::Piece::kLargest), "more memory than available fails");
  expect(workspace.kept() == kept, "a failed piece changes nothing");
  return failed();
}
