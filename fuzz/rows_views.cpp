#include "fuzz/row.h"

namespace tandem::fuzz {

std::vector<Row> view_rows() {
  return {
      ROW(View, 4, 1, "dx", t[0].select(i[0], i[1])),
      ROW(View, 4, 1, "dx", t[0].slice(i[0], i[1], 3)),
      ROW(View, 2, 1, "d", t[0].slice(i[0], 0, 4, 2)),
      ROW(View, 2, 1, "d", t[0].narrow(i[0], 0, 1)),
      ROW(View, 3, 1, "d", t[0].transpose(i[0], -1)),
      ROW(View, 2, 1, "", t[0].t()),
      ROW(View, 2, 1, "", t[0].permute({1, 0})),
      ROW(View, 3, 1, "", t[0].view({-1})),
      ROW(View, 1, 1, "n", t[0].view({-1, i[0] + 1})),
      ROW(View, 2, 1, "", t[0].reshape({-1})),
      ROW(View, 1, 1, "", t[0].flatten()),
      ROW(View, 1, 2, "", t[0].view_as(t[1])),
      ROW(View, 3, 1, "d", t[0].unsqueeze(i[0])),
      ROW(View, 2, 1, "", t[0].squeeze()),
      ROW(View, 2, 1, "n", t[0].expand({i[0], -1, -1})),
      ROW(View, 1, 2, "", t[0].expand_as(t[1])),
      ROW(View, 2, 1, "", t[0].diagonal()),
      ROW(View, 1, 1, "d", t[0].unfold(i[0], 2, 1)),
      ROW(View, 1, 1, "", t[0].as_strided(t[0].sizes(), t[0].strides())),
      ROW(View, 1, 1, "d", t[0].as_strided({t[0].size(i[0])}, {t[0].stride(i[0])})),
      ROW(View, 3, 1, "", t[0].detach()),
      ROW(View, 1, 1, "", t[0].alias()),
      LIST_ROW(View, 2, 1, "d", t[0].split(2, i[0])),
      LIST_ROW(View, 1, 1, "d", t[0].chunk(2, i[0])),
      LIST_ROW(View, 1, 1, "d", t[0].unbind(i[0])),
  };
}

}  // namespace tandem::fuzz
