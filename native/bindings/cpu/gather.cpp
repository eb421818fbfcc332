#include "cpu/features/gather.h"

#include <vector>

#include "bindings/cpu/memory.h"

namespace gnnbench {
namespace {

// Calls `run` with the ids. It returns the first position of an invalid id, or -1.
template <class Run>
void with_right_ids(const Tensor& table, const Tensor& ids, const Run& run) {
  const bool narrow = ids.scalar_type() == ScalarType::Int;
  const int64_t bad = narrow ? run(data<const int32_t>(ids)) : run(data<const int64_t>(ids));
  if (bad < 0) return;
  const int64_t id = narrow ? data<const int32_t>(ids)[bad] : data<const int64_t>(ids)[bad];
  fail("ids holds ", id, " at position ", bad, ", the table has the rows 0 to ", table.size(0) - 1);
}

void gather_into(const Tensor& table, const Tensor& ids, Tensor& out) {
  with_right_ids(table, ids, [&](const auto* which) {
    return gather_rows(data<const char>(table), table.size(0), row_bytes_of(table), which,
                       ids.numel(), data<char>(out));
  });
}

void check(const Tensor& table, const Tensor& ids) {
  check_table(table, "table");
  check_layout(ids, "ids", 1);
  check_ids(ids, "ids");
  check_cpu(table, "table");
  check_cpu(ids, "ids");
}

// Checks an int32 tensor with one entry per row of the table.
void check_entries(const Tensor& t, const char* name, int64_t rows) {
  check_layout(t, name, 1);
  check_dtype(t, name, ScalarType::Int);
  check_cpu(t, name);
  if (t.numel() != rows) fail(name, " must have one entry for each of the table's rows");
}

Tensor gather_cpu(Tensor table, Tensor ids) {
  check(table, ids);
  std::vector<int64_t> shape(table.sizes().begin(), table.sizes().end());
  shape[0] = ids.numel();
  Tensor out = empty_cpu(shape, table.scalar_type());
  gather_into(table, ids, out);
  return out;
}

// Whether rows have the table's shape and dtype; their number can differ.
bool like_rows(const Tensor& table, const Tensor& rows, const char* name) {
  check_layout(rows, name, table.dim());
  check_dtype(rows, name, table.scalar_type());
  check_cpu(rows, name);
  bool same = true;
  for (int64_t d = 1; d < table.dim(); ++d) same = same && rows.size(d) == table.size(d);
  return same;
}

void check_out(const Tensor& table, const Tensor& ids, const Tensor& out) {
  const bool same = like_rows(table, out, "out") && out.size(0) == ids.numel();
  if (!same) fail("out must have one row of the table's shape for each of the ids");
  check_apart(out, "out", table, "table");
  check_apart(out, "out", ids, "ids");
}

void gather_out_cpu(Tensor table, Tensor ids, Tensor out) {
  check(table, ids);
  check_out(table, ids, out);
  gather_into(table, ids, out);
}

void gather_to_cpu(Tensor table, Tensor ids, Tensor places, Tensor out, int64_t blocks) {
  check(table, ids);
  check_readers(blocks);
  check_layout(places, "places", 1);
  check_dtype(places, "places", ScalarType::Int);
  check_cpu(places, "places");
  if (places.numel() != ids.numel()) fail("places must have one entry for each of the ids");
  if (!like_rows(table, out, "out")) fail("out must have rows of the table's shape");
  check_apart(out, "out", table, "table");
  check_apart(out, "out", ids, "ids");
  check_apart(out, "out", places, "places");
  int64_t bad = -1;
  const auto run = [&](const auto* which) {
    bad = gather_rows_to(data<const char>(table), table.size(0), row_bytes_of(table), which,
                         ids.numel(), data<const int32_t>(places), out.size(0), data<char>(out));
  };
  ids.scalar_type() == ScalarType::Int ? run(data<const int32_t>(ids))
                                       : run(data<const int64_t>(ids));
  if (bad < 0) return;
  const int64_t place = data<const int32_t>(places)[bad];
  if (place < 0 || place >= out.size(0)) {
    fail("places holds ", place, " at position ", bad, ", out has the rows 0 to ", out.size(0) - 1);
  }
  with_right_ids(table, ids, [&](const auto*) { return bad; });
}

int64_t gather_over_out_cpu(Tensor table, Tensor kept, Tensor slots, Tensor generations,
                            int64_t generation, bool remember, Tensor ids, Tensor out) {
  check(table, ids);
  check_out(table, ids, out);
  if (!like_rows(table, kept, "kept")) fail("kept must have rows of the table's shape");
  check_apart(out, "out", kept, "kept");
  check_generation(generation);
  check_entries(slots, "slots", table.size(0));
  check_entries(generations, "generations", table.size(0));
  check_apart(slots, "slots", generations, "generations");
  for (const Tensor& written : {slots, generations}) {
    check_apart(written, "slots or generations", out, "out");
    check_apart(written, "slots or generations", ids, "ids");
    check_apart(written, "slots or generations", kept, "kept");
    check_apart(written, "slots or generations", table, "table");
  }
  const Kept rows{data<const char>(kept),
                  kept.size(0),
                  data<int32_t>(slots),
                  data<int32_t>(generations),
                  static_cast<int32_t>(generation),
                  remember};
  int64_t hits = 0;
  with_right_ids(table, ids, [&](const auto* which) {
    return gather_rows_over(data<const char>(table), table.size(0), row_bytes_of(table), rows,
                            which, ids.numel(), data<char>(out), &hits,
                            best_stores(ids.numel(), row_bytes_of(table)));
  });
  return hits;
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gnnbench, CPU, m) {
  m.impl("gather", TORCH_BOX(&gather_cpu));
  m.impl("gather_out", TORCH_BOX(&gather_out_cpu));
  m.impl("gather_to", TORCH_BOX(&gather_to_cpu));
  m.impl("gather_over_out", TORCH_BOX(&gather_over_out_cpu));
}

}  // namespace gnnbench
