// Huge pages for arrays with random access: with 4 KiB pages nearly every access also misses the
// TLB. A hint (madvise) where the system supports it, otherwise a no-op.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <new>
#include <vector>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace gnnbench {

constexpr size_t kHugePage = size_t{1} << 21;

// For memory that has not been written yet.
inline void prefer_huge_pages(void* data, size_t bytes) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  const auto first = (reinterpret_cast<uintptr_t>(data) + kHugePage - 1) & ~(kHugePage - 1);
  const auto last = (reinterpret_cast<uintptr_t>(data) + bytes) & ~(kHugePage - 1);
  if (first < last) madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
#endif
}

template <class T>
struct HugePageAllocator {
  using value_type = T;
  HugePageAllocator() = default;
  template <class U>
  HugePageAllocator(const HugePageAllocator<U>&) {}

  T* allocate(size_t n) {
    const size_t bytes = n * sizeof(T);
    if (bytes < 2 * kHugePage) return static_cast<T*>(::operator new(bytes));
    const size_t padded = (bytes + kHugePage - 1) & ~(kHugePage - 1);
    void* data = std::aligned_alloc(kHugePage, padded);
    if (data == nullptr) throw std::bad_alloc();
    prefer_huge_pages(data, padded);
    return static_cast<T*>(data);
  }

  void deallocate(T* data, size_t n) {
    if (n * sizeof(T) < 2 * kHugePage) {
      ::operator delete(data);
    } else {
      std::free(data);
    }
  }

  template <class U>
  bool operator==(const HugePageAllocator<U>&) const {
    return true;
  }
};

template <class T>
using HugeVector = std::vector<T, HugePageAllocator<T>>;

}  // namespace gnnbench
